"""Commands whose names and help are known at once, and whose modules are imported when they are called.

The answer to a wrong call has two lines: the mistake with the nearest known word, and the usage of the
command.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from gistpoint.core.errors import UserError, did_you_mean, nearest
from gistpoint.tui.starting import hold_collection

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

DONE, NEGATIVE, MISTAKE = 0, 1, 2
"""The exit codes: done, a negative verdict (not solved, check failed, nothing found), and a user error."""
INTERRUPTED = 130
"""The exit code after Ctrl+C, as in shells."""

Handler = Callable[[argparse.Namespace], int]
Options = Callable[[argparse.ArgumentParser], Handler]
"""Adds the options of a command to its parser, and returns the function that runs the command."""

SANDBOX_HELP = "bwrap, docker, landlock or plain; overrides config.toml"
UNSANDBOXED_HELP = (
    "if isolation does not work, run the repository's code and builds of its dependencies with your rights"
)
"""The help on the options for isolation, which may also precede a command."""
UNBLIND_HELP = "show outcomes of people in studies that are open; their logs and reports will mention it"
"""The help on the option of every command that shows outcomes of attempts."""
_ISOLATION = frozenset({"sandbox", "allow_unsandboxed"})
"""Options of every command that runs code. They are the same everywhere, so no short help shows them."""
_HELP_COLUMN = 28
"""The column at which the explanations of options begin, so that most fit on the line of their option."""

_WIDTH = 1_000
"""The width, in characters, of a line of usage: a terminal wraps lines better than argparse."""
_MAY_BE_EMPTY = frozenset({"--pytest-args"})
"""The options that may have an empty value.

For all others, an empty value comes from an unset shell variable.
"""


class CommandParser(argparse.ArgumentParser):
    """A parser that is set up when it is first used, and gets its options when it parses a line.

    A call needs two of about a hundred parsers, and setting all of them up takes as long as drawing a screen.
    """

    load: Callable[[], Options] | None = None
    """Returns the function that adds the options, which may import a module. None if they have been added."""
    about = ""
    """The line on the command in the list of commands, which its own help shows if it says nothing else."""
    screen = False
    """Whether the command opens a screen."""
    names: Collection[str] = ()
    """The names of its subcommands; empty if it has none."""
    also: Mapping[str, str] = {}
    """Former names of subcommands and `help`, which are accepted as well, each with its present name."""
    shown: Collection[str] = ()
    """The options that `--help` shows, by field; empty for all but the options for isolation.

    `--help-all` also shows the others.
    """
    rare: Sequence[str] = ()
    """The subcommands that `--help` names without explaining them."""
    outcomes = False
    """Whether the command shows outcomes of attempts, and takes `--unblind`."""

    _named: dict[str, Any] | None = None

    def __init__(self, **named: Any) -> None:
        self._named = named

    def __getattr__(self, name: str) -> Any:
        """Set up the parser, since the attribute is missing until then, and return the attribute."""
        if self._named is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._set_up()
        return getattr(self, name)

    def _set_up(self) -> None:
        named, self._named = self._named, None
        if named is not None:
            # argparse then raises errors with the argument, which `parse_known_args` needs
            layout = partial(argparse.HelpFormatter, max_help_position=_HELP_COLUMN)
            super().__init__(**{"formatter_class": layout, **named, "exit_on_error": False})

    def parse_known_args(self, *args: Any, **named: Any) -> Any:
        """Add the options, and return what argparse's method returns.

        A wrong call ends the program with the command's usage. Raises `UserError` for an empty value.
        """
        self.complete()
        given = args[0] if args else named.get("args")
        words = sys.argv[1:] if given is None else given
        self._refuse_mistaken(takewhile(lambda word: word not in self.names, words))
        try:
            found, left = super().parse_known_args(*args, **named)
        except argparse.ArgumentError as error:
            self.error(f"{error.argument_name}: {error.message}" if error.argument_name else error.message)
        if left:
            options = [word for word in left if word.startswith("-")]
            self._refuse(options or left, "" if options else self._quoting_hint(words, left))
        return found, left

    def _quoting_hint(self, words: Sequence[str], left: Sequence[str]) -> str:
        """Return a hint to quote a name that the shell has split at its spaces; empty if no name precedes it.

        `left` contains the words that the parser did not accept.
        """
        first = words.index(left[0])
        if first == 0:
            return ""
        before = words[first - 1]
        arguments = [action for action in self._actions if not action.option_strings]
        if len(arguments) > 1 or before.startswith("-"):
            return " A name with spaces needs quotes."
        return f" A name with spaces needs quotes: {shlex.quote(' '.join([before, *left]))}."

    def complete(self) -> None:
        """Add the options, if they have not been added yet."""
        load, self.load = self.load, None
        if load is not None:
            self._set_up()  # a later set-up would replace the description
            if self.screen:
                hold_collection()
            self.set_defaults(run=load()(self), called_as=self.prog)
            self.description = self.description or _sentence(self.about)
            if self.outcomes:
                self.add_argument("--unblind", action="store_true", help=UNBLIND_HELP)
            # Every command accepts this option; the short help lists it only where it would show more.
            what = "show every option and exit" if self._rare() else argparse.SUPPRESS
            self.add_argument("--help-all", action=WholeHelp, help=what)

    def _rare(self) -> list[argparse.Action]:
        """Return the options that only the whole help shows."""
        found = [action for action in self._actions if action.option_strings and not action.required]
        if self.shown:
            return [action for action in found if action.dest not in {*self.shown, "help", "help_all"}]
        return [action for action in found if action.dest in _ISOLATION]

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print a message of `argparse`, which itself ignores that it can't be written."""
        if message:
            (file or sys.stderr).write(message)

    def format_help(self) -> str:
        """Return the help with only the options, or commands, that most calls need."""
        if self.rare:
            return self._group_help()
        rare = self._rare()
        if not rare:
            return self.whole_help()
        helps = [(action, action.help) for action in rare]
        groups = [(group, group.description) for group in self._action_groups]
        try:
            for action, _ in helps:
                action.help = argparse.SUPPRESS
            for group, _ in groups:
                group.description = None
            return self.whole_help()
        finally:
            for action, text in helps:
                action.help = text
            for group, description in groups:
                group.description = description

    def _group_help(self) -> str:
        """Return the help for a group of commands: the common ones explained, the rare ones by name only."""
        explained = {name: text for name, text in self.commands().items() if name not in self.rare}
        width = max(map(len, explained))
        named = textwrap.fill(", ".join(self.rare), shutil.get_terminal_size().columns - 2)
        return "\n".join(
            [
                f"usage: {self.prog} [OPTION...] COMMAND ...",
                "",
                f"{self.description}",
                "",
                "commands:",
                *(f"  {name:{width}}  {text}" for name, text in explained.items()),
                "",
                "more commands, which --help-all explains:",
                textwrap.indent(named, "  "),
                "",
            ]
        )

    def whole_help(self) -> str:
        """Return the help with all options. Its usage names only the arguments that a call must give."""
        before, self.usage = self.usage, self.usage or self._short_usage().replace("%", "%%")
        try:
            return super().format_help()
        finally:
            self.usage = before

    def _short_usage(self) -> str:
        """Return the usage without the names of options that may be left out."""
        usage = argparse.HelpFormatter("", width=_WIDTH)
        usage.add_usage(None, [action for action in self._actions if _in_usage(action)], [], prefix="")
        return f"{self.prog} [OPTION...] {usage.format_help().strip()}".strip()

    def command(self, name: str) -> CommandParser | None:
        """Return the parser of a subcommand; None if there is none with the name."""
        found = next(
            (action for action in self._actions if isinstance(action, argparse._SubParsersAction)), None
        )
        return None if found is None else found.choices.get(name)

    def commands(self) -> dict[str, str]:
        """Return the help line of each listed subcommand, by its name."""
        return {
            choice.dest: choice.help or ""
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for choice in action._choices_actions
        }

    def error(self, message: str) -> NoReturn:
        """Print an error with the usage of the command, and end the program."""
        _, required, missing = message.partition("are required: ")
        if required and self.names:
            message = f"which command? {', '.join(self.names)}"
        elif required:
            message = f"missing: {missing}"
        usage = argparse.HelpFormatter(self.prog, width=_WIDTH)
        usage.add_usage(self.usage, [action for action in self._actions if _in_usage(action)], [])
        what = "its commands" if self.names else "its options"
        first = f"{self.prog}: {readable(message[:1].upper() + message[1:])}".rstrip(".")
        print(
            f"{first}{'' if first.endswith('?') else '.'}\n{usage.format_help().strip()}; --help shows"
            f" {what}",
            file=sys.stderr,
        )
        raise SystemExit(MISTAKE)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among the choices, and suggest the intended one.

        Before Python 3.14, argparse has no other place for this.
        """
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            meant = self._likely(str(value))
            raise argparse.ArgumentError(None, f"There is no command {value!r}.{meant}")
        known = [str(choice) for choice in action.choices]
        meant = did_you_mean(str(value), known)
        raise argparse.ArgumentError(action, f"{value!r} is not one of {', '.join(known)}.{meant}")

    def _likely(self, word: str) -> str:
        """Return the question whether similar commands are meant; empty if none is similar.

        Commands of several words are found by their last word, and by any name that is also accepted.
        """
        names = [*(name for name in self.commands() if " " not in name), *self.also]
        first = {name: [self.also.get(name, name)] for name in names}
        last = self._by_last_word()
        begin_alike = [name for name in last if name[:1] == word[:1]]
        like = word if word in last else nearest(word, first) or nearest(word, begin_alike)
        found = {"": [], **last, **first}[like]
        return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""

    def _by_last_word(self) -> dict[str, list[str]]:
        """Return the commands of several words by their last word."""
        whole = [name for name in self.names if " " in name]
        for name in self.names:
            parser = self.command(name)
            whole += [f"{name} {inner}" for inner in (parser.names if parser else ())]
        found: dict[str, list[str]] = {}
        for name in whole:
            found.setdefault(name.rpartition(" ")[2], []).append(name)
        return found

    def _refuse_mistaken(self, words: Iterable[str]) -> None:
        """Refuse unknown options, empty values, and options in the place of a value.

        Without this, argparse would first report missing arguments. An empty value usually comes from an
        unset variable of the shell.
        """
        # The words after `--` are arguments, whatever they look like.
        for before, word in pairwise(("", *takewhile("--".__ne__, words))):
            name = word.partition("=")[0]
            is_unset_option = word.startswith("--") and word == f"{name}="
            if not word or is_unset_option:
                _require_value(name or before)
            is_unknown, needs_value = self._is_unknown(word, name), self._needs_value(before)
            if is_unknown and not needs_value:
                self._refuse([word])
            if needs_value and (is_unknown or _is_like_option(word)):
                self.error(f"{before} needs a value; if {word} is it, write {before}={word}")

    def _is_unknown(self, word: str, name: str) -> bool:
        """Return whether a word is an unknown option, such as a long option with a single dash."""
        is_long = word.startswith("--") and " " not in word
        has_one_dash = f"-{name}" in self._option_string_actions or name[:2] == "-h" != name
        return has_one_dash or (is_long and not self._is_prefix(name))

    def _needs_value(self, name: str) -> bool:
        action = self._option_string_actions.get(name)
        return action is not None and action.nargs is None

    def _is_prefix(self, name: str) -> bool:
        """Return whether a name is an option's, or the beginning of one."""
        return any(known.startswith(name) for known in self._option_string_actions)

    def _refuse(self, words: Sequence[str], hint: str = "") -> NoReturn:
        names = [word.partition("=")[0] if word.startswith("-") else word for word in words]
        if not words[0].startswith("-"):
            self.error(f"unexpected: {' '.join(map(repr, names))}.{hint}")
        meant = did_you_mean(f"--{names[0].lstrip('-')}", self._option_string_actions)
        place = " before the command" if self.names else ""
        self.error(f"There is no option {names[0]!r}{place}.{meant}")


def _is_like_option(word: str) -> bool:
    """Whether a word looks like an option; a negative number, or a sentence after a dash, does not."""
    return word[:1] == "-" and word[1:2].isalpha() and " " not in word


class TopParser(CommandParser):
    """The parser of the program. Its short help names a newcomer's commands, and the others by section."""

    first: Mapping[str, str] = {}
    """The commands that come first, each with its help, so that their parsers need not be set up."""
    sections: Mapping[str, Sequence[str]] = {}
    """The commands, or first words of commands, that the help lists, by section."""

    def format_help(self) -> str:
        """Return the short help: the first steps, and the names of all commands by section."""
        width = max(map(len, self.first))
        first = [f"  {name:{width}}  {text}" for name, text in self.first.items()]
        label = max(map(len, self.sections))
        sections = [f"  {title:{label}}  {', '.join(names)}" for title, names in self.sections.items()]
        return "\n".join(
            [
                f"usage: {self.prog} [OPTION...] [COMMAND ...]",
                "",
                f"{self.description}",
                "",
                "First steps:",
                *first,
                "",
                f"All commands (`{self.prog} help COMMAND` explains one, --help-all explains every one):",
                *sections,
                "",
            ]
        )

    def whole_help(self) -> str:
        """Return the help of every command, in sections, and of the options that precede a command."""
        lines = [f"usage: {self.prog} [OPTION...] [COMMAND ...]", "", f"{self.description}"]
        for title, names in self.sections.items():
            rows = [row for name in names for row in self._rows_of(name)]
            width = max(len(name) for name, _ in rows)
            lines += ["", f"{title}:", *(f"  {name:{width}}  {text}" for name, text in rows)]
        options = [action for action in self._actions if action.option_strings]
        formatter = self._get_formatter()
        formatter.start_section("Options before a command")
        formatter.add_arguments(options)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return "\n".join([*lines, "", formatter.format_help()])

    def _rows_of(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield the commands that begin with a word, each with its line of help."""
        parser = self.command(name)
        if parser is None or not parser.names:
            yield name, self._help_of(name)
            return
        yield from ((f"{name} {inner}", text) for inner, text in parser.commands().items())

    def _help_of(self, name: str) -> str:
        """Return the line that describes a command."""
        parser: CommandParser | None = self
        *groups, last = name.split()
        for group in groups:
            parser = parser and parser.command(group)
        listed = parser.commands() if parser else {}
        return listed.get(last, "")


class WholeHelp(argparse.Action):
    """`--help-all`: prints the help with all options, and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        """Take no value, and leave nothing in the namespace."""
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the whole help, and end the program."""
        assert isinstance(parser, CommandParser)
        print(parser.whole_help(), end="")
        raise SystemExit(DONE)


def _sentence(words: str) -> str:
    """Return words as a sentence; empty for none."""
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _in_usage(action: argparse.Action) -> bool:
    """Return whether the short usage contains an action, because a call must give it."""
    return not action.option_strings or action.required


def readable(text: str) -> str:
    """Return a message with visible control characters; long words and long messages are shortened."""
    from gistpoint.core.text import shortened, visible

    words = [shortened(word, _WORD) for word in visible(text).split(" ")]
    return shortened(" ".join(words), _SENTENCE)


_WORD, _SENTENCE = 240, 4_000
"""The maximum lengths of a word and of a message, in characters. Longer ones are shortened in the middle."""


class CommandRow(NamedTuple):
    """A row of the table of commands."""

    name: str
    """The words of the command, such as `task new`."""
    help: str
    """The help; empty for a command that is not listed."""
    place: str
    """The module in `tui/commands/` and the name in it, such as `task_making:NEW`."""
    screen: bool = False
    """Whether the command opens a screen."""
    shown: tuple[str, ...] = ()
    """The fields of the options that its short help shows; if empty, all except those for isolation."""
    rare: bool = False
    """Whether the short help of its group names it without explaining it."""
    outcomes: bool = False
    """Whether it shows outcomes of attempts, which `--unblind` shows in an open study (decision 191)."""

    def load(self) -> Options:
        """Import the module of the command, and return the function that adds its options."""
        module, _, name = self.place.partition(":")
        options: Options = getattr(import_module(f"gistpoint.tui.commands.{module}"), name)
        return options


def add_commands(top: CommandParser, commands: Iterable[CommandRow], groups: Mapping[str, str]) -> None:
    """Add all commands to a parser. `groups` contains the help on words that begin several commands."""
    found: dict[str, Any] = {"": _subparsers(top, required=False)}
    parsers = {"": top}
    commands = tuple(commands)
    alone = {command.name for command in commands}
    for command in commands:
        group, _, name = command.name.rpartition(" ")
        if group in alone:  # `runs compare` next to `runs`, which takes paths
            group, name = "", command.name
        if group not in found:
            about = groups[group]
            of_group = parsers[group] = found[""].add_parser(group, help=about, description=_sentence(about))
            of_group.add_argument("--help-all", action=WholeHelp, help=argparse.SUPPRESS)
            found[group] = _subparsers(of_group, required=True)
        if command.rare:
            parsers[group].rare = (*parsers[group].rare, name)
        parser = found[group].add_parser(name, **({"help": command.help} if command.help else {}))
        parser.load, parser.screen, parser.shown = command.load, command.screen, command.shown
        parser.about, parser.outcomes = command.help, command.outcomes


def refuse_mistyped(words: Sequence[str], known: Iterable[str]) -> None:
    """Raise `UserError` if the second word looks like a mistyped command, and no file has that name.

    `known` are commands of two words whose first word is also a command, which takes paths.
    """
    inner = [name.partition(" ")[2] for name in known if name.partition(" ")[0] in words[:1]]
    meant = nearest(words[1], inner) if inner and len(words) > 1 else ""
    if meant and not os.path.lexists(words[1]):
        raise UserError(
            f"There is neither a command nor a file {words[1]!r}.",
            hint=f"Did you mean `gistpoint {words[0]} {meant}`?",
        )


def _subparsers(parser: CommandParser, *, required: bool) -> Any:
    made = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=required, parser_class=CommandParser
    )
    parser.names = made.choices.keys()
    return made


def _require_value(option: str) -> None:
    """Raise `UserError` for an empty value, unless its option may have one."""
    if option not in _MAY_BE_EMPTY:
        what = option if option.startswith("-") else "An argument"
        raise UserError(f"{what} is empty.", hint="Give it a value, or leave it out.")
