"""What every app of gistpoint does: themes, keys, help, and what happens when something goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual._context import active_message_pump  # tells whose handler raised; there is no public way to ask
from textual.actions import ActionParseResult
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.theme import Theme
from textual.widget import AwaitMount

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.user_settings import UserSettings
from gistpoint.tui.crash import write_crash
from gistpoint.tui.keys import Scope, bindings_of
from gistpoint.tui.palette import KeyCommands
from gistpoint.tui.settings import read_settings
from gistpoint.tui.starting import START_S, go_on_collecting
from gistpoint.tui.themes import OWN, usable_theme

_OWN_BY_NAME = {theme.name: theme for theme in OWN}
_NARROW, _WIDE = (0, "-narrow"), (120, "-wide")
BREAKPOINTS: list[tuple[int, str]] | None = [_NARROW, _WIDE]


def fit_width(screen: Screen[Any], width: int) -> None:
    """Give a screen that is not up yet the class of its width, which else restyles all of it when it is."""
    screen.set_class(width >= _WIDE[0], _WIDE[1], update=False)
    screen.set_class(width < _WIDE[0], _NARROW[1], update=False)


class BaseApp(App[object]):
    """An app that stays up: an unexpected exception is logged, and its screens begin anew.

    Its first screen is the ground of the stack, and the theme is chosen before the style sheets are read, so that
    nothing is laid out or styled twice before the first frame.
    """

    TITLE = "gistpoint"
    COMMANDS: ClassVar[Any] = {KeyCommands}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Scope.APP)]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    ENABLE_COMMAND_PALETTE = True
    DEFAULT_MODE = "first"

    def __init__(self, locations: Locations, styles: str) -> None:
        """`styles` is the path of the first screen's style sheet, which is read with the app's own."""
        settings, self._unusable = _settings_of(locations)
        self.set_reactive(App.theme, usable_theme(settings.theme))
        super().__init__(css_path=["base.tcss", styles])
        self.locations = locations
        self.keymap: Mapping[str, str] = settings.keys
        """The user's own keys by binding id."""
        self.crashes: list[Exception] = []
        """Unexpected exceptions so far."""
        self._ground: Screen[Any] | None = None
        self.add_mode(self.DEFAULT_MODE, self._lay_ground)

    @property
    def available_themes(self) -> dict[str, Theme]:
        """All themes by name, ours among Textual's."""
        return {**super().available_themes, **_OWN_BY_NAME}

    def get_theme(self, theme_name: str) -> Theme | None:
        """Return a theme by its name; asked for with every line that is drawn."""
        return _OWN_BY_NAME.get(theme_name) or super().get_theme(theme_name)

    def first_screen(self) -> Screen[None]:
        """Return the screen that all others lie upon."""
        raise NotImplementedError

    def _lay_ground(self) -> Screen[Any]:
        self._ground = self.first_screen()
        fit_width(self._ground, self.size.width)
        return self._ground

    def pop_screen(self) -> AwaitComplete:
        """Close the screen in sight; with the first one the program ends."""
        if self.screen is self._ground:
            self.exit()
            return AwaitComplete()
        return super().pop_screen()

    @property
    def ground_renews_itself(self) -> bool:
        """Whether the screen that all others lie upon shows the first one when it comes into sight again."""
        return False

    def begin_anew(self) -> AwaitMount:
        """Show the first screen again, as the new ground."""
        return self.push_screen(self._lay_ground())

    def on_mount(self) -> None:
        """Take up the user's keys; tell what is wrong with the settings."""
        if self.keymap:
            self.set_keymap(dict(self.keymap))
        self.set_timer(START_S, go_on_collecting)
        if self._unusable is not None:
            self.call_later(self._failed, self._unusable)

    def run_to_exit_code(self) -> int:
        """Run until the user leaves; 0, or 1 where it ended by an error."""
        self.run()
        return self.return_code or 0

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a toast; its text is literal unless asked otherwise."""
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    @work(thread=True, group="open", exit_on_error=False)
    def in_thread(self, body: Callable[[], object]) -> None:
        """Run what may take a while; whatever it raises reaches the screen."""
        try:
            body()
        except UserError as error:
            self.call_from_thread(self._failed, error)
        except Exception as error:
            self.call_from_thread(self._crashed, error)

    def _failed(self, error: UserError) -> None:
        from gistpoint.tui.screens.dialogs.ask import show_error

        show_error(self, error)

    def action_help(self) -> None:
        """Show keys and explanations for the screen in sight."""
        from gistpoint.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            page = getattr(self.screen, "HELP_PAGE", "home")
            scopes = getattr(self.screen, "SCOPES", ())
            self.push_screen(HelpScreen(page, self.keymap, *scopes))

    def action_leave_program(self) -> None:
        """Close the program."""
        self.exit()

    # What nobody expected

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action; one that raises must not end the app, which runs those of all keys itself."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except Exception as error:
            self._crashed(error)
            return True

    def _handle_exception(self, error: Exception) -> None:
        """Take what a handler raised: Textual has no public hook for it.

        A widget whose handler raised is dead, so its screen is closed. Where the app's own handler raised nothing is
        left that could draw, and Textual's own end is taken.
        """
        fatal = active_message_pump.get(None) is self or bool(self.crashes) or not self.is_running
        self._crashed(error, recover=not fatal)
        if fatal:
            super()._handle_exception(error)

    def _crashed(self, error: Exception, *, recover: bool = True) -> None:
        """Log an unexpected exception and tell; the only place where they end up."""
        self.crashes.append(error)
        log = write_crash(self.locations.logs, error, attempt_id=self.attempt_at_risk())
        kept = self.keep_what_is_open(error, log)
        text = f"{type(error).__name__}: {str(error)[:500]}\n\nThe details are in {log}.{kept}"
        if recover:
            self.call_later(self._recover, text)

    def attempt_at_risk(self) -> str:
        """Return the id of the attempt that is open; empty where none is."""
        return ""

    def keep_what_is_open(self, error: Exception, log: Path) -> str:
        """Bring what is open to safety after an unexpected exception; return a sentence that says so."""
        return ""

    async def _recover(self, text: str) -> None:
        """Begin anew with the first screen and tell what happened."""
        from gistpoint.tui.screens.dialogs.ask import MessageDialog

        closing = [App.pop_screen(self) for _ in self.screen_stack[1:]]
        for closed in closing:
            await closed
        if not self.ground_renews_itself:
            await self.begin_anew()
        self.push_screen(MessageDialog("Something unexpected happened", text, hint="This is a bug in gistpoint."))


def _settings_of(locations: Locations) -> tuple[UserSettings, UserError | None]:
    try:
        return read_settings(locations.config), None
    except UserError as error:
        return UserSettings(), error
