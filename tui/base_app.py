"""The base of every gistpoint app: themes, keys, palette, help, and handling of unexpected errors."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import actions, events, work
from textual._ansi_sequences import (
    ANSI_SEQUENCES_KEYS,
)  # the meaning of a terminal's bytes; there is no public way
from textual._callback import invoke
from textual._context import (
    active_message_pump,
)  # names the widget whose handler raised; there is no public way
from textual._time import get_time  # the clock of the events' own times
from textual.actions import ActionParseResult
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.dom import DOMNode
from textual.drivers._writer_thread import WriterThread  # see `_leave_at`
from textual.message_pump import MessagePump
from textual.notifications import Notify, SeverityLevel
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES, Theme
from textual.widget import AwaitMount

from gistpoint import __version__
from gistpoint.core.errors import SettingsError, UserError, did_you_mean
from gistpoint.core.locations import SETTINGS_FILE, Locations
from gistpoint.core.text import visible
from gistpoint.tui.base_screen import BREAKPOINTS, BaseScreen
from gistpoint.tui.jobs import JobFailed
from gistpoint.tui.keys import KEYS, KeyScope, bindings_of, shown_key
from gistpoint.tui.starting import START_S, resume_collecting
from gistpoint.tui.themes import DEFAULT, OWN, is_built_in, theme_named
from gistpoint.tui.widgets.frames import pane_around
from gistpoint.tui.widgets.key_bar import WAYS_OUT

if TYPE_CHECKING:
    from gistpoint.core.user_settings import UserSettings
    from gistpoint.tui.screens.palette import PaletteEntry

for _digit in "123456789":
    # For a terminal on macOS, Textual reads Escape and a digit as a typed character. Others mean Alt+digit.
    cast("dict[str, object]", ANSI_SEQUENCES_KEYS).pop(f"\x1b{_digit}", None)


def write_crash(logs: Path, error: BaseException, *, attempt_id: str = "") -> Path:
    """Write the traceback to a file below `logs` and return its path."""
    logs.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    path = logs / f"crash-{stamp}.log"
    head = f"gistpoint {__version__}\nattempt {attempt_id or 'none'}\n\n"
    path.write_text(
        head + "".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace"
    )
    return path


def read_settings(config: Path) -> UserSettings:
    """Read the settings from a folder. Raises `SettingsError`, also for an unknown binding."""
    from gistpoint.core.user_settings import read_user_settings

    settings = read_user_settings(config)
    known = [key.id for key in KEYS]
    for id in settings.keys:
        if id not in known:
            hint = f"{did_you_mean(id, known)} docs/guide/keys.md lists them.".strip()
            raise SettingsError(f"{config / SETTINGS_FILE}: there is no binding {id!r}.", hint=hint)
    return settings


_OWN_BY_NAME = {theme.name: theme for theme in OWN}
_READ_S = 1.0
"""Seconds after which a toast is unrelated to a change of screen, and closes with the old screen."""


class BaseApp(App[object]):
    """An app that survives unexpected exceptions: it logs them and restarts at the first screen.

    Its first screen is the bottom of the stack. The theme is chosen before the style sheets are read, so that
    nothing is laid out or styled twice before the first frame.
    """

    TITLE = "gistpoint"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.APP)]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    ALLOW_IN_MAXIMIZED_VIEW = "HeaderBar, BudgetBar, KeyBar, FindBar, SearchBar, RunLine, IdleQuestion"
    """The lines of a screen that stay visible while a single pane is zoomed."""
    kept = ""
    """The sentence about the open work in the report of an unexpected exception."""
    ENABLE_COMMAND_PALETTE = False  # Textual's palette; ours is an action of the same name
    # Pushed on top of Textual's own first screen, ours would cost the layout of an empty one (decision 37).
    DEFAULT_MODE = "first"

    def __init__(self, locations: Locations, styles: str) -> None:
        """`styles` is the path of the first screen's style sheet, which is read together with the app's."""
        theme, keys, self._unusable = _settings_of(locations)
        self.locations = locations
        self._user_themes: Mapping[str, Theme] = {}
        self._odd_themes: list[str] = []
        self.set_reactive(App.theme, self._theme_at_start(theme))
        super().__init__(css_path=["base.tcss", styles])
        self.keymap: Mapping[str, str] = keys
        """The user's own keys by binding id."""
        self.crashes: list[Exception] = []
        """Unexpected exceptions so far."""
        self._given_up: Sequence[Screen[Any]] | None = None
        """The screens closed by an unexpected exception, until the user has read about it.

        None at other times.
        """
        self._input_counts_from = 0.0
        """Earlier input was meant for a screen that is gone; on the clock of Textual's events."""
        self._ground: Screen[Any] | None = None
        self.add_mode(self.DEFAULT_MODE, self._lay_ground)

    @property
    def available_themes(self) -> dict[str, Theme]:
        """All themes by name, Textual's and ours."""
        return {**super().available_themes, **_OWN_BY_NAME, **self._user_themes}

    def get_theme(self, theme_name: str) -> Theme | None:
        """Return a theme by its name. Called for every line that is drawn."""
        return (
            _OWN_BY_NAME.get(theme_name) or self._user_themes.get(theme_name) or super().get_theme(theme_name)
        )

    def _theme_at_start(self, wanted: str) -> str:
        """Return the theme named in the settings. If it doesn't exist, note that and return the default."""
        name = theme_named(wanted)
        if is_built_in(name):
            return name
        self._read_themes()
        if name in self._user_themes:
            return name
        meant = did_you_mean(name, [*_OWN_BY_NAME, *self._user_themes, *BUILTIN_THEMES])
        self._odd_themes.append(f"There is no theme {name!r}, so {DEFAULT} is shown.{meant}")
        return DEFAULT

    def _read_themes(self) -> None:
        from gistpoint.tui.user_themes import read_themes

        self._user_themes, self._odd_themes = read_themes(self.locations.config)

    def _tell_of_themes(self) -> None:
        for problem in self._odd_themes:
            self.app.notify(problem, title="Themes", severity="warning")
        self._odd_themes = []

    def get_key_display(self, binding: Binding) -> str:
        """Return the key of a binding in our spelling."""
        return binding.key_display or shown_key(binding.key)

    def first_screen(self) -> Screen[None]:
        """Return the screen at the bottom of the stack."""
        raise NotImplementedError

    def lay_ground(self, screen: Screen[Any]) -> Screen[Any]:
        """Make a screen that is about to be shown the bottom of the stack."""
        self._ground = screen
        if isinstance(screen, BaseScreen):
            screen.fit_width(self.size.width)
        draw = screen._compositor_refresh

        def draw_if_shown() -> None:
            """Draw, unless drawing is suspended: Textual would draw the whole screen even then."""
            if not self._batch_count:
                draw()
                self.ground_drawn()

        screen._compositor_refresh = draw_if_shown  # type: ignore[method-assign]
        return screen

    def ground_drawn(self) -> None:
        """Continue after the bottom screen was drawn; called each time."""

    def _lay_ground(self) -> Screen[Any]:
        ground = self.lay_ground(self.first_screen())
        # Textual would parse every style sheet again, for variables that have not changed.
        ground._css_update_count = self._css_update_count
        return ground

    def pop_screen(self) -> AwaitComplete:
        """Close the top screen. Closing the first one ends the program."""
        if self.screen is self._ground:
            self.exit()
            return AwaitComplete()
        self._leave(self.screen)
        return super().pop_screen()

    def switch_screen(self, screen: Screen[Any] | str) -> AwaitComplete:
        """Replace the top screen."""
        self._leave(self.screen)
        return super().switch_screen(screen)

    @staticmethod
    def _leave(screen: Screen[Any]) -> None:
        if isinstance(screen, BaseScreen):
            screen.leave()

    @property
    def ground_renews_itself(self) -> bool:
        """Whether the bottom screen opens the first one on its own when it is on top again."""
        return False

    def begin_again(self) -> AwaitMount:
        """Show the first screen again as the new bottom of the stack."""
        return self.push_screen(self._lay_ground())

    def on_mount(self) -> None:
        """Apply the user's keys, and report errors in the settings."""
        if self.keymap:
            self.set_keymap(dict(self.keymap))
        self.set_timer(START_S, resume_collecting)
        if self._unusable is not None:
            self.call_later(self._failed, self._unusable)
        self._tell_of_themes()
        self.screen_change_signal.subscribe(self, self._take_back_toasts)
        if self.is_web:
            self.theme_changed_signal.subscribe(self, self._colour_around)
            self._colour_around(self.current_theme)
        if not self.is_headless:
            self._heed_signals()

    def _take_back_toasts(self, screen: Screen[Any]) -> None:
        """Remove toasts of a screen that has closed, except one that explains why the screen has changed."""
        for shown in list(self._notifications):
            if shown.severity == "information" and time() - shown.raised_at > _READ_S:
                self._unnotify(shown)  # private, but there is no public way to remove a single one

    def _colour_around(self, theme: Theme) -> None:
        """Give the margin of a browser's terminal the screen's colour (xterm's "OSC 11")."""
        if (
            theme.background and self._driver is not None
        ):  # Textual has no method to send a sequence to the terminal
            self._driver.write(f"\x1b]11;{Color.parse(theme.background).hex6.lower()}\x07")

    def _heed_signals(self) -> None:
        """Leave properly, saving everything typed, when the terminal is closed or the machine shuts down."""
        for number in (signal.SIGHUP, signal.SIGTERM):
            with suppress(RuntimeError, ValueError):  # the loop runs in a thread other than the main one
                asyncio.get_running_loop().add_signal_handler(number, self._leave_at, number)

    def _leave_at(self, number: signal.Signals) -> None:
        """Leave on a signal. Drawing is discarded when the terminal is gone."""
        writer = getattr(self._driver, "_writer_thread", None)
        if number == signal.SIGHUP and isinstance(writer, WriterThread) and self._driver is not None:
            # Writing to a closed terminal ends Textual's thread, and its driver would wait for it forever.
            signal.signal(
                signal.SIGCONT, signal.SIG_DFL
            )  # comes with a hang-up, and Textual would start to draw again
            with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
                os.dup2(nowhere.fileno(), writer.fileno())
            self._driver._writer_thread = WriterThread(writer._file)  # type: ignore[attr-defined]
            self._driver._writer_thread.start()  # type: ignore[attr-defined]
        self.exit(return_code=128 + number)

    async def on_event(self, event: events.Event) -> None:
        """Note the user's activity if the screen takes the event, then pass the event on."""
        if isinstance(event, events.InputEvent) and event.time < self._input_counts_from:
            return
        if isinstance(event, events.Key) and event.key.startswith("alt+"):
            event.character = (
                None  # a terminal sends Escape and the letter, which fields would take as typing
            )
        if isinstance(event, events.InputEvent):
            for screen in self.screen_stack:
                if isinstance(screen, BaseScreen):
                    screen.input_happened(event.time)
            if isinstance(self.screen, BaseScreen) and not self.screen.takes(event):
                return
        await super().on_event(event)

    def on_exit_app(self) -> None:
        """Leave every screen, whether a key, a signal or a closed browser ends the program."""
        for screen in self.screen_stack:
            self._leave(screen)

    def run_to_exit_code(self) -> int:
        """Run until the user leaves. Return 0, or 1 if an error ended the app."""
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
        """Show a toast. Its text is literal by default, with visible control characters."""
        super().notify(
            visible(message), title=visible(title), severity=severity, timeout=timeout, markup=markup
        )

    def on_notify(self, event: Notify) -> None:
        """Let a toast replace one with the same text."""
        new = event.notification
        for shown in [
            old for old in self._notifications if (old.title, old.message) == (new.title, new.message)
        ]:
            self._unnotify(shown, refresh=False)  # private, but there is no public way to remove a single one

    @work(thread=True, group="open", exit_on_error=False)
    def in_thread(self, body: Callable[[], object]) -> None:
        """Run a function that may take a while. The screen gets whatever it raises."""
        try:
            body()
        except UserError as error:
            self.call_from_thread(self._failed, error)
        except Exception as error:
            self.call_from_thread(self._crashed, error)

    def on_job_failed(self, message: JobFailed) -> None:
        """Show the error."""
        self._failed(message.error)

    def _failed(self, error: UserError) -> None:
        from gistpoint.tui.screens.dialogs.ask import show_error

        show_error(self, error)

    def action_help(self) -> None:
        """Show keys and explanations for the current screen."""
        from gistpoint.tui.screens.help import HelpScreen, elsewhere, sections

        screen = self.screen
        if not isinstance(screen, HelpScreen):
            page = getattr(screen, "HELP_PAGE", "home")
            about = (screen.focused.HELP if screen.focused is not None else None) or ""
            known, rest = sections(screen, self.keymap), elsewhere(screen)
            self.push_screen(HelpScreen(page, known, about, rest))

    def action_command_palette(self) -> None:
        """Show the possible commands, the most used first."""
        from gistpoint.tui.possible import in_order, possible_now
        from gistpoint.tui.screens.palette import PaletteEntry, uses

        screen, counts = self.screen, uses(self.locations.used_commands)
        entries = [one for one in possible_now(screen) if not one.moves and one.key.id != "app.palette"]
        entries.sort(key=lambda one: (in_order(one)[0] > 1, -counts.get(one.key.id, 0), in_order(one)))
        self._offer(
            "Commands",
            [
                PaletteEntry(
                    one.key.id,
                    one.key.description,
                    one.spelt,
                    one.key.tooltip,
                    partial(self.run_action, one.key.action, one.node),
                )
                for one in entries
            ],
        )

    def action_change_theme(self) -> None:
        """Offer the themes, starting with the current one."""
        from gistpoint.tui.screens.palette import PaletteEntry

        self._read_themes()
        self._tell_of_themes()
        own = {**_OWN_BY_NAME, **self._user_themes}
        themes = sorted(self.available_themes.values(), key=lambda theme: (theme.name not in own, theme.name))
        keep = "To keep it, write theme = {!r} into {}"
        self._offer(
            "Themes",
            [
                PaletteEntry(
                    theme.name,
                    theme.name,
                    f"{'yours, ' * (theme.name in self._user_themes)}{'dark' if theme.dark else 'light'}",
                    keep.format(theme.name, self.locations.config / SETTINGS_FILE),
                    partial(self._show_theme, theme.name),
                )
                for theme in themes
            ],
            at=self.theme,
        )

    def _show_theme(self, name: str) -> None:
        if name == self.theme:
            self.mutate_reactive(App.theme)  # its file may have changed
        else:
            self.theme = name

    def _offer(self, title: str, commands: list[PaletteEntry], *, at: str = "") -> None:
        from gistpoint.tui.screens.palette import Palette, count_use

        def chosen(command: PaletteEntry | None) -> None:
            if command is not None:
                if title == "Commands":
                    count_use(self.locations.used_commands, command.id)
                self.call_later(command.run)

        self.push_screen(Palette(title, commands, at=at), chosen)

    def action_zoom(self) -> None:
        """Show only the focused pane, or all panes again."""
        screen = self.screen
        pane = pane_around(screen.focused)
        if screen.maximized is not None:
            screen.minimize()
        elif pane is not None:
            screen.maximize(pane, container=False)

    def action_jump(self) -> None:
        """Show a letter on everything visible that takes the focus, and go to the one pressed."""
        from gistpoint.tui.screens.jump import JumpScreen, JumpTarget, places

        def chosen(target: JumpTarget | None) -> None:
            if target is not None:
                target.go()

        self.push_screen(JumpScreen(places(self.screen)), chosen)

    def action_help_quit(self) -> None:
        """Show how to leave, since Ctrl+C only copies."""
        from gistpoint.tui.possible import possible_now

        ways = [one for one in possible_now(self.screen) if one.key.action in WAYS_OUT]
        keys = ", ".join(f"{one.spelt}: {one.key.description}" for one in ways)
        self.app.notify(f"Ctrl+C copies what is selected. {keys}".strip())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to zoom a pane only if there is one."""
        if action == "zoom":
            return self.screen.maximized is not None or pane_around(self.screen.focused) is not None
        return super().check_action(action, parameters)

    def action_leave_program(self) -> None:
        """Close the program."""
        self.exit()

    # Unexpected errors

    def _parse_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> tuple[DOMNode, str, tuple[object, ...]]:
        """Keep the path to a part of a screen in the action's name, as in `run.navigation.play`.

        Textual knows no targets other than widgets, and has no public way to add any.
        """
        path, name, given = actions.parse(action) if isinstance(action, str) else action
        if path and path not in self._action_targets and path not in (namespaces or ()):
            return default_namespace, f"{path}.{name}", given
        return super()._parse_action(action, default_namespace, namespaces)

    async def _dispatch_action(self, namespace: DOMNode, action_name: str, params: Any) -> bool:
        """Call the method of the screen part that an action names, else the action's own method."""
        if "." not in action_name:
            return await super()._dispatch_action(namespace, action_name, params)
        await invoke(attrgetter(action_name)(namespace), *params)
        return True

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action. The app runs the actions of all keys, and one that raises must not end it."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except Exception as error:
            self._crashed(error)
            return True

    def _handle_exception(self, error: Exception) -> None:
        """Handle an exception of a handler. Textual has no public hook for it.

        A widget whose handler raised is dead, so its screen is closed. If the app's own handler raised, or
        the screen that reports the first exception, nothing is left to draw, and the app ends as in Textual.
        """
        raised_in = active_message_pump.get(None)
        follows = self._is_given_up(raised_in)
        fatal = raised_in is self or not self.is_running or (self._given_up is not None and not follows)
        self._crashed(error, recover=not fatal)
        if fatal:
            super()._handle_exception(error)

    def _is_given_up(self, widget: MessagePump | None) -> bool:
        """Return whether a widget belongs to a screen that is being closed after an unexpected exception."""
        while widget is not None and widget not in (self._given_up or ()):
            widget = widget._parent  # a removed widget no longer has a `screen`
        return widget is not None

    def _crashed(self, error: Exception, *, recover: bool = True) -> None:
        """Log an unexpected exception, and report the first one. All of them end up here.

        Those that follow before the user has read about the first result from it, and only go to the logs.
        """
        self.crashes.append(error)
        log = write_crash(self.locations.logs, error, attempt_id=self.attempt_at_risk())
        if self._given_up is not None:
            return
        self._given_up, self._input_counts_from = tuple(self.screen_stack), inf
        for screen in self.screen_stack:
            self._stop_after_crash(screen)
        kept = self.keep_what_is_open(error, log)
        where = f"Details: {log}" if not self.is_web else "Please inform the person who gave you the link."
        text = f"{type(error).__name__}: {str(error)[:500]}\n\n{where}{kept}"
        if recover:
            self.call_later(self._recover, text)

    def _stop_after_crash(self, screen: Screen[Any]) -> None:
        """Have a screen save what was typed. One that can't must not keep the others from doing so."""
        try:
            if isinstance(screen, BaseScreen):
                screen.stop()
        except Exception as error:
            self.crashes.append(error)
            write_crash(self.locations.logs, error, attempt_id=self.attempt_at_risk())

    def attempt_at_risk(self) -> str:
        """Return the id of the open attempt; empty if there is none."""
        return ""

    def keep_what_is_open(self, error: Exception, log: Path) -> str:
        """Save what is open after an unexpected exception. Return a sentence about it."""
        return self.kept

    async def _recover(self, text: str) -> None:
        """Restart at the first screen and report what happened."""
        from gistpoint.tui.screens.dialogs.ask import MessageDialog

        above, closing = self.screen_stack[:0:-1], []
        for screen in above:
            self._leave(screen)
            closing.append(App.pop_screen(self))
        for closed in closing:
            await closed
        if self.ground_renews_itself:
            self._given_up = above
        else:
            await self.begin_again()
        message = MessageDialog("Something unexpected happened", text, hint="This is a bug in gistpoint.")
        message.when_left(self._crash_reported)
        await self.push_screen(message)
        self._input_counts_from = get_time()

    def _crash_reported(self) -> None:
        self._given_up = None


class OneScreenApp(BaseApp):
    """Shows one screen, and those that it opens. The program ends with it."""

    def __init__(
        self, locations: Locations, styles: str, first: Callable[[], Screen[None]], *, kept: str = ""
    ) -> None:
        """`first` makes the screen, `styles` is the path of its style sheet."""
        super().__init__(locations, styles)
        self._first, self.kept = first, kept

    def first_screen(self) -> Screen[None]:
        """Return the screen."""
        return self._first()


def _settings_of(locations: Locations) -> tuple[str, Mapping[str, str], UserError | None]:
    """Return the theme, the keys and the errors. Nothing is imported if there are no settings."""
    if not (locations.config / SETTINGS_FILE).exists():
        return "", {}, None
    try:
        settings = read_settings(locations.config)
    except UserError as error:
        return "", {}, error
    return settings.theme, settings.keys, None
