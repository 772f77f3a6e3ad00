"""Work that a run does twice or undoes: repeated calls, files read again unchanged, edits taken back."""

from __future__ import annotations

from dataclasses import dataclass

from gistpoint.core.canonical import sha256_of_text
from gistpoint.sessions.runs.changes import Change, Inserted, Patched, Redefined, Replaced, Undone, Untold, Written
from gistpoint.sessions.runs.commands import Look, looks_of, same_path, shell_command, simple_commands
from gistpoint.sessions.runs.model import Call, Step, StepKind

_REPEATABLE = frozenset({StepKind.VIEW, StepKind.SEARCH, StepKind.EXECUTE, StepKind.TEST, StepKind.TOOL})
_UNDOING = frozenset({"checkout", "restore", "reset", "stash", "revert"})


@dataclass(frozen=True, slots=True)
class Wasted:
    """What a step repeats or takes back: the numbers of the earlier steps, None where there is none."""

    repeats: int | None = None
    rereads: int | None = None
    reverts: int | None = None


class Waste:
    """Follows the steps of a run, in order; holds hashes, never texts."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._looks: list[tuple[Look, int]] = []
        self._edits: dict[str, list[tuple[str, int]]] = {}
        """The state of each thing that is edited, by hash, with the step that brought it about."""
        self._inverse: dict[str, int] = {}
        self._last_edit: dict[str, int] = {}

    def feed(self, step: Step, changes: tuple[Change, ...]) -> Wasted:
        """Say what the next step repeats; `changes` are its own."""
        repeats, rereads = self._repeated(step)
        reverts = self._reverted(step, changes)
        if changes or step.kind is StepKind.EDIT or reverts is not None:
            self._calls.clear()
            self._forget(changes)
        return Wasted(repeats if rereads is None else None, rereads, reverts)

    def _repeated(self, step: Step) -> tuple[int | None, int | None]:
        if step.kind not in _REPEATABLE or not step.calls:
            return None, None
        earlier = [self._calls.get(_signature(call)) for call in step.calls]
        looks = [look for call in step.calls for look in looks_of(call)] if step.kind is not StepKind.TEST else []
        read = [next((at for known, at in self._looks if known.covers(look)), None) for look in looks]
        for call in step.calls:
            self._calls.setdefault(_signature(call), step.index)
        for look, at in zip(looks, read, strict=True):
            if at is None:
                self._looks.append((look, step.index))
        return (None if None in earlier else earlier[0]), (read[0] if read and None not in read else None)

    def _forget(self, changes: tuple[Change, ...]) -> None:
        """Drop what is known of the files that were edited, or of all where nobody knows which."""
        if not changes or any(isinstance(change, Untold) and not change.path for change in changes):
            self._looks.clear()
            return
        self._looks = [
            (look, at) for look, at in self._looks if not any(same_path(look.path, change.path) for change in changes)
        ]

    def _reverted(self, step: Step, changes: tuple[Change, ...]) -> int | None:
        found = [self._undone(step.index, change) for change in changes]
        if step.diff_so_far is not None:
            found.append(self._state("", sha256_of_text(step.diff_so_far.strip()), step.index, first=_NO_DIFF))
        elif _undoes_by_git(step) and self._last_edit:
            found.append(max(self._last_edit.values()))
            self._last_edit.clear()
        return next((at for at in found if at is not None), None)

    def _undone(self, index: int, change: Change) -> int | None:
        before = self._last_edit.get(change.path)
        if isinstance(change, Undone):
            self._last_edit.pop(change.path, None)
            return before
        self._last_edit[change.path] = index
        if isinstance(change, Written):
            return self._state(change.path, sha256_of_text(change.text), index)
        if isinstance(change, Redefined):
            return self._state(f"{change.path}::{change.name}", sha256_of_text(change.code.strip()), index)
        if isinstance(change, Replaced):
            forth, back = _pair(change.path, change.old, change.new), _pair(change.path, change.new, change.old)
            found = self._inverse.pop(back, None)
            if found is None:
                self._inverse[forth] = index
            return found
        assert isinstance(change, Inserted | Patched | Untold)
        return None

    def _state(self, what: str, digest: str, index: int, first: str = "") -> int | None:
        """Note a state; return the step that led away from it, if it was there before and left since."""
        states = self._edits.setdefault(what, [(first, -1)] if first else [])
        if states and states[-1][0] == digest:
            return None
        place = next((place for place, (known, _) in enumerate(states) if known == digest), None)
        found = None if place is None else states[place + 1][1]
        if place is None:
            states.append((digest, index))
        else:
            del states[place + 1 :]
        return found


_NO_DIFF = sha256_of_text("")


def _signature(call: Call) -> str:
    return sha256_of_text(f"{call.tool}\0{call.arguments.strip()}")


def _pair(path: str, old: str, new: str) -> str:
    return sha256_of_text(f"{path}\0{sha256_of_text(old)}\0{sha256_of_text(new)}")


def _undoes_by_git(step: Step) -> bool:
    for call in step.calls:
        for words in simple_commands(shell_command(call)):
            if words[0] == "git" and len(words) > 1 and words[1] in _UNDOING and words[1:3] != ["stash", "pop"]:
                return True
    return False
