"""The console: a line for typing tool calls, with completion and history."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.getters import query_one
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.revealed import Knowledge
from gistpoint.core.kinds.commandline import QuestionError, parse, spelled
from gistpoint.core.tools.declaration import Argument, ArgumentKind, Tool
from gistpoint.core.tools.search_code import as_text, pattern_fault
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.drafts import DraftPlace
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.solve.panes import CallRequested, SubmitRequested
from gistpoint.tui.view_models import allowed, price_words
from gistpoint.tui.widgets.line_view import AffordanceTaken
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.writing_area import WritingLine

SEARCH = "search_code"
_CALL, _PATTERN = f"{signs.PROMPT} ", f"search {signs.PROMPT} "
_LINE = "line"
"""The name of the input line's text among the drafts."""
_PLACEHOLDER = f"a tool call, such as search_code total — Tab completes, {signs.UP_KEY} repeats"


class KnownNames(Suggester):
    """A suggester of the first completion of the console's line."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._attempt = attempt

    async def get_suggestion(self, value: str) -> str | None:
        """Return the first completion of the line `value`; None if there is none."""
        found = lines_from(self._attempt, value)
        return found[0] if found else None


def lines_from(attempt: Attempt, value: str) -> list[str]:
    """Return the completions of a line; empty if the line is empty or the study has disabled completion."""
    if not value or not allowed(attempt.state, "completion"):
        return []
    return candidates(value, attempt.offered(), attempt.state.knowledge)


class Console(Vertical):
    """The input line, below the price of the typed call or the reason why it can't be made."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.CONSOLE)]

    line = query_one("#console-line", Input)
    hint = query_one("#console-hint", Plain)

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(id="console")
        self._attempt = attempt
        self._history: list[str] = []
        self._place = 0
        self._shown_words = ""
        self._under_way = ""
        """The text shown about the call under way; empty if there is none."""
        self._suggested = ""
        """The call suggested by a question about the line. It stays in the line until something is typed."""
        self.searching = False
        """Whether the line is the pattern of a search in the repository."""
        self._before: Widget | None = None
        """The widget that had the focus before the search."""
        self._unescaped = ""
        """The original form of the pattern that was last converted to literal text."""

    def compose(self) -> ComposeResult:
        """Lay out the hint and the line."""
        yield Plain("", id="console-hint")
        with Horizontal(id="console-row"):
            yield Plain(_CALL, id="console-prompt")
            yield WritingLine(
                placeholder=_PLACEHOLDER,
                id="console-line",
                compact=True,
                suggester=KnownNames(self._attempt),
            )

    def on_mount(self) -> None:
        """Fill the history with the calls of the attempt so far."""
        for call in self._attempt.state.calls:
            self._history.append(
                spelled(call.tool, {name: str(value) for name, value in call.arguments.items()})
            )
        self._place = len(self._history)

    def search(self) -> None:
        """Turn the line into a pattern for a search of the repository, and focus it."""
        if all(tool.name != SEARCH for tool in self._attempt.offered()):
            self.app.notify("The repository can't be searched now.", severity="warning")
            return
        self._put_away()
        self._accept(patterns=True)
        self._offer_again()
        if self.screen.focused is not self.line:
            self._before = self.screen.focused
        self.line.focus()
        self.explain_line("")

    def _accept(self, *, patterns: bool) -> None:
        """Make the line accept a search pattern, or a call."""
        self.searching = patterns
        self.query_one("#console-prompt", Plain).update(_PATTERN if patterns else _CALL)
        self.line.placeholder = "a regular expression, in all .py files" if patterns else _PLACEHOLDER
        self.line.suggester = None if patterns else KnownNames(self._attempt)
        self.refresh_bindings()

    def _search_for(self, pattern: str) -> None:
        self._drafts.write({})
        self._end_search()
        self.post_message(CallRequested(SEARCH, {"pattern": pattern}, priced=True))

    def _end_search(self) -> None:
        """Make the line accept calls again, and restore the focus and the call that was being typed."""
        self._accept(patterns=False)
        self._offer_again()
        if self._before is not None and self._before.is_attached:
            self._before.focus()
        self._before = None

    @property
    def _drafts(self) -> DraftPlace:
        """The store of the line's unsent text: one for calls, another for search patterns."""
        return cast("BaseScreen[object]", self.screen).draft("search" if self.searching else "call")

    def _put_away(self) -> None:
        """Clear the line, and keep its text to offer it next time."""
        self._drafts.write({_LINE: self.line.value})
        with self.prevent(Input.Changed):
            self.line.value = ""

    def _offer_again(self) -> None:
        """Fill the line with the text that was kept, selected so that typing replaces it."""
        self.line.value = self._drafts.read().get(_LINE, "")
        self.line.select_all()

    def on_descendant_focus(self) -> None:
        """Offer the call that was typed but not made."""
        self.opened()

    def opened(self) -> None:
        """Offer the call that was typed but not made, even if the line already has the focus."""
        if not self.line.value and not self.searching:
            self._offer_again()

    def show_message(self, text: str) -> None:
        """Show text above the line, such as a price or the progress of a call."""
        self._shown_words = text
        self.hint.update(text.replace("\n", " "))

    def shows_message(self, text: str) -> bool:
        """Return whether text is currently displayed above the line."""
        return self._shown_words == text

    def clear_message(self, start: str) -> None:
        """Clear the text above the line if it starts with `start`."""
        if self._shown_words.startswith(start):
            self.show_message("")

    def call_began(self, words: str) -> None:
        """Show that a call, of the console or another pane, is under way, and add it to the history."""
        self.remember(words)
        self.show_message(f"… {words}")
        self._under_way = self._shown_words

    def call_ended(self) -> None:
        """Clear the text about the call, unless other text has replaced it."""
        if self._under_way:
            self.clear_message(self._under_way)
        self._under_way = ""

    def remember(self, line: str) -> None:
        """Add a call to the history."""
        if not self._history or self._history[-1] != line:
            self._history.append(line)
        self._place = len(self._history)

    @on(Input.Changed, "#console-line")
    def explain(self, event: Input.Changed) -> None:
        """Save the typed text as a draft, and show the price of the call or how to call its tool."""
        event.stop()
        self.refresh_bindings()
        # If they differ, a later key has already emptied the line, or switched between calls and patterns.
        if event.value == self.line.value:
            self._drafts.write({_LINE: event.value})
        self.explain_line(event.value.strip())

    def explain_line(self, value: str) -> None:
        """Show the price of the call in a line; if the call is unclear, its tool's usage or completions.

        For an empty line, list the tools. While a search is being typed, explain the search instead.
        """
        if self.searching:
            self._explain_search()
            return
        if not value:
            self.show_message("Tools: " + ", ".join(tool.name for tool in self._attempt.offered()))
            return
        if value == self._suggested:
            return
        self._suggested = ""
        try:
            tool, arguments = self._parsed(value)
        except QuestionError:
            named = next((tool for tool in self._attempt.offered() if tool.name == value.split(" ")[0]), None)
            self.show_message(
                f"{named.usage()}: {named.description}" if named else "; ".join(self._names(value))
            )
            return
        call = spelled(tool.name, arguments)
        refused = self._refused(tool, arguments["pattern"]) if tool.name == SEARCH else ""
        self.show_message(refused or f"{tool.usage() if call == value else call}  {self._price(tool)}")

    def _explain_search(self) -> None:
        tool = next(tool for tool in self._attempt.tools if tool.name == SEARCH)
        refused = self._refused(tool, self.line.value)
        takes = ". Alt+R finds it as text" if self.check_action("as_text", ()) else ""
        searches = f"Search the repository: {self._price(tool)}. Esc goes back"
        self.show_message(f"{refused}{takes}" if refused else searches)

    def _refused(self, tool: Tool, pattern: str) -> str:
        """Return that a pattern is invalid, the price and the fault; empty if it is valid.

        The price is before the fault, which a narrow terminal may cut.
        """
        fault = pattern_fault(pattern)
        return f"{signs.BAD} not a regular expression, {self._price(tool)}: {fault}" if fault else ""

    def _parsed(self, value: str) -> tuple[Tool, dict[str, str]]:
        return parse(value, self._attempt.offered(), self._attempt.state.knowledge)

    def _price(self, tool: Tool) -> str:
        return price_words(self._attempt.price(tool), self._attempt.state)

    def _names(self, value: str) -> list[str]:
        found = [line.strip() for line in lines_from(self._attempt, value)[:6]]
        return found or ["There is no such tool; Tab after the first letters completes names."]

    @on(Input.Submitted, "#console-line")
    def call(self, event: Input.Submitted) -> None:
        """Ask the screen to make the typed call; if the line is unclear, ask about it, at no cost.

        For a tool that submits, ask the screen to submit the editor's content instead. In the search, search
        for the line. An empty line is ignored.
        """
        event.stop()
        value = event.value.strip()
        if not value:
            return
        if self.searching:
            self._search_for(event.value)
            return
        named = next((tool for tool in self._attempt.offered() if tool.name == value.split(" ")[0]), None)
        if named is not None and named.submits:
            self._clear()
            self.post_message(SubmitRequested())
            return
        try:
            tool, arguments = self._parsed(value)
        except QuestionError as question:
            self._ask(question)
            return
        self._clear()
        self.remember(spelled(tool.name, arguments))
        self.post_message(CallRequested(tool.name, arguments, priced=True))

    def _clear(self) -> None:
        self._drafts.write({})
        self.line.value = ""

    def _ask(self, question: QuestionError) -> None:
        """Explain why a line is unclear, and put the likely call into it, if there is one."""
        self.post_message(AffordanceTaken("question"))
        self._suggested = question.suggested
        if not self._suggested:
            self.show_message(f"? Not called, nothing spent: {question}")
            return
        tool, _ = self._parsed(self._suggested)
        self.line.value = self._suggested
        self.line.cursor_position = len(self._suggested)
        self.show_message(f"? Not called, nothing spent. Enter calls this: {self._price(tool)}. {question}")

    def action_complete(self) -> None:
        """Complete the line as far as all candidates agree; of several, show the first twelve."""
        if self.searching:
            self.app.bell()
            return
        value = self.line.value
        found = lines_from(self._attempt, value)
        if not found:
            self.app.bell()
            return
        self.post_message(AffordanceTaken("completion"))
        agreed = _common_start(found)
        if len(found) > 1:
            self.show_message("  ".join(line.rpartition(" ")[2] or line.strip() for line in found[:12]))
        self.line.value = agreed if len(agreed) > len(value) else value
        self.line.cursor_position = len(self.line.value)

    def action_recall(self, by: int) -> None:
        """Show an earlier or later line of the history."""
        if self.searching or self._place == len(self._history):
            self._put_away()
        self._accept(patterns=False)
        self._place = min(len(self._history), max(0, self._place + by))
        typed = self._drafts.read().get(_LINE, "")
        self.line.value = self._history[self._place] if self._place < len(self._history) else typed
        self.line.cursor_position = len(self.line.value)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer Escape only if there is something to clear, and literal text only for a pattern."""
        if action == "back_out":
            return self.is_mounted and bool(self.line.value or self.searching)
        if action == "as_text":
            return self.searching and allowed(self._attempt.state, "completion")
        return super().check_action(action, parameters)

    def action_back_out(self) -> None:
        """Clear the line, and end a search. The text is offered again when the line is next opened."""
        self._put_away()
        if self.searching:
            self._end_search()
        self.explain_line(self.line.value)

    def action_as_text(self) -> None:
        """Escape the pattern so that it is matched literally, or restore the original pattern."""
        pattern = self.line.value
        escaped = as_text(self._unescaped)
        if pattern and pattern == escaped != self._unescaped:
            self.line.value = self._unescaped
        else:
            self._unescaped, self.line.value = pattern, as_text(pattern)
        self.line.cursor_position = len(self.line.value)
        self.post_message(AffordanceTaken("completion"))


def _common_start(lines: list[str]) -> str:
    first, last = min(lines), max(lines)
    size = next(
        (n for n, (one, other) in enumerate(zip(first, last, strict=False)) if one != other),
        min(len(first), len(last)),
    )
    return first[:size]


def candidates(line: str, tools: Iterable[Tool], knowledge: Knowledge) -> list[str]:
    """Return the completions of a line: names of tools, or names shown so far with the shortest first."""
    name, space, rest = line.partition(" ")
    if not space:
        return [f"{tool.name} " for tool in tools if tool.name.startswith(name) and tool.name != name]
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return []
    done, _, last = rest.rpartition(" ")
    words = done.split()
    if len(words) >= len(tool.arguments):
        return []
    values = _values(tool.arguments[len(words)], words, tool, knowledge)
    head = f"{name} {done} " if done else f"{name} "
    found = sorted(
        {value for value in values if value.startswith(last) and value != last},
        key=lambda value: (len(value), value),
    )
    return [head + shlex.quote(value) for value in found]


def _values(argument: Argument, words: list[str], tool: Tool, knowledge: Knowledge) -> list[str]:
    if argument.kind is ArgumentKind.FOLDER:
        return [path for path, kind in knowledge.entries.items() if kind == "dir"]
    if argument.kind is ArgumentKind.FILE:
        return _files(words, tool, knowledge)
    if argument.kind is ArgumentKind.FUNCTION:
        return [name.partition("::")[2] for name in knowledge.functions]
    return []


def _files(words: list[str], tool: Tool, knowledge: Knowledge) -> list[str]:
    """Return the files shown so far; after the name of a function, only those known to define it, if any."""
    files = [path for path, kind in knowledge.entries.items() if kind == "file"]
    at = next(
        (n for n, argument in enumerate(tool.arguments) if argument.kind is ArgumentKind.FUNCTION), None
    )
    if at is None or at >= len(words):
        return files
    defining = [
        name.partition("::")[0] for name in knowledge.functions if name.partition("::")[2] == words[at]
    ]
    return defining or files
