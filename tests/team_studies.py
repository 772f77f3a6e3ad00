"""Studies on a team's store: a separate database, the rows of a study, and a machine's copy of it."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fakes import FakeClock
from postgres_server import PostgresServer
from small_study import opened, participation, study_at
from sqlalchemy import text
from study_folders import Machine

from gistpoint.core.machine_time import SystemTime
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.studies.auditing import AuditFinding, audit
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.store import FolderStore
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.sessions.studies.taking import Participation
from gistpoint.sessions.team.address import StoreAddress
from gistpoint.sessions.team.connecting import engine_of, upgrade
from gistpoint.sessions.team.rights import grant
from gistpoint.sessions.team.study_note import STUDIES
from gistpoint.sessions.team.study_sharing import fetch, share
from gistpoint.sessions.team.study_store import TeamStudyStore

PATIENCE_S = 60.0
"""A time long enough for records to be in the store on return, even on a busy machine."""
_numbers = itertools.count(1)


@contextmanager
def serving() -> Iterator[PostgresServer]:
    """Yield a server with the tables of a store; its folder is one that another user can enter."""
    with tempfile.TemporaryDirectory(prefix="gistpoint-team-") as root:
        server = PostgresServer(Path(root))
        server.start()
        try:
            prepare(server.address)
            yield server
        finally:
            server.stop()


def prepare(address: StoreAddress) -> None:
    engine = engine_of(address)
    with engine.begin() as connection:
        upgrade(connection)
        grant(connection)
    engine.dispose()


def new_study(address: StoreAddress) -> str:
    """Add a study that consists only of an id, and return the id."""
    name = f"study-{next(_numbers)}"
    engine = engine_of(address)
    with engine.begin() as connection:
        row = text("INSERT INTO studies (id, files_sha256, archive_sha256) VALUES (:id, '', '')")
        connection.execute(row, {"id": name})
    engine.dispose()
    return name


@dataclass
class TeamStudy:
    """A study that its organiser has shared, and machines that fetch it."""

    base: Path
    server: PostgresServer
    name: str
    organiser: Machine
    root: Path
    """The organiser's folder."""

    @classmethod
    def made(cls, base: Path, server: PostgresServer, *codes: str, training: bool = False) -> TeamStudy:
        """Open a small study, enrol people and share the study."""
        name = f"study-{next(_numbers)}"
        root = study_at(base / "organiser" / "study", {"id": name}, training=training)
        organiser = Machine.at(base / "organiser" / "home", SystemTime())
        study = opened(organiser.open(root), *codes)
        share(study, server.address)
        made = cls(base, server, name, organiser, root)
        synchronise(made.open())
        return made

    def open(self) -> StudyFolder:
        """Open the organiser's folder."""
        return self.organiser.open(self.root)

    def machine(self, name: str) -> tuple[Machine, Path]:
        """Return another machine and its folder of the study, fetched at the machine's first use."""
        machine = Machine.at(self.base / name, SystemTime())
        place = machine.locations.data / STUDIES / self.name
        if not place.exists():
            fetch(self.name, self.server.address, machine.locations)
        return machine, place

    def part(self, name: str, code: str) -> Participation:
        """Return the participation of a person at a machine."""
        machine, root = self.machine(name)
        return participation(machine, root, code)

    def folders(self) -> list[StudyFolder]:
        """Return every machine's study, synchronised."""
        places = [self.organiser, *(Machine.at(place, SystemTime()) for place in self._others())]
        roots = [self.root, *(place / "data" / STUDIES / self.name for place in self._others())]
        found = [machine.open(root) for machine, root in zip(places, roots, strict=True)]
        for _ in range(2):
            for study in found:
                synchronise(study)
        return found

    def _others(self) -> list[Path]:
        return sorted(place.parents[2] for place in self.base.glob(f"*/data/{STUDIES}/{self.name}"))


def team(study: StudyFolder) -> TeamStudyStore:
    """Return the store of a team's study."""
    assert isinstance(study.store, TeamStudyStore)
    return study.store


def contents(root: Path) -> dict[str, bytes]:
    """Return all records in a study's folder, by name."""
    names = [path for folder in ("log", "attempts") for path in (root / folder).rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in names}


def wrong(study: StudyFolder) -> list[AuditFinding]:
    """Return the findings of an audit, without its notes on deliberate changes."""
    return [finding for finding in audit(study) if not finding.note]


def copy_at(
    root: Path, machine: str, study: str, address: StoreAddress, clock: TimeSource | None = None
) -> TeamStudyStore:
    """Return a machine's copy of a study, brought up to date."""
    files = FolderStore(root / machine, machine, clock or FakeClock())
    store = TeamStudyStore(files, study, address, patience_s=PATIENCE_S)
    store.reload()
    return store
