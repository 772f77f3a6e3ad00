"""Reconstructs the repository at each step of a run, and records how its state is known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.code.names import FunctionRef
from gistpoint.core.diffs import DiffError, DiffLineKind, FileDiff, apply, compute, parse
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.records.model import CutText, Step
from gistpoint.sessions.runs.changes import Change, NotAppliedError, Restored, changes_of, window_path
from gistpoint.sessions.runs.commands import views_in
from gistpoint.sessions.runs.edited_tree import EditedTree, FileState


class Badge(StrEnum):
    """The source from which the state of the repository at a step is known."""

    RECORDED = "recorded"
    """The run recorded the state, as a cumulative diff."""
    FROM_EDITS = "from edits"
    """The state was inferred from the arguments of the edits."""
    RE_EXECUTED = "re-executed"
    """The calls were repeated in a new workspace."""
    UNKNOWN = "unknown"
    """A change was not recorded, or does not fit the files; the state contains only the other changes."""


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """The repository after a step."""

    step: int
    badge: Badge
    diff: tuple[FileDiff, ...] = ()
    """All changes since the start.

    If the files at the start are unknown, these are only the known parts, whose line numbers count from their
    own beginning.
    """
    this_step: tuple[FileDiff, ...] = ()
    """The changes of this step."""
    tree: SourceTree | None = None
    """All files, if those at the start are known; a deleted file is empty here and listed in `deleted`."""
    files: Mapping[str, bytes] | None = None
    """The changed files whose whole content is known, by path."""
    deleted: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    """A line for each change that could not be followed, with its step."""


@dataclass(frozen=True, slots=True)
class _Point:
    """The state after a change.

    Points share their lists: only the first `parts_count` and `problems_count` items belong to this one.
    """

    step: int
    badge: Badge
    parts: list[FileDiff]
    parts_count: int
    problems_count: int

    @property
    def known_parts(self) -> tuple[FileDiff, ...]:
        return tuple(self.parts[: self.parts_count])


class RepositoryHistory:
    """Follows the steps of a run, which are fed in order; `at` returns the repository after any of them.

    `tree` contains the task's files at the start of the run. Without it, whole files are known only from
    their first complete write on, and everything else is known in parts.
    """

    def __init__(self, tree: SourceTree | None = None, *, target: FunctionRef | None = None) -> None:
        self._tree = tree
        self._target = target
        self._edited = EditedTree(tree)
        self._parts: list[FileDiff] = []
        self._problems: list[str] = []
        self._badge = Badge.FROM_EDITS
        self._points: list[_Point] = [_Point(-1, Badge.FROM_EDITS, self._parts, 0, 0)]
        self._versions: dict[str, list[tuple[int, FileState]]] = {}
        self._executed: dict[int, Mapping[str, bytes | None]] = {}
        self._recorded: str | None = None
        self._fed = 0

    @property
    def fed(self) -> int:
        """The number of steps fed so far."""
        return self._fed

    def feed(self, step: Step) -> Badge:
        """Follow the next step, and return how the state after it is known."""
        self._fed = step.index + 1
        for look in views_in(step):
            self._edited.look(look.path)
        self._edited.look(window_path(step))
        if step.diff_so_far is not None and self._take_recorded(step.index, step.diff_so_far):
            return self._badge
        changes = changes_of(step, self._target)
        for change in changes:
            self._follow(step.index, change)
        if changes:
            self._note(step.index)
        return self._badge

    def end(self, submission: str) -> None:
        """Set the last state from the diff that a run submitted, unless that state was recorded."""
        if not self._fed or self._badge is Badge.RECORDED:
            return
        if _is_diff(submission):
            self._take_recorded(self._fed - 1, submission)

    def put(self, step: int, files: Mapping[str, bytes | None]) -> None:
        """Set the files that differ from the start after the re-executed `step`; None for deleted files."""
        self._executed[step] = dict(files)

    def at(self, step: int) -> RepositoryState:
        """Return the repository after a step. Raises IndexError if the step was not fed."""
        if not 0 <= step < self._fed:
            raise IndexError(step)
        point = self._point(step)
        files, before = self._files(step), self._files(step - 1)
        badge, parts, new_parts = point.badge, point.known_parts, self._new_parts(step, point)
        problems = tuple(self._problems[: point.problems_count])
        if self._execution(step) is not None:
            badge, parts, new_parts, problems = Badge.RE_EXECUTED, (), (), ()
        known = {path: data for path, data in files.items() if data is not None}
        deleted = frozenset(path for path, data in files.items() if data is None)
        tree = None
        if self._tree is not None:
            tree = self._tree.with_files({**known, **dict.fromkeys(deleted, b"")})
        return RepositoryState(
            step,
            badge,
            self._file_differences({}, files) + parts,
            self._file_differences(before, files) + new_parts,
            tree,
            known,
            deleted,
            problems,
        )

    def _point(self, step: int) -> _Point:
        return self._points[bisect_right(self._points, step, key=lambda point: point.step) - 1]

    def _execution(self, step: int) -> Mapping[str, bytes | None] | None:
        """Return the changed files, by path, after a re-executed step; None for any other step.

        A step that changed nothing counts as re-executed if the step before it does.
        """
        last = max((known for known in self._executed if known <= step), default=None)
        if last is None:
            return None
        changed_since = self._point(step).step > last
        return None if changed_since else self._executed[last]

    def _files(self, step: int) -> Mapping[str, bytes | None]:
        """Return the files that differ from the start after a step, by path; None for deleted files."""
        executed = self._execution(step)
        if executed is not None:
            return executed
        found: dict[str, bytes | None] = {}
        for path, versions in self._versions.items():
            place = bisect_right(versions, step, key=lambda version: version[0]) - 1
            if place < 0:
                continue
            _, state = versions[place]
            if state.differs:
                found[path] = state.data
        return found

    def _new_parts(self, step: int, point: _Point) -> tuple[FileDiff, ...]:
        before = self._point(step - 1)
        if before is point:
            return ()
        are_recorded = point.badge is Badge.RECORDED and before.badge is Badge.RECORDED
        if not are_recorded:
            shares_list = before.parts is point.parts
            first_new = before.parts_count if shares_list else 0
            return point.known_parts[first_new:]
        old = {part.path: part for part in before.known_parts}
        new = {part.path: part for part in point.known_parts}
        changes = (between(old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys()))
        return tuple(filter(None, changes))

    def _file_differences(
        self, before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]
    ) -> tuple[FileDiff, ...]:
        """Return the differences between the whole files of two points; {} is the start."""
        found: list[FileDiff] = []
        for path in sorted(before.keys() | after.keys()):
            start = self._edited.original(path)
            old, new = before.get(path, start), after.get(path, start)
            if old != new:
                found.append(_file_diff(path, old, new))
        return tuple(found)

    def _take_recorded(self, index: int, text: str) -> bool:
        """Apply a recorded cumulative diff; return False if the diff is unreadable."""
        is_unchanged = text == self._recorded and self._badge is Badge.RECORDED
        if is_unchanged:
            return True
        try:
            diffs = _recorded_diffs(text)
        except DiffError as error:
            self._problem(index, str(error))
            return False
        self._edited.reset()
        self._parts = []
        for diff in diffs:
            self._take_file(index, diff)
        self._recorded, self._badge = text, Badge.RECORDED
        self._note(index)
        return True

    def _take_file(self, index: int, diff: FileDiff) -> None:
        if self._tree is None or diff.binary:
            self._parts.append(diff)
            return
        try:
            self._edited.patch_from_start(diff)
        except NotAppliedError as error:
            self._parts.append(diff)
            self._problem(index, str(error))

    def _follow(self, index: int, change: Change) -> None:
        if self._edited.is_outside(change):
            return
        if self._badge is Badge.RECORDED:
            self._badge = Badge.FROM_EDITS
        if isinstance(change, Restored):
            self._drop_parts(change.path)
        try:
            self._edited.apply(change)
        except NotAppliedError as error:
            part = change.part(self._edited.place(change.path))
            if part is not None and not error.is_wrong:
                self._parts.append(part)
                return
            self._badge = Badge.UNKNOWN
            self._problem(index, str(error))

    def _drop_parts(self, path: str) -> None:
        """Drop the known parts of a file that was restored, or of all files if `path` is empty."""
        # Earlier points share the list, so it is replaced and never changed.
        if not path:
            self._parts = []
            return
        place = self._edited.place(path)
        self._parts = [part for part in self._parts if part.path != place]

    def _problem(self, index: int, text: str) -> None:
        self._problems.append(f"step {index + 1}: {text}")

    def _note(self, index: int) -> None:
        if self._points[-1].step == index:
            self._points.pop()
        self._points.append(_Point(index, self._badge, self._parts, len(self._parts), len(self._problems)))
        for path, state in self._edited.take_touched().items():
            self._versions.setdefault(path, []).append((index, state))


def _recorded_diffs(text: str) -> tuple[FileDiff, ...]:
    """Return the diffs of files in a recorded cumulative diff.

    Raises `DiffError` if it is cut or unreadable.
    """
    if isinstance(text, CutText):
        raise DiffError("The recorded diff is too long to follow.")
    diffs = parse(text)
    if text.strip() and not diffs:
        raise DiffError("The recorded text is not a diff.")
    return diffs


def _is_diff(text: str) -> bool:
    try:
        return bool(parse(text))
    except DiffError:
        return False


def _file_diff(path: str, old: bytes | None, new: bytes | None) -> FileDiff:
    old_path = None if old is None else path
    new_path = None if new is None else path
    before, after = old or b"", new or b""
    if b"\0" in before[:8000] + after[:8000]:
        return FileDiff(old_path, new_path, binary=True)
    texts = (data.decode("utf-8", "surrogateescape") for data in (before, after))
    return compute(*texts, old_path=old_path, new_path=new_path)


_UNKNOWN_LINE = "\0"
_MOST_LINES = 1_000_000


def between(before: FileDiff | None, after: FileDiff | None) -> FileDiff | None:
    """Return the difference between a file's states after two diffs of one start; None if there is none.

    Both diffs are applied to the lines of the start that they show, with a placeholder for every other line.
    That suffices, because each line that changed between the two states is in one of the diffs, with three
    lines around it. If a diff is binary, or if they contradict each other, `after` itself is returned, or
    `before` if `after` is None.
    """
    if before == after:
        return None
    known = [diff for diff in (before, after) if diff is not None]
    if any(diff.binary for diff in known):
        return known[-1]
    try:
        start = _start(known)
        old, new = _applied(start, before), _applied(start, after)
    except DiffError:
        return known[-1]
    old_path, new_path = _path_after(before, after), _path_after(after, before)
    found = compute(old, new, old_path=old_path, new_path=new_path)
    return found if found.hunks or old_path != new_path else None


def _applied(start: str, diff: FileDiff | None) -> str:
    return start if diff is None else apply(start, diff)


def _path_after(diff: FileDiff | None, other: FileDiff | None) -> str | None:
    """Return the path of a file after `diff`; if that is None, its path before the `other` diff."""
    if diff is not None:
        return diff.new_path
    return None if other is None else other.old_path


def _start(diffs: list[FileDiff]) -> str:
    """Return the text of a file before some diffs, with placeholders for lines that none of them shows.

    Raises `DiffError` if the text would have more than a million lines.
    """
    lines: dict[int, str] = {}
    end = 0
    for diff in diffs:
        for hunk in diff.hunks:
            # Without old lines, the hunk's position is after the line that it names.
            end = max(end, hunk.old_start + hunk.old_count - 1, hunk.old_start)
            for line in hunk.lines:
                if line.old is None or line.kind is DiffLineKind.ADDED:
                    continue
                newline = "\n" if line.newline else ""
                lines[line.old] = line.text + newline
    if end > _MOST_LINES:
        raise DiffError("The diff refers to more lines than the files have.")
    return "".join(lines.get(number, _UNKNOWN_LINE + "\n") for number in range(1, end + 1))
