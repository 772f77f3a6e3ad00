"""Journals of attempts on a team's store: sent under a lease, fetched line by line, hundreds of lines a round
trip.

The file is authoritative for the machine that writes it. A lease says which machine may add lines, by the
server's clock alone; it expires a minute after its last renewal. Each change of the holder increments the
attempt's `fence`, and lines are added under the fence for which they were prepared, or not at all. A machine
that continued without the lease sends its whole journal as a branch, `ATTEMPT~MACHINE`, so that nothing is
mixed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from gistpoint.core.logs import append_whole, sync_file, sync_folder, take
from gistpoint.sessions.heads import ELSEWHERE, Head, HeadFile, has_head, move_head
from gistpoint.sessions.journal import JOURNAL, LOCK, is_open
from gistpoint.sessions.team.address import TeamStoreError
from gistpoint.sessions.team.conflicts import Conflict
from gistpoint.sessions.team.lines import (
    START,
    BrokenChainError,
    JournalLine,
    Position,
    branch_of,
    chained,
    cut_at,
    end_of,
    ends,
    head_kept,
    header_of,
    is_attempt_id,
    is_of,
    is_shared,
    lines_after,
    safe_lines,
)
from gistpoint.sessions.team.replication import StoreLine, add, arrays, at, beyond, hashes, portions

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

ATTEMPTS = "attempts"
"""The file of all their lines; each attempt is a writer in it."""
LEASE_S = 60
"""How long a machine may add lines without renewing its lease."""
_TRIES = 5
_AT_ONCE = 200
"""Most attempts of one transaction."""
_DEADLOCK = "40P01"
"""SQLSTATE."""
_UNTIL = f"clock_timestamp() + interval '{LEASE_S} s'"
_LOCKED = text("SELECT id, seq, head FROM attempts WHERE id = ANY(:ids) ORDER BY id FOR UPDATE")
_CLAIM = text(
    "INSERT INTO attempts (id, branch_of, task, actor, participant, started_utc_ms, ended, seq, head,"
    " holder, lease_until, fence) SELECT id, branch_of, task, actor, participant, started_utc_ms, false, 0,"
    f" '', :machine, {_UNTIL}, 1 FROM unnest(CAST(:id AS text[]), CAST(:branch_of AS text[]), CAST(:task AS"
    " text[]), CAST(:actor AS text[]), CAST(:participant AS text[]), CAST(:started_utc_ms AS bigint[])) AS"
    " a(id, branch_of, task, actor, participant, started_utc_ms) ORDER BY id ON CONFLICT (id) DO UPDATE SET"
    " fence = attempts.fence + CASE WHEN attempts.holder = :machine THEN 0 ELSE 1 END, holder = :machine,"
    f" lease_until = {_UNTIL} WHERE attempts.holder = :machine OR attempts.lease_until < clock_timestamp()"
    " RETURNING id, fence, seq, head"
)
_CLAIMED = ("id", "branch_of", "task", "actor", "participant", "started_utc_ms")
_MOVE = text(
    "UPDATE attempts SET seq = m.seq, head = m.head, ended = attempts.ended OR m.ended, lease_until = CASE"
    f" WHEN closes THEN clock_timestamp() ELSE greatest(lease_until, {_UNTIL}) END FROM unnest(CAST(:id AS"
    " text[]), CAST(:fence AS integer[]), CAST(:old_seq AS integer[]), CAST(:old AS text[]), CAST(:seq AS"
    " integer[]), CAST(:head AS text[]), CAST(:ended AS boolean[]), CAST(:closes AS boolean[])) AS m(id,"
    " fence, old_seq, old, seq, head, ended, closes) WHERE attempts.id = m.id AND holder = :machine AND"
    " attempts.fence = m.fence AND attempts.seq = old_seq AND attempts.head = old RETURNING attempts.id"
)
"""Counts lines that are about to be added, and renews the lease or gives it back; nothing if it was lost."""
_MOVED = ("id", "fence", "old_seq", "old", "seq", "head", "ended", "closes")
_HOLDER = text("SELECT holder FROM attempts WHERE id = :id AND lease_until >= clock_timestamp()")
_HELD = text(
    "SELECT id, holder FROM attempts WHERE lease_until >= clock_timestamp() AND NOT ended ORDER BY id"
)
_ALL = text("SELECT id, seq, head FROM attempts ORDER BY id")
_MISCOUNTED = text(
    "SELECT a.id, count(l.number) AS lines FROM attempts a LEFT JOIN lines_of_attempts l ON l.writer = a.id "
    "GROUP BY a.id, a.seq HAVING count(l.number) <> a.seq ORDER BY a.id"
)


def holder_of(connection: Connection, attempt: str) -> str:
    """Return the machine that may add lines to an attempt now; empty if none may."""
    return str(connection.scalar(_HOLDER, {"id": attempt}) or "")


def leases_held(connection: Connection) -> dict[str, str]:
    """Return the machine that holds the lease of each attempt under way, by the id of the attempt."""
    return {row.id: row.holder for row in connection.execute(_HELD)}


@dataclass(frozen=True, slots=True)
class Pushed:
    """The part of an attempt's journal that is on the store."""

    attempt: str
    """Its id there; that of a branch if another machine continued the attempt."""
    position: Position = START
    """The end of the part that the store has."""
    fence: int = 0
    """The fence of this machine's lease; 0 without one."""
    added: int = 0
    """How many lines were added."""
    conflict: Conflict | None = None

    @property
    def branched(self) -> bool:
        """Whether the lines are in a branch."""
        return bool(branch_of(self.attempt)[0])


NOWHERE = Pushed("")
"""Before anything was compared."""


class _ChangedError(Exception):
    """The store has uncounted lines: everything is compared again."""


@dataclass(slots=True)
class ToPush:
    """An attempt to be sent, and its progress."""

    folder: Path
    hold: bool = False
    """Whether the lease is taken, or renewed, even if there is nothing to send."""
    pushed: Pushed = NOWHERE
    """What the last call returned, or found under way; without a fence everything is compared."""
    done: bool = False
    added: int = 0
    lines: list[JournalLine] = field(default_factory=list)
    """Lines that may be missing in the store."""
    since: int = 1
    """The first line that was written on this machine."""
    targets: Iterator[str] = field(default_factory=lambda: iter(()))
    target: str = ""
    """The attempt, or the branch, that the lines may be added to."""

    @property
    def size(self) -> int:
        """How many bytes are to be read."""
        with suppress(FileNotFoundError):
            return (self.folder / JOURNAL).stat().st_size - self.pushed.position.offset
        return 0

    def ends_as(self, pushed: Pushed) -> None:
        """Set the result."""
        self.pushed, self.done = replace(pushed, added=self.added), True

    def read(self, machine: str) -> None:
        """Read the lines after those that the store has; all of them if these are to be compared."""
        try:
            if self.pushed.fence:
                self.lines = safe_lines(self.folder, self.pushed.position)
            else:
                self._read_whole(machine)
        except BrokenChainError as error:
            words = "the journal here was changed, cut back or damaged, and is not sent."
            conflict = Conflict(f"attempt {self.folder.name}", error.at, words=words)
            self.ends_as(Pushed(self.folder.name, conflict=conflict))
        except FileNotFoundError:
            self.ends_as(Pushed(self.folder.name))

    def _read_whole(self, machine: str) -> None:
        kept = head_kept(self.folder)  # before the journal, which may grow meanwhile
        self.lines = safe_lines(self.folder)
        if at := cut_at(self.lines, kept):
            raise BrokenChainError(at)
        if not self.lines or header_of(self.lines[0].data) is None:
            self.ends_as(Pushed(self.folder.name))
        self.since = len(self.lines) + 1 if kept is None else kept.since
        name = self.folder.name
        self.targets = chain(
            (name, f"{name}~{machine}"), (f"{name}~{machine}-{number}" for number in count(2))
        )
        self.target = next(self.targets)

    def compare(self, there: Sequence[tuple[int, str, str]], counted: tuple[int, str], machine: str) -> bool:
        """Compare the lines with those of the target, of which the store counts so many; True if it can be
        claimed.
        """
        pairs = zip(self.lines, there, strict=False)
        other = next(((here, one) for here, one in pairs if (here.seq, here.sha256) != one[:2]), None)
        if other is not None:
            here, (_, sha256, sender) = other
            if self.target == self.folder.name and (here.seq < self.since or sender == machine):
                self.ends_as(
                    Pushed(
                        self.target,
                        conflict=Conflict(f"attempt {self.target}", here.seq, here.sha256, sha256),
                    )
                )
            else:
                self.target = next(self.targets)
        elif not self.hold and len(there) >= len(self.lines):
            self.ends_as(Pushed(self.target, START.after(self.lines)))
        elif counted != _last(there):
            self.ends_as(Pushed(self.target, conflict=_miscounted(self.target, len(there))))
        return other is None and not self.done

    def claimed(self, fence: int, there: int) -> None:
        """Go on from the lines that are there; without a `fence`, in a branch if there is anything to send."""
        if fence:
            self.pushed = Pushed(self.target, START.after(self.lines[:there]), fence)
            self.lines = self.lines[there:]
        elif there >= len(self.lines):
            self.ends_as(Pushed(self.target, START.after(self.lines)))
        else:
            self.target = next(self.targets)

    def moves(self) -> tuple[object, ...]:
        """Return how the store's row of the attempt moves on by the lines: the values of `_MOVED`."""
        before, after = self.pushed.position, self.pushed.position.after(self.lines)
        closes = not self.hold and not is_open(self.folder)
        ended = bool(self.lines) and ends(self.lines[-1].data)
        return (
            self.pushed.attempt,
            self.pushed.fence,
            before.seq,
            before.head,
            after.seq,
            after.head,
            ended,
            closes,
        )

    def claims(self) -> tuple[object, ...]:
        """Return the store's row of an attempt that it does not have: the values of `_CLAIMED`."""
        name, header = self.folder.name, header_of(self.lines[0].data) or {}
        parent = name if self.target != name else branch_of(name)[0] or None
        return (self.target, parent, *header.values())


def push_attempts(
    engine: Engine,
    machine: str,
    wanted: Sequence[ToPush],
    report: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> list[Pushed]:
    """Send the lines of attempts that are missing in the store; the results report differences.

    `report` gets how many are done, of how many, and may raise to stop: sent lines stay.
    """
    waiting = list(wanted)
    for _ in range(_TRIES):
        for some in portions(waiting, _AT_ONCE, attrgetter("size")):
            report(len(wanted) - len(waiting), len(wanted), some[0].folder.name)
            _push(engine, machine, some)
        waiting = [each for each in waiting if not each.done]
        if not waiting:
            return [each.pushed for each in wanted]
    raise TeamStoreError(
        f"The attempt {waiting[0].folder.name} can't be sent: other processes change it on the store all the"
        " time.",
        hint="`gistpoint store check` says what is there.",
    )


def _push(engine: Engine, machine: str, some: Sequence[ToPush]) -> None:
    """Send lines of some attempts in one transaction; attempts that others changed are left for the next try."""
    for each in some:
        each.read(machine)
    try:
        with engine.begin() as connection:
            held = _sent(connection, machine, some)
    except (DBAPIError, _ChangedError) as error:
        if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", "") != _DEADLOCK:
            raise
        held = set()
    for each in _undone(some):
        if each.pushed.attempt in held:
            each.added += len(each.lines)
            each.ends_as(replace(each.pushed, position=each.pushed.position.after(each.lines)))
        else:
            each.pushed = NOWHERE


def _undone(some: Iterable[ToPush]) -> list[ToPush]:
    return [each for each in some if not each.done]


def _sent(connection: Connection, machine: str, some: Sequence[ToPush]) -> set[str]:
    """Take the leases that are missing and add the lines; return the attempts whose leases held."""
    while unplaced := [each for each in _undone(some) if not each.pushed.fence]:
        _place(connection, machine, sorted(unplaced, key=attrgetter("target")))
    ready = {each.pushed.attempt: each for each in _undone(some)}
    if not ready:
        return set()
    given = arrays(_MOVED, [each.moves() for each in ready.values()])
    held = set(connection.scalars(_MOVE, {**given, "machine": machine}))
    lines = (
        StoreLine(ATTEMPTS, name, line.seq, line.data, machine) for name in held for line in ready[name].lines
    )
    if add(connection, lines):
        raise _ChangedError
    return held


def _place(connection: Connection, machine: str, some: Sequence[ToPush]) -> None:
    """Compare journals with the store's lines of their targets, and claim those that can be continued."""
    names = [each.target for each in some]
    rows = {row.id: (row.seq, row.head) for row in connection.execute(_LOCKED, {"ids": names})}
    there = hashes(
        connection, [(ATTEMPTS, name) for name in names]
    )  # nobody adds lines while they are compared
    claiming = [
        each
        for each in some
        if each.compare(there[ATTEMPTS, each.target], rows.get(each.target, (0, "")), machine)
    ]
    claims = _claim(connection, machine, claiming)
    for each in claiming:
        known = there[ATTEMPTS, each.target]
        fence, *counted = claims.get(each.target, (0, *_last(known)))
        if tuple(counted) == _last(known):
            each.claimed(fence, len(known))
        else:  # another process of this machine was faster: nothing will be added
            each.pushed = Pushed(each.target, fence=fence)


def _claim(connection: Connection, machine: str, some: Sequence[ToPush]) -> dict[str, tuple[int, int, str]]:
    """Take or renew leases; return fence, number of lines and last hash of each attempt that no other machine
    holds.
    """
    if not some:
        return {}
    given = arrays(_CLAIMED, [each.claims() for each in some])
    return {
        row.id: (row.fence, row.seq, row.head)
        for row in connection.execute(_CLAIM, {**given, "machine": machine})
    }


def _last(there: Sequence[tuple[int, str, str]]) -> tuple[int, str]:
    return (len(there), there[-1][1]) if there else (0, "")


def _miscounted(attempt: str, seq: int) -> Conflict:
    words = (
        "the store's lines are not those that it counts; nothing was sent. Once its owner has deleted the"
        " attempt's row in `attempts`, `gistpoint store sync` sends the whole."
    )
    return Conflict(f"attempt {attempt}", seq, words=words)


class AttemptElsewhereError(TeamStoreError):
    """Another machine is continuing an attempt now."""


def take_over(engine: Engine, folder: Path, machine: str) -> None:
    """Make an attempt ready to be resumed here: fetch what other machines added, and take the lease.

    Raises `AttemptElsewhereError` while another machine holds it. A journal that diverged from the store's is
    left alone: it is a branch.
    """
    try:
        lines = lines_after(folder / JOURNAL)
    except (BrokenChainError, OSError):
        return
    if not lines or header_of(lines[0].data) is None or not is_shared(folder):
        return
    source = (ATTEMPTS, folder.name)
    with engine.begin() as connection:
        there = hashes(connection, [source])[source]
        if not there or any(line.sha256 != sent[1] for line, sent in zip(lines, there, strict=False)):
            return
        if not _claim(connection, machine, [ToPush(folder, lines=lines, target=folder.name)]):
            raise AttemptElsewhereError(
                f"Attempt {folder.name} goes on on another machine ({holder_of(connection, folder.name)})"
                " now.",
                hint="Close it there, or wait a minute after that machine was switched off.",
            )
        if len(there) > len(lines):
            new = beyond(connection, {source: len(lines)}, {source: len(there)})
            add_lines(folder, len(lines), [line.data for line in new])


def pull_attempts(
    engine: Engine,
    root: Path,
    machine: str,
    report: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> tuple[int, int, list[Conflict]]:
    """Fetch lines of attempts that are missing on this machine; return the numbers of attempts and lines.

    `report` gets how many are done, of how many, and may raise to stop: fetched lines stay.
    """
    conflicts: list[Conflict] = []
    fetched = lines = done = 0
    with engine.connect() as connection:
        there = ends_there(connection)
        for name, (seq, head) in there.items():
            if branch_of(name)[1].startswith(machine):
                _named_as_branch(root, name, seq, head)
        known: dict[tuple[str, str], int] = {}
        for name, (seq, _) in there.items():
            if not is_attempt_id(name):
                conflicts.append(
                    Conflict(f"attempt {name[:80]!r}", words="is no name of an attempt; it was not fetched.")
                )
                continue
            end = end_of(root / name / JOURNAL) or START
            if end.seq < seq:
                known[ATTEMPTS, name] = end.seq
        last = {source: there[source[1]][0] for source in known}
        for (_, name), new in groupby(beyond(connection, known, last), attrgetter("source")):
            report(done, len(known), name)
            done += 1
            got = add_lines(root / name, known[ATTEMPTS, name], [line.data for line in new])
            if isinstance(got, Conflict):
                conflicts.append(got)
            elif got:
                fetched, lines = fetched + 1, lines + got
    return fetched, lines, conflicts


def add_lines(folder: Path, seq: int, data: Iterable[bytes]) -> int | Conflict:
    """Add the store's lines after the line `seq` to a journal; return how many, 0 if it is open or has
    changed.
    """
    path, attempt = folder / JOURNAL, f"attempt {folder.name}"
    with _unopened(folder) as mine:
        end = end_of(path) or START
        if not mine or end.seq != seq or (path.exists() and end.offset != path.stat().st_size):
            return 0  # the next resumption sets a torn line aside
        try:
            new = chained(data, end.seq, end.head)
        except BrokenChainError as error:
            words = (
                "the store's next line does not follow ours: two machines went on with it."
                if seq and error.at == seq + 1
                else "the chain of hashes breaks on the store."
            )
            return Conflict(attempt, error.at, words=f"{words} It was not fetched.")
        if not new:
            return 0
        if not seq and not is_of(new[0].data, folder.name):
            return Conflict(
                attempt, 1, words="the store's first line does not begin this attempt. It was not fetched."
            )
        if not seq:
            (folder.parent / ELSEWHERE).mkdir(exist_ok=True)
            (folder.parent / ELSEWHERE / folder.name).touch()
        _append(path, new)
        if has_head(folder):  # what was fetched was not written under the head that is kept here
            HeadFile(folder, Head(new[-1].seq, new[-1].sha256, new[-1].seq + 1)).close()
        return len(new)


def _append(path: Path, lines: Iterable[JournalLine]) -> None:
    """Write lines to a journal: all of them, or none if it is new."""
    data = b"".join(line.data + b"\n" for line in lines)
    target = path if path.exists() else path.with_name(f"{JOURNAL}.part")
    file = os.open(target, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if target == path else os.O_TRUNC), 0o600)
    try:
        append_whole(file, data, os.fstat(file).st_size)
        sync_file(file)
    finally:
        os.close(file)
    if target != path:
        target.replace(path)
        sync_folder(path.parent)
        sync_folder(path.parent.parent)


@contextmanager
def _unopened(folder: Path) -> Iterator[bool]:
    """Hold the lock of an attempt, so that no process opens it; False if one has it open."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = take(folder / LOCK)
    if lock is None:
        yield False
        return
    with lock:
        yield True
        if not (folder / JOURNAL).exists():
            (folder / LOCK).unlink()
            folder.rmdir()


def _named_as_branch(root: Path, branch: str, seq: int, head: str) -> None:
    """Rename the folder of a journal that was sent as a branch: the attempt's own name belongs to the
    store's.
    """
    folder, place = root / branch_of(branch)[0], root / branch
    end = end_of(folder / JOURNAL)
    if place.exists() or end is None or (end.seq, end.head) != (seq, head) or is_open(folder):
        return
    folder.rename(place)
    move_head(folder, place)
    sync_folder(root)


def local_attempts(root: Path) -> list[Path]:
    """Return the folders of the attempts that are here and go to the store."""
    if not root.is_dir():
        return []
    return sorted(place for place in root.iterdir() if (place / JOURNAL).is_file() and is_shared(place))


def to_push(connection: Connection, folders: Iterable[Path]) -> dict[Path, int]:
    """Return the attempts with lines missing in the store, and how many; 0 if it has others in their place."""
    there = ends_there(connection)
    found: dict[Path, int] = {}
    behind: dict[tuple[str, str, int], tuple[Path, str]] = {}
    for folder in folders:
        end = end_of(folder / JOURNAL)
        if end is None:
            continue
        seq, head = there.get(folder.name, (0, ""))
        if end.seq > seq or head == "":
            found[folder] = end.seq - seq
        elif end.seq < seq:
            behind[ATTEMPTS, folder.name, end.seq] = (folder, end.head)
        elif end.head != head:
            found[folder] = 0
    for place, sha256 in at(connection, behind.keys()).items():
        folder, head = behind[place]
        if sha256 != head:
            found[folder] = 0
    return found


def miscounted(connection: Connection, folders: Iterable[Path]) -> dict[str, Conflict]:
    """Return, by id, a conflict for each attempt of which the store lost lines or has lines that nobody sent."""
    names = {folder.name for folder in folders}
    return {
        row.id: _miscounted(row.id, row.lines) for row in connection.execute(_MISCOUNTED) if row.id in names
    }


def ends_there(connection: Connection) -> dict[str, tuple[int, str]]:
    """Return how many lines of each attempt the store has, and the hash of the last of them."""
    return {row.id: (row.seq, row.head) for row in connection.execute(_ALL)}
