"""A fix of the validator's own: written from the corrupted function, kept as it is typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gistpoint.core.generation.dossier import Dossier
from gistpoint.tui.screens.editing_pane import EditingPane


class FixPage(EditingPane):
    """The corrupted functions to write anew; several are chosen among with Alt+B.

    A buffer is named by the task's id, a slash and the function: two tasks may be about the same function.
    """

    EMPTY = "Open a task to try a fix."
    WORDS = "F9 runs the suite on it"

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[str, str] = {}
        self._kept: dict[str, str] = {}

    def show(self, dossier: Dossier, fixes: Mapping[str, str]) -> None:
        """Open the fix of another task where it was left."""
        task = dossier.task.id
        self._starts = {f"{task}/{target.name}": f"{target.corrupted.rstrip()}\n" for target in dossier.answer.targets}
        self._kept = {f"{task}/{name}": code for name, code in fixes.items()}
        self.open(next(iter(self._starts)))

    def keep(self, buffer: str, code: str) -> None:
        """Note what was written by now."""
        self._kept[buffer] = code

    @property
    def unsaved(self) -> tuple[str, str] | None:
        """The buffer and its code, where that is other than what was kept or where it started."""
        buffer, code = self.buffer, self.editor.code
        known = self._kept.get(buffer, self._starts.get(buffer))
        return None if not buffer or code == known else (buffer, code)

    def start_of(self, name: str) -> str:
        """Return the corrupted text."""
        return self._starts.get(name, "")

    def kept(self, name: str) -> str | None:
        """Return the half-written fix."""
        return self._kept.get(name)

    def begun(self) -> Sequence[str]:
        """Return all corrupted functions."""
        return list(self._starts)

    def words_of(self, name: str) -> str:
        """Return the function."""
        return name.partition("/")[2]
