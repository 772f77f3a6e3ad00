"""The base class of all gistpoint apps, which handles themes, keys, palette, help and unexpected errors."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual import actions, events
from textual._callback import invoke
from textual._context import active_message_pump  # no public way to get the widget that raised
from textual._time import get_time  # the clock of the events' own timestamps
from textual.actions import ActionParseResult
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.drivers._writer_thread import WriterThread  # see `_leave_at`
from textual.message_pump import MessagePump
from textual.notifications import Notify, SeverityLevel
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES, Theme
from textual.widget import AwaitMount

from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.core.locations import SETTINGS_FILE, Locations
from gistpoint.core.text import visible
from gistpoint.tui.base_screen import BREAKPOINTS, BaseScreen, is_being_removed, with_ancestors
from gistpoint.tui.crash_log import write_crash
from gistpoint.tui.drafts import UnsentTexts
from gistpoint.tui.jobs import JobFailed
from gistpoint.tui.keys import KeyScope, bindings_of, settings_of, shown_key
from gistpoint.tui.machine_errors import CrashReport, crash_report, require_drawable
from gistpoint.tui.shown_cells import SparingApp
from gistpoint.tui.starting import START_S, resume_collecting
from gistpoint.tui.themes import DEFAULT, OWN, is_built_in, theme_named
from gistpoint.tui.type_ahead import Followed, TypeAhead
from gistpoint.tui.widgets.frames import pane_around
from gistpoint.tui.widgets.key_bar import WAYS_OUT

if TYPE_CHECKING:
    from gistpoint.tui.screens.palette import PaletteEntry

_OWN_BY_NAME = {theme.name: theme for theme in OWN}
_READ_S = 1.0
"""Seconds after which a toast can no longer explain a change of screen, and is removed when one happens."""


class BaseApp(SparingApp):
    """An app that survives unexpected exceptions: it logs them, and starts again at the first screen.

    The first screen is at the bottom of the stack. The theme is chosen before the style sheets are read, so
    that nothing is laid out or styled twice before the first frame.
    """

    TITLE = "gistpoint"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.APP)]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    ALLOW_IN_MAXIMIZED_VIEW = "HeaderBar, BudgetBar, KeyBar, FindBar, SearchBar, RunLine, IdleQuestion"
    """The parts of a screen that stay visible while a single pane is zoomed."""
    kept = ""
    """A sentence that says what is saved of the open work, for the report of an unexpected exception."""
    ENABLE_COMMAND_PALETTE = False  # Textual's palette; an action of the same name opens ours
    # Pushed on top of Textual's own first screen, ours would cost an extra layout of that one (decision 37).
    DEFAULT_MODE = "first"

    def __init__(self, locations: Locations, styles: str) -> None:
        """`styles` is the path of the first screen's style sheet, which is read along with the app's."""
        theme, keys, self._settings_error = settings_of(locations)
        self.locations = locations
        self._user_themes: Mapping[str, Theme] = {}
        self._theme_problems: list[str] = []
        self.set_reactive(App.theme, self._theme_at_start(theme))
        super().__init__(css_path=["base.tcss", styles])
        self.keymap: Mapping[str, str] = keys
        """The user's own keys, by the id of the binding."""
        self.crashes: list[Exception] = []
        """The unexpected exceptions so far."""
        self._closed_screens: Sequence[Screen[Any]] | None = None
        """The screens that an unexpected exception closed, until its report was read; None at other times."""
        self._input_counts_from = 0.0
        """The time, on the clock of Textual's events, before which input was meant for an earlier screen."""
        self._bottom_screen: Screen[Any] | None = None
        self.drafts = UnsentTexts(locations.unsent_texts, partial(self.notify, severity="warning"))
        self.type_ahead = TypeAhead(self, self._deliver)
        self.add_mode(self.DEFAULT_MODE, self._make_bottom_screen)

    @property
    def available_themes(self) -> dict[str, Theme]:
        """All themes by name: Textual's, gistpoint's and the user's."""
        return {**super().available_themes, **_OWN_BY_NAME, **self._user_themes}

    def get_theme(self, theme_name: str) -> Theme | None:
        """Return a theme by its name; None if there is none. This is called for each line that is drawn."""
        return (
            _OWN_BY_NAME.get(theme_name) or self._user_themes.get(theme_name) or super().get_theme(theme_name)
        )

    def _theme_at_start(self, wanted: str) -> str:
        """Return the requested theme; if it doesn't exist, record a warning and return the default."""
        name = theme_named(wanted)
        if is_built_in(name):
            return name
        self._read_themes()
        if name in self._user_themes:
            return name
        meant = did_you_mean(name, [*_OWN_BY_NAME, *self._user_themes, *BUILTIN_THEMES])
        self._theme_problems.append(f"There is no theme {name!r}, so {DEFAULT} is shown.{meant}")
        return DEFAULT

    def _read_themes(self) -> None:
        from gistpoint.tui.user_themes import read_themes

        self._user_themes, self._theme_problems = read_themes(self.locations.config)

    def _report_themes(self) -> None:
        for problem in self._theme_problems:
            self.app.notify(problem, title="Themes", severity="warning")
        self._theme_problems = []

    def get_key_display(self, binding: Binding) -> str:
        """Return a binding's key in gistpoint's spelling."""
        return binding.key_display or shown_key(binding.key)

    def first_screen(self) -> Screen[None]:
        """Return the screen at the bottom of the stack."""
        raise NotImplementedError

    def set_bottom_screen(self, screen: Screen[Any]) -> Screen[Any]:
        """Make a screen the bottom of the stack before it is shown, and return it."""
        self._bottom_screen = screen
        if isinstance(screen, BaseScreen):
            screen.fit_width(self.size.width)
        draw = screen._compositor_refresh

        def draw_if_shown() -> None:
            """Draw, unless drawing is suspended, in which case Textual would still draw the whole screen."""
            if not self._batch_count:
                draw()
                self.bottom_screen_drawn()

        screen._compositor_refresh = draw_if_shown  # type: ignore[method-assign]
        return screen

    def bottom_screen_drawn(self) -> None:
        """Do nothing. Called whenever the bottom screen has been drawn."""

    def _make_bottom_screen(self) -> Screen[Any]:
        screen = self.set_bottom_screen(self.first_screen())
        # Textual would parse all style sheets again, although no variable has changed.
        screen._css_update_count = self._css_update_count
        return screen

    def pop_screen(self) -> AwaitComplete:
        """Close the top screen. If it is the bottom one, end the program."""
        if self.screen is self._bottom_screen:
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
    def bottom_screen_restarts(self) -> bool:
        """Whether the bottom screen, when it is on top again, shows the first screen on its own."""
        return False

    def begin_again(self) -> AwaitMount:
        """Show the first screen again, as the new bottom of the stack."""
        return self.push_screen(self._make_bottom_screen())

    def on_mount(self) -> None:
        """Apply the user's keys, report problems with the settings, and watch themes and signals."""
        if self.keymap:
            self.set_keymap(dict(self.keymap))
        self.set_timer(START_S, resume_collecting)
        if self._settings_error is not None:
            self.call_later(self._failed, self._settings_error)
        self._report_themes()
        self.screen_change_signal.subscribe(self, self._remove_old_toasts)
        if self.is_web:
            self.theme_changed_signal.subscribe(self, self._colour_margin)
            self._colour_margin(self.current_theme)
        if not self.is_headless:
            self._handle_signals()

    def _remove_old_toasts(self, screen: Screen[Any]) -> None:
        """Remove informational toasts after a change of screen, except recent ones, which may explain it."""
        for shown in list(self._notifications):
            if shown.severity == "information" and time() - shown.raised_at > _READ_S:
                self._unnotify(shown)  # private, but there is no public way to remove a single toast

    def _colour_margin(self, theme: Theme) -> None:
        """Give the margin around a browser's terminal the colour of the screen (xterm's "OSC 11")."""
        # Textual has no method to send a sequence to the terminal.
        if theme.background and self._driver is not None:
            self._driver.write(f"\x1b]11;{Color.parse(theme.background).hex6.lower()}\x07")

    def _handle_signals(self) -> None:
        """Leave in an orderly way, saving all input, when the terminal closes or the machine shuts down."""
        for number in (signal.SIGHUP, signal.SIGTERM):
            with suppress(RuntimeError, ValueError):  # raised unless the loop runs in the main thread
                asyncio.get_running_loop().add_signal_handler(number, self._leave_at, number)

    def _leave_at(self, number: signal.Signals) -> None:
        """Leave on a signal. If the terminal is gone, discard what would be drawn."""
        writer = getattr(self._driver, "_writer_thread", None)
        if number == signal.SIGHUP and isinstance(writer, WriterThread) and self._driver is not None:
            # Writing to a closed terminal ends Textual's writer thread, for which its driver would then wait
            # forever. SIGCONT comes with a hang-up, and would make Textual draw again.
            signal.signal(signal.SIGCONT, signal.SIG_DFL)
            with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
                os.dup2(nowhere.fileno(), writer.fileno())
            self._driver._writer_thread = WriterThread(writer._file)  # type: ignore[attr-defined]
            self._driver._writer_thread.start()  # type: ignore[attr-defined]
        self.exit(return_code=128 + number)

    async def on_event(self, event: events.Event) -> None:
        """Record the user's activity, and handle each event once the earlier ones have had their effect."""
        if not isinstance(event, events.InputEvent | events.Paste):
            await super().on_event(event)
            return
        if isinstance(event, events.InputEvent):
            for screen in self.screen_stack:
                if isinstance(screen, BaseScreen):
                    screen.input_happened(event.time)
        if event.is_forwarded:
            # A key that no widget has handled bubbles up to here again; a screen opened meanwhile must not
            # get it.
            if not isinstance(event, events.Key) or self.type_ahead.was_typed_on(self.screen):
                await self._deliver(event)
            return
        if isinstance(event, events.Key) and event.key.startswith("alt+"):
            # For Alt and a letter, a terminal sends Escape and the letter, which a field would insert.
            event.character = None
        await self.type_ahead.take(event)

    async def _deliver(self, event: events.Event) -> None:
        """Handle a user event if it was meant for the screen that is on top now."""
        if event.time < self._input_counts_from:
            return
        screen, is_input = self.screen, isinstance(event, events.InputEvent)
        refused = isinstance(screen, BaseScreen) and is_input and not screen.accepts(event)
        if not refused:
            await super().on_event(event)

    def hold_keys(self, cancel: Callable[[], bool] | None = None) -> Callable[[], None]:
        """Hold all typing until the returned function is called; Escape calls `cancel`."""
        return self.type_ahead.wait(cancel)

    async def on_followed(self, message: Followed) -> None:
        """Pass a marker that has arrived on to the type-ahead, which may then deliver the held events."""
        await self.type_ahead.passed(message)

    def simulate_key(self, key: str) -> None:
        """Act as if the clicked key had been pressed, before the keys pressed since the click."""
        event = events.Key(key, None)
        self.type_ahead.at_once(event)
        self.post_message(event)

    def on_exit_app(self) -> None:
        """Leave every screen, whatever ends the program: a key, a signal or a closed browser."""
        for screen in self.screen_stack:
            self._leave(screen)
        self.drafts.flush()

    def run_to_exit_code(self) -> int:
        """Run until the user leaves. Return 0, or another code if an error or a signal ended the app.

        Raises `UserError` if the terminal can't show the characters of the screens.
        """
        require_drawable()
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
        """Show a toast. By default, its text is literal; control characters are made visible."""
        super().notify(
            visible(message), title=visible(title), severity=severity, timeout=timeout, markup=markup
        )

    def on_notify(self, event: Notify) -> None:
        """Remove earlier toasts with the same title and text as a new one."""
        same = event.notification.title, event.notification.message
        for shown in [old for old in self._notifications if (old.title, old.message) == same]:
            # private, but there is no public way to remove a single toast
            self._unnotify(shown, refresh=False)

    def in_thread(
        self, body: Callable[[], object], *, holds: bool = True, cancel: Callable[[], bool] | None = None
    ) -> None:
        """Run a slow function in a thread. A `UserError` is shown; other exceptions count as unexpected.

        Unless `holds` is False, typing is held until it has ended, for the screen that it opens, and Escape
        calls `cancel` (decision 126).
        """
        release_keys = self.hold_keys(cancel) if holds else lambda: None

        def run() -> None:
            try:
                body()
            except UserError as error:
                self.call_from_thread(self._failed, error)
            except Exception as error:
                self.call_from_thread(self._crashed, error)
            finally:
                self.call_later(release_keys)  # not `call_from_thread`, which would wait forever after `exit`

        self.run_worker(run, thread=True, group="open", exit_on_error=False)

    def on_job_failed(self, message: JobFailed) -> None:
        """Show the error of a job."""
        self._failed(message.error)

    def _failed(self, error: UserError) -> None:
        from gistpoint.tui.screens.dialogs.ask import show_error

        show_error(self, error)

    def action_help(self) -> None:
        """Show the keys and the help page for the current screen."""
        from gistpoint.tui.screens.help import HelpScreen, elsewhere, sections

        screen = self.screen
        if not isinstance(screen, HelpScreen):
            page = getattr(screen, "HELP_PAGE", "dialog")
            title = screen.title_in_help if isinstance(screen, BaseScreen) else ""
            about = (screen.focused.HELP if screen.focused is not None else None) or ""
            known, rest = sections(screen, self.keymap), elsewhere(screen)
            self.push_screen(HelpScreen(page, known, about, rest, title=title))

    def action_command_palette(self) -> None:
        """Show the commands that are possible now, most used first; theme, help and quit are last."""
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
        """Offer all themes, with the cursor on the current one."""
        from gistpoint.tui.screens.palette import PaletteEntry

        self._read_themes()
        self._report_themes()
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
        self.theme, shown = name, self.theme
        if name == shown:
            self.mutate_reactive(App.theme)  # the theme's file may have changed

    def _offer(self, title: str, commands: list[PaletteEntry], *, at: str = "") -> None:
        from gistpoint.tui.screens.palette import Palette, count_use

        def chosen(command: PaletteEntry | None) -> None:
            if command is not None:
                if title == "Commands":
                    count_use(self.locations.used_commands, command.id)
                self.call_later(command.run)

        self.push_screen(Palette(title, commands, at=at), chosen)

    def action_zoom(self) -> None:
        """Show only the focused pane, or show all panes again."""
        screen = self.screen
        pane = pane_around(screen.focused)
        if screen.maximized is not None:
            screen.minimize()
        elif pane is not None:
            screen.maximize(pane, container=False)

    def action_jump(self) -> None:
        """Show a letter on every visible widget that takes the focus; pressing it moves the focus there."""
        from gistpoint.tui.screens.jump import JumpScreen, JumpTarget, places

        def chosen(target: JumpTarget | None) -> None:
            if target is not None:
                target.go()

        self.push_screen(JumpScreen(places(self.screen)), chosen)

    def action_help_quit(self) -> None:
        """Show the keys that leave the screen, since Ctrl+C only copies."""
        from gistpoint.tui.possible import possible_now

        ways = [one for one in possible_now(self.screen) if one.key.action in WAYS_OUT]
        keys = ", ".join(f"{one.spelt}: {one.key.description}" for one in ways)
        self.app.notify(f"Ctrl+C copies what is selected. {keys}".strip())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer zooming only if a pane has the focus or is zoomed."""
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
        """Return an action's target, name and parameters; the path to a part of the screen stays in the name.

        In `run.navigation.play`, `run.navigation` is such a path. Textual knows only widgets as targets, and
        has no public way to add others.
        """
        path, name, given = actions.parse(action) if isinstance(action, str) else action
        if path and path not in self._action_targets and path not in (namespaces or ()):
            return default_namespace, f"{path}.{name}", given
        return super()._parse_action(action, default_namespace, namespaces)

    async def _dispatch_action(self, namespace: DOMNode, action_name: str, params: Any) -> bool:
        """Call the method that an action's path names; without a path, do as Textual does.

        Return whether the action was handled.
        """
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
        """Run an action, and return whether it was handled.

        An exception in an action must not end the app, which runs the actions of all keys: it is reported,
        and the action counts as handled.
        """
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except Exception as error:
            self._crashed(error)
            return True

    def _handle_exception(self, error: Exception) -> None:
        """Handle an exception that a message handler raised; Textual has no public hook for this.

        A widget whose handler raised handles no more messages, so its screen is closed. If a handler of the
        app raised, or of the screen that reports the first exception, the app ends as in Textual.
        """
        raised_in = active_message_pump.get(None)
        is_gone = not self.is_running or is_being_removed(raised_in)
        if isinstance(error, NoMatches) and is_gone:
            return  # queried a part of a screen that is being closed, which nobody sees any more
        follows = self._is_on_closed_screen(raised_in)
        fatal = raised_in is self or not self.is_running or (self._closed_screens is not None and not follows)
        self._crashed(error, recover=not fatal)
        if fatal:
            super()._handle_exception(error)

    def _is_on_closed_screen(self, widget: MessagePump | None) -> bool:
        """Return whether a widget belongs to a screen that is closed after an unexpected exception."""
        return any(node in (self._closed_screens or ()) for node in with_ancestors(widget))

    def _crashed(self, error: Exception, *, recover: bool = True) -> None:
        """Log an unexpected exception, and report the first one. All unexpected exceptions are handled here.

        Exceptions that follow before the user has read the report result from the first one, and are only
        logged. Without `recover`, nothing is reported, because the app ends.
        """
        log = self._record_crash(error)
        if self._closed_screens is not None:
            return
        self._closed_screens, self._input_counts_from = tuple(self.screen_stack), inf
        self.type_ahead.forget()
        for screen in self.screen_stack:
            self._stop_after_crash(screen)
        self.drafts.flush()
        kept = self.save_open_work(error, log)
        where = f"Details: {log}" if not self.is_web else "Please inform the person who gave you the link."
        if recover:
            self.call_later(self._recover, crash_report(error, f"{where}{kept}"))

    def _stop_after_crash(self, screen: Screen[Any]) -> None:
        """Have a screen save the text typed into it.

        A failure is logged, so that the other screens can still save theirs.
        """
        try:
            if isinstance(screen, BaseScreen):
                screen.stop()
        except Exception as error:
            self._record_crash(error)

    def _record_crash(self, error: Exception) -> Path:
        self.crashes.append(error)
        return write_crash(self.locations.logs, error, attempt_id=self.open_attempt_id())

    def open_attempt_id(self) -> str:
        """Return the id of the open attempt; empty if there is none."""
        return ""

    def save_open_work(self, error: Exception, log: Path) -> str:
        """Return a sentence on what is saved, for the report of a crash. Subclasses also save open work."""
        return self.kept

    async def _recover(self, report: CrashReport) -> None:
        """Show the first screen again, with a report on the exception."""
        from gistpoint.tui.screens.dialogs.ask import MessageDialog

        above, closing = self.screen_stack[:0:-1], []
        for screen in above:
            self._leave(screen)
            closing.append(App.pop_screen(self))
        for closed in closing:
            await closed
        if self.bottom_screen_restarts:
            self._closed_screens = above
        else:
            await self.begin_again()
        message = MessageDialog(report.title, report.text, hint=report.hint)
        message.when_left(lambda: setattr(self, "_closed_screens", None))
        await self.push_screen(message)
        self._input_counts_from = get_time()


class OneScreenApp(BaseApp):
    """An app with a first screen and the screens opened from it.

    It ends when the first screen is closed.
    """

    def __init__(
        self, locations: Locations, styles: str, first: Callable[[], Screen[None]], *, kept: str = ""
    ) -> None:
        """`first` returns the screen, `styles` is its style sheet's path, and `kept` is as in `BaseApp`."""
        super().__init__(locations, styles)
        self._first, self.kept = first, kept

    def first_screen(self) -> Screen[None]:
        """Return the screen of the app."""
        return self._first()
