"""Sends journals of attempts to a team's store, and fetches them from it, hundreds of lines per round trip.

The file is authoritative for the machine that writes it. A lease determines which machine may add lines, by
the server's clock alone; it expires a minute after its last renewal. Each change of holder increments the
attempt's `fence`, and lines are added only under the fence for which they were prepared. A machine that
continued an attempt without the lease sends its whole journal as a branch, `ATTEMPT~MACHINE`, so that the
lines of two machines are never mixed (decision 104).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from gistpoint.core.errors import AttemptError
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
from gistpoint.sessions.team.replication import (
    StoreLine,
    add,
    arrays,
    hashes,
    hashes_at,
    lines_beyond,
    portions,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

ATTEMPTS = "attempts"
"""The file in the store with the lines of all attempts, in which each attempt is a writer."""
LEASE_S = 60
"""The seconds for which a machine may add lines without renewing its lease."""
_TRIES = 5
_AT_ONCE = 400
"""The maximum number of attempts in one transaction."""
_DISK_AT_ONCE = 16
"""The number of journals that are synced to disk together, which takes about as long as syncing one."""
_DEADLOCK = "40P01"
"""The SQLSTATE of a deadlock."""
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
"""Counts lines that will be added, and renews or ends the lease; changes nothing if the lease was lost."""
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
    """Return the machine that holds the lease of an attempt; empty if none does."""
    return str(connection.scalar(_HOLDER, {"id": attempt}) or "")


def leases_held(connection: Connection) -> dict[str, str]:
    """Return the machine that holds the lease of each unfinished attempt, by the attempt's id."""
    return {row.id: row.holder for row in connection.execute(_HELD)}


@dataclass(frozen=True, slots=True)
class PushResult:
    """The result of a push: the part of an attempt's journal that the store contains, and any conflict."""

    attempt: str
    """The attempt's id in the store, which is a branch's if another machine continued the attempt."""
    position: Position = START
    """The end of the part that the store contains."""
    fence: int = 0
    """The fence of this machine's lease; 0 if the machine has none."""
    added: int = 0
    """The number of lines that were added."""
    conflict: Conflict | None = None

    @property
    def branched(self) -> bool:
        """Whether the lines are in a branch."""
        return bool(branch_of(self.attempt)[0])


NOWHERE = PushResult("")
"""The result before anything was compared."""


class _ChangedError(Exception):
    """The store contains lines that it has not counted, so everything must be compared again."""


@dataclass(slots=True)
class ToPush:
    """An attempt to send, and its progress."""

    folder: Path
    hold: bool = False
    """Whether to take or renew the lease even if there is nothing to send."""
    pushed: PushResult = NOWHERE
    """The last result; if the result has no fence, all lines are compared."""
    done: bool = False
    added: int = 0
    lines: list[JournalLine] = field(default_factory=list)
    """The lines that may be missing from the store."""
    since: int = 1
    """The number of the first line that this machine wrote."""
    targets: Iterator[str] = field(default_factory=lambda: iter(()))
    """The ids that can be tried after `target`."""
    target: str = ""
    """The id of the attempt or branch to which the lines may be added."""

    @property
    def size(self) -> int:
        """The number of bytes to read; 0 if there is no journal."""
        with suppress(FileNotFoundError):
            return (self.folder / JOURNAL).stat().st_size - self.pushed.position.offset
        return 0

    def finish(self, pushed: PushResult) -> None:
        """Set the final result."""
        self.pushed, self.done = replace(pushed, added=self.added), True

    def read(self, machine: str) -> None:
        """Read the lines after those that the store contains, or all lines if they must be compared.

        If the journal is missing or damaged, or does not begin an attempt, the push is finished.
        """
        try:
            if self.pushed.fence:
                self.lines = safe_lines(self.folder, self.pushed.position)
            else:
                self._read_whole(machine)
        except BrokenChainError as error:
            words = "the journal here was changed, cut off or damaged, and is not sent."
            conflict = Conflict(f"attempt {self.folder.name}", error.at, words=words)
            self.finish(PushResult(self.folder.name, conflict=conflict))
        except FileNotFoundError:
            self.finish(PushResult(self.folder.name))

    def _read_whole(self, machine: str) -> None:
        kept = head_kept(self.folder)  # read before the journal, which may grow in the meantime
        self.lines = safe_lines(self.folder)
        if at := cut_at(self.lines, kept):
            raise BrokenChainError(at)
        if not self.lines or header_of(self.lines[0].data) is None:
            self.finish(PushResult(self.folder.name))
        self.since = len(self.lines) + 1 if kept is None else kept.since
        name = self.folder.name
        self.targets = chain(
            (name, f"{name}~{machine}"), (f"{name}~{machine}-{number}" for number in count(2))
        )
        self.target = next(self.targets)

    def compare(self, there: Sequence[tuple[int, str, str]], counted: tuple[int, str], machine: str) -> bool:
        """Compare the lines with those of the target in the store; return whether it can be claimed.

        `counted` are the number of lines and the last hash that the store records for the target. If the
        lines differ, the next target is tried, or the difference becomes a conflict. If nothing has to be
        sent, or the store has miscounted, the push is finished.
        """
        pairs = zip(self.lines, there, strict=False)
        other = next(((here, one) for here, one in pairs if (here.seq, here.sha256) != one[:2]), None)
        if other is not None:
            here, (_, sha256, sender) = other
            if self.target == self.folder.name and (here.seq < self.since or sender == machine):
                self.finish(
                    PushResult(
                        self.target,
                        conflict=Conflict(f"attempt {self.target}", here.seq, here.sha256, sha256),
                    )
                )
            else:
                self.target = next(self.targets)
        elif not self.hold and len(there) >= len(self.lines):
            self.finish(PushResult(self.target, START.after(self.lines)))
        elif counted != _last(there):
            self.finish(PushResult(self.target, conflict=_miscounted(self.target, len(there))))
        return other is None and not self.done

    def claimed(self, fence: int, there: int) -> None:
        """Continue after the store's `there` lines under `fence`.

        A `fence` of 0 means that another machine holds the lease: then the push is finished if the store has
        all lines; otherwise the next target is tried.
        """
        if fence:
            self.pushed = PushResult(self.target, START.after(self.lines[:there]), fence)
            self.lines = self.lines[there:]
        elif there >= len(self.lines):
            self.finish(PushResult(self.target, START.after(self.lines)))
        else:
            self.target = next(self.targets)

    def moves(self) -> tuple[object, ...]:
        """Return the changes that the lines make to the attempt's row in the store, as values of `_MOVED`."""
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
        """Return a new row for the attempt, as the values of `_CLAIMED`."""
        name, header = self.folder.name, header_of(self.lines[0].data) or {}
        parent = name if self.target != name else branch_of(name)[0] or None
        return (self.target, parent, *header.values())


def push_attempts(
    engine: Engine,
    machine: str,
    pushes: Sequence[ToPush],
    report: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> list[PushResult]:
    """Send the lines of attempts that are missing from the store, and return a result for each.

    Differences are conflicts in the results. `report` receives the number of finished attempts, the total and
    the current attempt; it may raise to stop, and sent lines remain. Raises `TeamStoreError` if other
    processes keep changing an attempt.
    """
    waiting = list(pushes)
    for _ in range(_TRIES):
        for batch in portions(waiting, _AT_ONCE, attrgetter("size")):
            report(len(pushes) - len(waiting), len(pushes), batch[0].folder.name)
            _push(engine, machine, batch)
        waiting = [each for each in waiting if not each.done]
        if not waiting:
            return [each.pushed for each in pushes]
    raise TeamStoreError(
        f"The attempt {waiting[0].folder.name} can't be sent: other processes keep changing it on the store.",
        hint="`gistpoint store check` shows its state.",
    )


def _push(engine: Engine, machine: str, batch: Sequence[ToPush]) -> None:
    """Send lines of some attempts in one transaction; those that others changed are left for the next try."""
    with ThreadPoolExecutor(_DISK_AT_ONCE) as pool:
        list(pool.map(lambda each: each.read(machine), batch))
    try:
        with engine.begin() as connection:
            held = _send_lines(connection, machine, batch)
    except (DBAPIError, _ChangedError) as error:
        if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", "") != _DEADLOCK:
            raise
        held = set()
    for each in _undone(batch):
        if each.pushed.attempt in held:
            each.added += len(each.lines)
            each.finish(replace(each.pushed, position=each.pushed.position.after(each.lines)))
        else:
            each.pushed = NOWHERE


def _undone(batch: Iterable[ToPush]) -> list[ToPush]:
    return [each for each in batch if not each.done]


def _send_lines(connection: Connection, machine: str, batch: Sequence[ToPush]) -> set[str]:
    """Take the missing leases and add the lines; return the attempts whose leases were still valid."""
    while unplaced := [each for each in _undone(batch) if not each.pushed.fence]:
        _place(connection, machine, sorted(unplaced, key=attrgetter("target")))
    ready = {each.pushed.attempt: each for each in _undone(batch)}
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


def _place(connection: Connection, machine: str, batch: Sequence[ToPush]) -> None:
    """Compare journals with their targets' lines in the store, and claim those that can be continued."""
    names = [each.target for each in batch]
    # The rows are locked, so that nobody adds lines during the comparison.
    rows = {row.id: (row.seq, row.head) for row in connection.execute(_LOCKED, {"ids": names})}
    there = hashes(connection, [(ATTEMPTS, name) for name in names])
    claiming = [
        each
        for each in batch
        if each.compare(there[ATTEMPTS, each.target], rows.get(each.target, (0, "")), machine)
    ]
    claims = _claim(connection, machine, claiming)
    for each in claiming:
        known = there[ATTEMPTS, each.target]
        fence, *counted = claims.get(each.target, (0, *_last(known)))
        if tuple(counted) == _last(known):
            each.claimed(fence, len(known))
        else:  # another process on this machine was faster, so nothing will be added
            each.pushed = PushResult(each.target, fence=fence)


def _claim(connection: Connection, machine: str, batch: Sequence[ToPush]) -> dict[str, tuple[int, int, str]]:
    """Take or renew leases; return the fence, number of lines and last hash of each attempt claimed.

    Attempts whose lease another machine holds are missing from the result.
    """
    if not batch:
        return {}
    given = arrays(_CLAIMED, [each.claims() for each in batch])
    return {
        row.id: (row.fence, row.seq, row.head)
        for row in connection.execute(_CLAIM, {**given, "machine": machine})
    }


def _last(there: Sequence[tuple[int, str, str]]) -> tuple[int, str]:
    return (len(there), there[-1][1]) if there else (0, "")


def _miscounted(attempt: str, seq: int) -> Conflict:
    words = (
        "the store's lines are not those that it counts; nothing was sent. After its owner has"
        " deleted the attempt's row in `attempts`, `gistpoint store sync` sends everything."
    )
    return Conflict(f"attempt {attempt}", seq, words=words)


class AttemptElsewhereError(TeamStoreError, AttemptError):
    """Another machine is continuing an attempt.

    It is an `AttemptError`, so a caller that reports why an attempt can't be opened also reports this.
    """


def take_over(engine: Engine, folder: Path, machine: str) -> None:
    """Prepare to resume an attempt here: fetch the lines that other machines added, and take the lease.

    Nothing is done for an attempt that is not shared, is not in the store, or has an unreadable journal. A
    journal that differs from the store's is left unchanged, because it is a branch. Raises
    `AttemptElsewhereError` while another machine holds the lease.
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
                f"Attempt {folder.name} now continues on another machine"
                f" ({holder_of(connection, folder.name)}).",
                hint="Close it there, or wait a minute after that machine is switched off.",
            )
        if len(there) > len(lines):
            new = lines_beyond(connection, {source: len(lines)}, {source: len(there)})
            add_lines(folder, len(lines), [line.data for line in new])


def pull_attempts(
    engine: Engine,
    root: Path,
    machine: str,
    report: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> tuple[int, int, list[Conflict]]:
    """Fetch the lines missing from this machine's attempts, and whole attempts missing here.

    A journal that this machine sent as a branch is first renamed to it. Returns the numbers of attempts and
    lines, and the conflicts. `report` receives the number of finished attempts, the total and the current
    attempt; it may raise to stop, and fetched lines remain.
    """
    conflicts: list[Conflict] = []
    fetched = lines = done = 0
    with engine.connect() as connection:
        there = ends_there(connection)
        for name, (seq, head) in there.items():
            if branch_of(name)[1].startswith(machine):
                _rename_to_branch(root, name, seq, head)
        named = {name: seq for name, (seq, _) in there.items() if is_attempt_id(name)}
        conflicts += map(_misnamed, sorted(there.keys() - named.keys()))
        known = _attempts_behind(root, named)
        last = {source: there[source[1]][0] for source in known}
        found = (
            (name, [line.data for line in new])
            for (_, name), new in groupby(lines_beyond(connection, known, last), attrgetter("source"))
        )
        for batch in portions(found, _AT_ONCE, lambda new: sum(map(len, new[1]))):
            report(done, len(known), batch[0][0])
            done += len(batch)
            added = _add_together(root, [(name, known[ATTEMPTS, name], data) for name, data in batch])
            counts = _numbers(added, conflicts)
            fetched, lines = fetched + len(counts), lines + sum(counts)
    return fetched, lines, conflicts


def _numbers(added: Sequence[int | Conflict], conflicts: list[Conflict]) -> list[int]:
    """Return each journal's number of added lines, without zeros, and append the conflicts to `conflicts`."""
    conflicts += (got for got in added if isinstance(got, Conflict))
    return [got for got in added if isinstance(got, int) and got]


def _misnamed(name: str) -> Conflict:
    return Conflict(f"attempt {name[:80]!r}", words="is not a valid name of an attempt; it was not fetched.")


def _attempts_behind(root: Path, there: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Return the last line of each attempt that has fewer lines here than in the store."""
    here = {name: (end_of(root / name / JOURNAL) or START).seq for name in there}
    return {(ATTEMPTS, name): seq for name, seq in here.items() if seq < there[name]}


def _add_together(root: Path, new: Sequence[tuple[str, int, list[bytes]]]) -> list[int | Conflict]:
    """Add lines to journals as `add_lines` does, and return its results; syncs new folders to disk, too."""
    with ThreadPoolExecutor(_DISK_AT_ONCE) as pool:
        added = list(pool.map(lambda one: add_lines(root / one[0], *one[1:]), new))
    sync_folder(root)
    return added


def add_lines(folder: Path, seq: int, data: Iterable[bytes]) -> int | Conflict:
    """Add the store's lines after the line `seq` to a journal, and return their number, or a conflict.

    Nothing is added if the journal is open, has changed, or ends with a torn line.
    """
    path, attempt = folder / JOURNAL, f"attempt {folder.name}"
    with _locked_unless_open(folder) as is_locked:
        end = end_of(path) or START
        if not is_locked or end.seq != seq:
            return 0
        if path.exists() and end.offset != path.stat().st_size:
            return 0  # a torn line remains, which the next resumption moves to another file
        try:
            new = chained(data, end.seq, end.head)
        except BrokenChainError as error:
            words = "the chain of hashes breaks on the store."
            if seq and error.at == seq + 1:
                words = (
                    "the store's next line does not follow the one here: the attempt was continued on"
                    " two machines."
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
        if has_head(folder):  # this machine had no head while the fetched lines were written
            HeadFile(folder, Head(new[-1].seq, new[-1].sha256, new[-1].seq + 1)).close()
        return len(new)


def _append(path: Path, lines: Iterable[JournalLine]) -> None:
    """Write lines to a journal; a new journal appears with all of them or not at all.

    The caller syncs the folder in which a new attempt's folder was made.
    """
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


@contextmanager
def _locked_unless_open(folder: Path) -> Iterator[bool]:
    """Lock an attempt, so that no process can open it, and yield True; yield False if one has it open."""
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


def _rename_to_branch(root: Path, branch: str, seq: int, head: str) -> None:
    """Rename the folder of a journal that was sent as a branch, because the store's journal has its name."""
    folder, place = root / branch_of(branch)[0], root / branch
    end = end_of(folder / JOURNAL)
    if place.exists() or end is None or (end.seq, end.head) != (seq, head) or is_open(folder):
        return
    folder.rename(place)
    move_head(folder, place)
    sync_folder(root)


def local_attempts(root: Path) -> list[Path]:
    """Return the folders of this machine's attempts that are shared through the store."""
    if not root.is_dir():
        return []
    return sorted(place for place in root.iterdir() if (place / JOURNAL).is_file() and is_shared(place))


def to_push(connection: Connection, folders: Iterable[Path]) -> dict[Path, int]:
    """Return the number of lines missing from the store, by the attempt's folder; 0 if any lines differ."""
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
    for place, sha256 in hashes_at(connection, behind.keys()).items():
        folder, head = behind[place]
        if sha256 != head:
            found[folder] = 0
    return found


def miscounted(connection: Connection, folders: Iterable[Path]) -> dict[str, Conflict]:
    """Return a conflict, by id, for each attempt whose lines in the store don't match its count."""
    names = {folder.name for folder in folders}
    return {
        row.id: _miscounted(row.id, row.lines) for row in connection.execute(_MISCOUNTED) if row.id in names
    }


def ends_there(connection: Connection) -> dict[str, tuple[int, str]]:
    """Return, by id, each attempt's number of lines in the store and the hash of the last one."""
    return {row.id: (row.seq, row.head) for row in connection.execute(_ALL)}
