"""The commands of the palette: every binding of the screen in sight that can be used now, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from gistpoint.tui.keys import KEYS, Key, Scope, shown_keys


class KeyCommands(Provider):
    """Offers the rows of the key table, so that nothing can be reached by key alone."""

    def _possible(self) -> Iterator[Key]:
        scopes = {Scope.APP, *getattr(self.screen, "SCOPES", ())}
        for key in KEYS:
            if key.scope not in scopes or key.action == "command_palette":
                continue
            name = key.action.partition("(")[0]
            owner = self.app if key.scope is Scope.APP else self.screen
            if owner.check_action(name, ()) is not False:
                yield key

    def _run(self, key: Key) -> None:
        owner = self.app if key.scope is Scope.APP else self.screen
        self.app.call_later(partial(owner.run_action, key.action))

    def _help(self, key: Key) -> str:
        return f"{key.tooltip} ({shown_keys(key.keys)})"

    async def discover(self) -> Hits:
        """Offer everything before a letter is typed."""
        for key in self._possible():
            yield DiscoveryHit(key.description, partial(self._run, key), help=self._help(key))

    async def search(self, query: str) -> Hits:
        """Offer what fits the letters."""
        matcher = self.matcher(query)
        for key in self._possible():
            score = matcher.match(f"{key.description} {key.tooltip}")
            if score > 0:
                yield Hit(score, matcher.highlight(key.description), partial(self._run, key), help=self._help(key))
