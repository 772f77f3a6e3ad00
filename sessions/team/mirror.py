"""Journals of attempts sent to a team's store and fetched from it, line by line.

The file is the truth for the machine that writes it. A line that the store has is compared and never overwritten. A
machine that went on without the lease sends its whole journal as a branch, `ATTEMPT~MACHINE`: nothing is mixed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from gistpoint.core.logs import append_whole, sync_file, sync_folder, take
from gistpoint.sessions.heads import ELSEWHERE, Head, HeadFile, head_path
from gistpoint.sessions.journal import JOURNAL, LOCK, is_open
from gistpoint.sessions.team.address import TeamStoreError
from gistpoint.sessions.team.alarms import Alarm
from gistpoint.sessions.team.leases import Lease, claim, holder_of, release, renew
from gistpoint.sessions.team.lines import (
    START,
    BrokenChainError,
    JournalLine,
    Position,
    branch_of,
    chained,
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

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LINES, _BYTES = 500, 4 * 1024 * 1024
"""Most lines and bytes of one statement."""
_TRIES = 5
_AT_ONCE = 50
"""Attempts whose lines are fetched by one statement."""
_ADD = text(
    "WITH held AS (UPDATE attempts SET seq = :seq, head = :head, ended = ended OR :ended, "
    "lease_until = greatest(lease_until, clock_timestamp() + interval '60 s') "
    "WHERE id = :id AND holder = :machine AND fence = :fence AND seq = :before AND head = :before_head RETURNING id) "
    "INSERT INTO events (attempt, seq, line, sha256, machine) SELECT held.id, l.seq, l.line, l.sha256, :machine "
    "FROM held, unnest(CAST(:seqs AS integer[]), CAST(:lines AS bytea[]), CAST(:hashes AS text[])) "
    "AS l(seq, line, sha256)"
)
_LOCKED = text("SELECT seq, head FROM attempts WHERE id = :id FOR UPDATE")
_HASHES = text(
    "SELECT seq, encode(sha256(line), 'hex') AS sha256, machine FROM events WHERE attempt = :id ORDER BY seq"
)
_LINES_AFTER = text(
    "SELECT e.attempt, e.line FROM unnest(CAST(:ids AS text[]), CAST(:seqs AS integer[])) AS known(id, seq) "
    "JOIN events e ON e.attempt = known.id AND e.seq > known.seq ORDER BY e.attempt, e.seq"
)
_AT = text(
    "SELECT e.attempt, encode(sha256(e.line), 'hex') AS sha256 FROM "
    "unnest(CAST(:ids AS text[]), CAST(:seqs AS integer[])) AS known(id, seq) "
    "JOIN events e ON e.attempt = known.id AND e.seq = known.seq"
)
_ALL = text("SELECT id, seq, head FROM attempts ORDER BY id")
_MISCOUNTED = text(
    "SELECT a.id, count(e.seq) AS lines FROM attempts a LEFT JOIN events e ON e.attempt = a.id "
    "GROUP BY a.id, a.seq HAVING count(e.seq) <> a.seq ORDER BY a.id"
)


@dataclass(frozen=True, slots=True)
class Pushed:
    """How far the journal of an attempt is on the store."""

    attempt: str
    """Its id there; that of a branch if another machine went on with the attempt."""
    position: Position = START
    """What of the file the store has."""
    lease: Lease | None = None
    added: int = 0
    """How many lines were added."""
    alarm: Alarm | None = None

    @property
    def branched(self) -> bool:
        """Whether the lines are in a branch."""
        return bool(branch_of(self.attempt)[0])


def push_attempt(
    engine: Engine, folder: Path, machine: str, before: Pushed | None = None, *, hold: bool = False
) -> Pushed:
    """Send the lines of an attempt that the store lacks; `before` is what the last call returned.

    With `hold` the lease is taken, or renewed, even if there is nothing to send. A difference is told in the result.
    """
    added = 0
    for _ in range(_TRIES):
        try:
            if before is None or before.lease is None or before.alarm is not None:
                before = _placed(engine, folder, machine, hold=hold)
                if before.lease is None:
                    return replace(before, added=added)
            lines = safe_lines(folder, before.position)
            while lines:
                batch = _batch(lines)
                if not _added(engine, before, batch):
                    break
                added, lines = added + len(batch), lines[len(batch) :]
                before = replace(before, position=before.position.after(batch))
            if not lines and not hold and not is_open(folder):
                _released(engine, before)
            if not lines and (added or not hold or _renewed(engine, before)):
                return replace(before, added=added)
        except BrokenChainError as error:
            return Pushed(folder.name, alarm=_damaged(folder, error.at), added=added)
        except FileNotFoundError:
            return Pushed(folder.name, added=added)
        except IntegrityError:
            pass  # the store has lines that it does not count
        before = None
    raise TeamStoreError(
        f"The attempt {folder.name} can't be sent: other processes change it on the store all the time.",
        hint="`gistpoint store check` says what is there.",
    )


def _placed(engine: Engine, folder: Path, machine: str, *, hold: bool) -> Pushed:
    """Compare a journal with what the store has of it, and take the lease of the attempt, or of a branch."""
    kept = head_kept(folder)  # before the journal, which may grow meanwhile
    lines = safe_lines(folder)
    header = header_of(lines[0].data) if lines else None
    if header is None:
        return Pushed(folder.name)
    if kept is not None and kept.seq and (len(lines) < kept.seq or lines[kept.seq - 1].sha256 != kept.sha256):
        return Pushed(folder.name, alarm=_damaged(folder, min(len(lines), kept.seq)))
    since = len(lines) + 1 if kept is None else kept.since
    parent: str | None = branch_of(folder.name)[0] or None
    for target in _targets(folder.name, machine):
        with engine.begin() as connection:
            row = connection.execute(_LOCKED, {"id": target}).first()  # nobody adds lines while they are compared
            there = connection.execute(_HASHES, {"id": target}).all()
            pairs = zip(lines, there, strict=False)
            other = next(((here, one) for here, one in pairs if (one.seq, one.sha256) != (here.seq, here.sha256)), None)
            if other is None:
                if not hold and len(there) >= len(lines):
                    return Pushed(target, START.after(lines))
                if row is not None and (row.seq, row.head) != (len(there), there[-1].sha256 if there else ""):
                    return Pushed(target, alarm=_miscounted(target, len(there)))
                lease = claim(connection, target, machine, {**header, "branch_of": parent})
                if lease is not None:
                    return Pushed(target, START.after(lines[: len(there)]), lease)
                if len(there) >= len(lines):
                    return Pushed(target, START.after(lines))
            elif target == folder.name and (other[0].seq < since or other[1].machine == machine):
                here, one = other
                return Pushed(target, alarm=Alarm(f"attempt {target}", here.seq, here.sha256, one.sha256))
            parent = folder.name
    raise AssertionError("The names of branches never end.")


def _targets(name: str, machine: str) -> Iterator[str]:
    yield name
    yield f"{name}~{machine}"
    yield from (f"{name}~{machine}-{number}" for number in count(2))


def _damaged(folder: Path, line: int) -> Alarm:
    return Alarm(
        f"attempt {folder.name}", line, words="the journal here was changed, cut back or damaged, and is not sent."
    )


def _miscounted(attempt: str, seq: int) -> Alarm:
    words = (
        "the store's lines are not those that it counts; nothing was sent. Once its owner has deleted the attempt's "
        "row in `attempts`, `gistpoint store sync` sends the whole."
    )
    return Alarm(f"attempt {attempt}", seq, words=words)


def _batch(lines: list[JournalLine]) -> list[JournalLine]:
    size = 0
    for number, line in enumerate(lines[:_LINES]):
        size += len(line.data)
        if size > _BYTES and number:
            return lines[:number]
    return lines[:_LINES]


def _added(engine: Engine, before: Pushed, batch: list[JournalLine]) -> bool:
    """Add lines if the lease still holds and nobody added others."""
    lease = before.lease
    assert lease is not None
    with engine.begin() as connection:
        done = connection.execute(
            _ADD,
            {
                "id": lease.attempt,
                "machine": lease.machine,
                "fence": lease.fence,
                "before": before.position.seq,
                "before_head": before.position.head,
                "seq": batch[-1].seq,
                "head": batch[-1].sha256,
                "ended": ends(batch[-1].data),
                "seqs": [line.seq for line in batch],
                "lines": [line.data for line in batch],
                "hashes": [line.sha256 for line in batch],
            },
        )
    return done.rowcount == len(batch)


def _renewed(engine: Engine, before: Pushed) -> bool:
    assert before.lease is not None
    with engine.begin() as connection:
        return renew(connection, before.lease)


def _released(engine: Engine, before: Pushed) -> None:
    assert before.lease is not None
    with engine.begin() as connection:
        release(connection, before.lease)


class AttemptElsewhereError(TeamStoreError):
    """Another machine goes on with an attempt now."""


def take_over(engine: Engine, folder: Path, machine: str) -> None:
    """Make an attempt ready to be resumed here: fetch what other machines added, and take the lease.

    Raises `AttemptElsewhereError` while another machine holds it. A journal that went another way than the store's is
    left alone: it is a branch.
    """
    try:
        lines = lines_after(folder / JOURNAL)
    except (BrokenChainError, OSError):
        return
    header = header_of(lines[0].data) if lines else None
    if header is None or not is_shared(folder):
        return
    with engine.begin() as connection:
        there = connection.execute(_HASHES, {"id": folder.name}).all()
        if not there or any(line.sha256 != sent.sha256 for line, sent in zip(lines, there, strict=False)):
            return
        parent = branch_of(folder.name)[0] or None
        if claim(connection, folder.name, machine, {**header, "branch_of": parent}) is None:
            raise AttemptElsewhereError(
                f"Attempt {folder.name} goes on on another machine ({holder_of(connection, folder.name)}) now.",
                hint="Close it there, or wait a minute after that machine was switched off.",
            )
        if len(there) > len(lines):
            add_lines(folder, len(lines), _fetched(connection, {folder.name: len(lines)})[folder.name])


def pull_attempts(
    engine: Engine,
    root: Path,
    machine: str,
    told: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> tuple[int, int, list[Alarm]]:
    """Fetch what the store has of attempts and this machine lacks; return the numbers of attempts and lines.

    `told` gets how many are done of how many, and may raise to stop: what was fetched stays.
    """
    with engine.begin() as connection:
        rows = connection.execute(_ALL).all()
    alarms: list[Alarm] = []
    fetched = lines = 0
    for row in rows:
        if branch_of(row.id)[1].startswith(machine):
            _named_as_branch(root, row.id, row.seq, row.head)
    behind: dict[str, int] = {}
    for row in rows:
        if not is_attempt_id(row.id):
            alarms.append(Alarm(f"attempt {row.id[:80]!r}", words="is no name of an attempt; it was not fetched."))
            continue
        end = end_of(root / row.id / JOURNAL) or START
        if end.seq < row.seq:
            behind[row.id] = end.seq
    names = list(behind)
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        told(start, len(names), some[0])
        with engine.begin() as connection:
            found = _fetched(connection, {name: behind[name] for name in some})
        for name in some:
            got = add_lines(root / name, behind[name], found.get(name, []))
            if isinstance(got, Alarm):
                alarms.append(got)
            elif got:
                fetched, lines = fetched + 1, lines + got
    return fetched, lines, alarms


def _fetched(connection: Connection, behind: Mapping[str, int]) -> dict[str, list[bytes]]:
    """Return the lines of attempts after the numbers of those that are here."""
    found: dict[str, list[bytes]] = {}
    for row in connection.execute(_LINES_AFTER, {"ids": [*behind], "seqs": [*behind.values()]}):
        found.setdefault(row.attempt, []).append(bytes(row.line))
    return found


def add_lines(folder: Path, seq: int, data: Iterable[bytes]) -> int | Alarm:
    """Add the store's lines after the line `seq` to a journal; return how many, 0 if it is open or has changed."""
    path, attempt = folder / JOURNAL, f"attempt {folder.name}"
    with _unopened(folder) as mine:
        end = end_of(path) or START
        if not mine or end.seq != seq or (path.exists() and end.offset != path.stat().st_size):
            return 0  # a torn line is put away by the next resumption
        try:
            new = chained(data, end.seq, end.head)
        except BrokenChainError as error:
            words = (
                "the store's next line does not follow ours: two machines went on with it."
                if seq and error.at == seq + 1
                else "the chain of hashes breaks on the store."
            )
            return Alarm(attempt, error.at, words=f"{words} It was not fetched.")
        if not new:
            return 0
        if not seq and not is_of(new[0].data, folder.name):
            return Alarm(attempt, 1, words="the store's first line does not begin this attempt. It was not fetched.")
        if not seq:
            (folder.parent / ELSEWHERE).mkdir(exist_ok=True)
            (folder.parent / ELSEWHERE / folder.name).touch()
        _append(path, new)
        if head_path(folder).exists():  # what was fetched was not written under the head that is kept here
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
    """Hold the lock of an attempt, so that no process opens it meanwhile; False if one has it open."""
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
    """Give the folder of a journal that was sent as a branch the branch's name: the attempt's is for the store's."""
    folder, place = root / branch_of(branch)[0], root / branch
    end = end_of(folder / JOURNAL)
    if place.exists() or end is None or (end.seq, end.head) != (seq, head) or is_open(folder):
        return
    folder.rename(place)
    if head_path(folder).exists():
        head_path(folder).rename(head_path(place))
    sync_folder(root)


def local_attempts(root: Path) -> list[Path]:
    """Return the folders of the attempts that are here and go to the store."""
    if not root.is_dir():
        return []
    return sorted(place for place in root.iterdir() if (place / JOURNAL).is_file() and is_shared(place))


def to_push(connection: Connection, folders: Iterable[Path]) -> dict[Path, int]:
    """Return the attempts of which the store lacks lines, and how many; 0 if it has others in their place."""
    there = ends_there(connection)
    found: dict[Path, int] = {}
    behind: dict[str, tuple[Path, Position]] = {}
    for folder in folders:
        end = end_of(folder / JOURNAL)
        if end is None:
            continue
        seq, head = there.get(folder.name, (0, ""))
        if end.seq > seq or head == "":
            found[folder] = end.seq - seq
        elif end.seq < seq:
            behind[folder.name] = (folder, end)
        elif end.head != head:
            found[folder] = 0
    seqs = [end.seq for _, end in behind.values()]
    rows = connection.execute(_AT, {"ids": [*behind], "seqs": seqs}).all() if behind else []
    for row in rows:
        folder, end = behind[row.attempt]
        if row.sha256 != end.head:
            found[folder] = 0
    return found


def miscounted(connection: Connection, folders: Iterable[Path]) -> dict[str, Alarm]:
    """Return an alarm, by its id, for each attempt of which the store has lost lines, or has some that nobody sent."""
    names = {folder.name for folder in folders}
    return {row.id: _miscounted(row.id, row.lines) for row in connection.execute(_MISCOUNTED) if row.id in names}


def ends_there(connection: Connection) -> dict[str, tuple[int, str]]:
    """Return how many lines of each attempt the store has, and the hash of the last of them."""
    return {row.id: (row.seq, row.head) for row in connection.execute(_ALL)}
