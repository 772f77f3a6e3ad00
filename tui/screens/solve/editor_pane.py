"""The editor for a function, with where its code started."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.tasks.model import Task
from gistpoint.tui.known import shown_function
from gistpoint.tui.screens.editing_pane import EditingPane
from gistpoint.tui.view_models import allowed, stub, target_name


class EditorPane(EditingPane):
    """The code of an attempt: what was half-written when it was left is there again."""

    EMPTY = "Nothing to edit yet: read a function, put the cursor into it (F4) and press e."

    def __init__(self, task: Task, state: AttemptState) -> None:
        super().__init__()
        self._repair, self._state = task, state

    def on_mount(self) -> None:
        """Begin with what there is to write."""
        self.open_first()

    def open_first(self) -> None:
        """Open what was half-written when the attempt was left, else the stub that the brief gives."""
        target = target_name(self._repair)
        buffers = self._state.buffers
        if target:
            self.open(target)
        elif buffers:
            self.open(list(buffers)[-1])
        else:
            self.editor.read_only = True

    def update_from(self, state: AttemptState) -> None:
        """Take up a new state."""
        self._state = state

    @property
    def changed(self) -> bool:
        """Whether the code is other than what it starts with, or was before."""
        return bool(self.buffer) and (self.buffer in self._state.buffers or self.code != self.start_of(self.buffer))

    def start_of(self, name: str) -> str:
        """Return the code that a buffer starts with: the stub, or the function as it was shown."""
        if name == target_name(self._repair):
            return stub(self._repair)
        shown = shown_function(self._state, name)
        return f"{shown.text.rstrip()}\n" if shown is not None else ""

    def kept(self, name: str) -> str | None:
        """Return a function's half-written code."""
        return self._state.buffers.get(name)

    def begun(self) -> Sequence[str]:
        """Return the functions that were begun, the one in sight first."""
        return list(dict.fromkeys([self.buffer, *self._state.buffers])) if self.buffer else []

    def may_leave(self) -> bool:
        """Whether the study allows the user's own editor."""
        return allowed(self._state, "external_editor")
