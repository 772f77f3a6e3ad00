"""A key's action that has to wait for data that a thread is reading; keys typed after it are held."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import Protocol


class HoldsKeys(Protocol):
    """The part of a screen that a held action uses."""

    def hold_keys(self, cancel: Callable[[], bool] | None = None) -> Callable[[], None]:
        """Hold all typing until the returned function is called; Escape calls `cancel`."""
        ...


class HeldAction:
    """An action that is carried out as soon as the data it needs have been read.

    It may open a prompt, so typing is held meanwhile (decision 126). Escape cancels the action.
    """

    def __init__(self, screen: HoldsKeys) -> None:
        self._screen = screen
        self._do: Callable[[], object] | None = None
        self._release_keys: Callable[[], None] = lambda: None

    def wait(self, do: Callable[[], object]) -> None:
        """Have `do` called later. It replaces an action that is already waiting."""
        self.give_up()
        self._do, self._release_keys = do, self._screen.hold_keys(self.give_up)

    async def ready(self) -> None:
        """Do the waiting action, if there is one, and release the keys for the screen that it has opened."""
        do, self._do = self._do, None
        try:
            if do is not None and isawaitable(done := do()):
                await done
        finally:
            self._release_keys()

    def give_up(self) -> bool:
        """Forget the waiting action, and release the keys. Return whether there was one."""
        was_waiting, self._do = self._do is not None, None
        self._release_keys()
        return was_waiting
