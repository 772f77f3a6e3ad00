"""Compares many runs of one task in a tree that shows what each run tried first and where runs diverge.

An action is a kind of work with its target, such as `edit fares.py::fare`. Messages, bookkeeping, and an
action that repeats the one before it do not count, so runs diverge only where their actions differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, product, takewhile

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records.model import UNSOLVED, Run, Step, StepKind
from gistpoint.sessions.runs.changes import Redefined, changes_of
from gistpoint.sessions.runs.commands import (
    file_name,
    path_of,
    pipelines,
    plain_path,
    same_path,
    shell_command,
    unquoted,
    views_of,
)
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import is_of_solver
from gistpoint.sessions.runs.single_calls import steps_of_calls
from gistpoint.sessions.runs.work import Work, work_of

MOST_ACTIONS = 1_000
"""The maximum number of actions of a run that are compared."""
_IN_A_LINE = 40
"""The maximum number of a node's actions that are written in its line."""
_LONGEST_TARGET = 200
_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w{1,100})", re.MULTILINE)
_PLAIN = re.compile(r"[^\s\"'\x00-\x1f\x7f-\x9f\u2192]+")
"""Matches a name without spaces, quotes, control characters, or the arrow between actions."""
_MOST_SEARCHED = 20_000
"""The length in characters of the part of an edit that is searched for the function it changes."""
_PREFIXES = frozenset({"sudo", "time", "env", "nohup", "command"})
"""Words that may precede the program in a command."""
_SETTING_UP = frozenset({"cd", "pushd", "export", "source", ".", "set"})
"""Programs that only prepare for the program that follows."""


@dataclass(frozen=True, slots=True, order=True)
class Action:
    """The action of a call: the kind of work, or the tool, and its target, which may be empty."""

    verb: str
    path: str = ""
    """The file, as the run names it."""
    name: str = ""
    """The function in the file, or the program of a command."""

    def __str__(self) -> str:
        return f"{self.verb} {'::'.join(map(_in_a_line, filter(None, (self.path, self.name))))}".rstrip()


def _in_a_line(name: str) -> str:
    """Return a name as written in a list: in quotes if it would be read as several names or none."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class RunActions:
    """The compared actions of a run, with their steps, and the run's header with its outcome."""

    name: str
    """The name by which the run is opened."""
    run: Run
    actions: tuple[Action, ...]
    steps: tuple[int, ...]
    """The step of each action, counted from 0."""
    is_cut: bool = False
    """Whether there are more actions than are compared."""


def actions_of(steps: Iterable[Step]) -> Iterator[tuple[int, Action]]:
    """Yield the actions of a run, without repetitions in a row, each with the index of its step."""
    before: Action | None = None
    for step in steps:
        for action in actions_in(step):
            if action != before:
                yield step.index, action
                before = action


def actions_in(step: Step) -> Iterator[Action]:
    """Yield an action for each call of a step of the solver; nothing for the steps of others."""
    if not is_of_solver(step):
        return
    for each in steps_of_calls(step):
        action = _action_of(each)
        if action is not None:
            yield action


def _action_of(step: Step) -> Action | None:
    """Return the action of a step with at most one call; None if it calls nothing."""
    work = work_of(step)
    if work is None:
        return None
    if work is Work.TEST:
        return Action("run", name="tests")
    if work is Work.RUN:
        return _of_command(step)
    if work is Work.EDIT:
        return Action(work.value, *_edited(step))
    return Action(work.value, _read(step) if work is Work.READ else "")


def _of_command(step: Step) -> Action:
    """Return the action of a step that runs a command or another tool."""
    call = step.calls[0] if step.calls else None
    if step.kind is not StepKind.EXECUTE or call is None:
        return Action("call", name=_short(call.tool) if call is not None else step.kind.value)
    commands = (command for pipeline in pipelines(shell_command(call)) for command in pipeline)
    programs = filter(None, map(_program, commands))
    program = next((program for program in programs if program not in _SETTING_UP), "")
    return Action("run", name=_short(program) or _short(call.tool))


def _program(words: Sequence[str]) -> str:
    """Return the name of the program that a command runs, without its folder; empty without one."""
    named = (word for word in words if word not in _PREFIXES and "=" not in word)
    return next(named, "").rpartition("/")[2]


def _read(step: Step) -> str:
    paths = (path for call in step.calls for path in (path_of(call), *(v.path for v in views_of(call))))
    return _short(next(filter(None, paths), ""))


def _edited(step: Step) -> tuple[str, str]:
    """Return the file and the function that a step edits; each is empty if it is unknown."""
    changes = changes_of(step)
    path = next((edit.path for edit in (*step.edits, *changes) if edit.path), "")
    names = {change.name.rpartition("::")[2] for change in changes if isinstance(change, Redefined)}
    texts = [f"{edit.old}\n{edit.new}"[:_MOST_SEARCHED] for edit in step.edits[:1] if edit.old is not None]
    names = names or set(_DEFINED.findall("".join(texts)))
    return _short(path), _short(names.pop()) if len(names) == 1 else ""


def _short(text: str) -> str:
    return unquoted(text)[:_LONGEST_TARGET]


def run_actions(name: str, document: RunDocument, run: Run, *, cancel: CancelToken = NEVER) -> RunActions:
    """Read a run to its end and return it for a comparison; `run` is its header as it is displayed.

    Raises `CancelledError` when cancelled.
    """
    found = [*islice(actions_of(_steps(document, cancel)), MOST_ACTIONS + 1)]
    steps, actions = zip(*found[:MOST_ACTIONS], strict=True) if found else ((), ())
    return RunActions(name, run, actions, steps, is_cut=len(found) > MOST_ACTIONS)


def _steps(document: RunDocument, cancel: CancelToken) -> Iterator[Step]:
    document.build(cancel=cancel)
    for step in document.steps():
        cancel.check()
        yield step


# Names of files


def with_common_paths(runs: Sequence[RunActions]) -> list[RunActions]:
    """Return runs in which each file has one name: its last part if unique, otherwise its shortest path.

    Programs name a file in several ways, such as `/testbed/src/a.py` and `src/a.py`. Two relative paths of
    one run are different files, and so are two absolute ones. A path that matches several files counts as a
    separate file.
    """
    users: dict[str, set[int]] = {}
    for number, run in enumerate(runs):
        for action in run.actions:
            users.setdefault(action.path, set()).add(number)
    names = _file_names(users)
    renamed = cache(lambda action: replace(action, path=names[action.path]))
    return [replace(run, actions=tuple(map(renamed, run.actions))) for run in runs]


def _file_names(users: Mapping[str, set[int]]) -> dict[str, str]:
    """Return the common name of each path, given the runs that use it."""
    by_name: dict[str, list[str]] = {}
    for path in sorted(filter(None, users), key=lambda path: (-len(plain_path(path)), path)):
        by_name.setdefault(file_name(path), []).append(path)
    found = {"": ""}
    for name, same_name in by_name.items():
        files = _files_of(same_name, users)
        for paths in files:
            shortest = min(paths, key=lambda path: (len(path), path))
            found |= dict.fromkeys(paths, name if len(files) == 1 else shortest)
    return found


def _files_of(paths: Iterable[str], users: Mapping[str, set[int]]) -> list[list[str]]:
    """Return the paths of each file, given all paths with the same last part; longer paths come first."""
    files: list[list[str]] = []
    for path in paths:
        fitting = [
            file
            for file in files
            if same_path(path, file[0]) and not any(_are_apart(path, other, users) for other in file)
        ]
        if len(fitting) == 1:
            fitting[0].append(path)
        else:
            files.append([path])
    return files


def _are_apart(one: str, other: str, users: Mapping[str, set[int]]) -> bool:
    """Return whether a run uses two paths that start at the same folder, and are thus different files."""
    start_alike = _is_absolute(one) is _is_absolute(other)
    return start_alike and plain_path(one) != plain_path(other) and not users[one].isdisjoint(users[other])


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\")) or path[1:2] == ":"


# The tree


@dataclass(frozen=True, slots=True)
class ActionNode:
    """Runs with the same consecutive actions, until some of them diverge.

    A node without actions represents runs that end where others continue.
    """

    actions: tuple[Action, ...]
    place: int
    """The number of actions of these runs before those of the node."""
    runs: tuple[int, ...]
    """The numbers of the runs, in the order in which they were given."""
    children: tuple[ActionNode, ...] = ()

    @property
    def parts(self) -> bool:
        """Whether the runs diverge at the end of the node."""
        return bool(self.children)

    @property
    def words(self) -> str:
        """The first `_IN_A_LINE` actions in one line; if there are no actions, the reason."""
        more = len(self.actions) - _IN_A_LINE
        shown = " → ".join(map(str, self.actions[:_IN_A_LINE]))
        nothing = "all begin differently" if self.parts else "nothing more"
        return f"{shown} … {more:,} more" if more > 0 else shown or nothing


@dataclass(slots=True)
class _Open:
    """A node whose children are still to be made."""

    runs: list[int]
    place: int
    children: list[_Open] = field(default_factory=list)
    end: int = 0


def tree_of(runs: Sequence[RunActions]) -> ActionNode:
    """Return the tree of some runs' actions at one task; its root has the actions with which all began.

    Children with more runs come first. Files should have common names, see `with_common_paths`.
    """
    root = _Open([*range(len(runs))], 0)
    order = [root]
    for node in order:  # grows while it is read; recursion could be as deep as a run is long
        node.end = _common_end(node, runs)
        ways: dict[Action | None, list[int]] = {}
        for number in node.runs:
            actions = runs[number].actions
            ways.setdefault(actions[node.end] if node.end < len(actions) else None, []).append(number)
        if len(ways) > 1:
            groups = sorted(ways.values(), key=lambda group: (-len(group), group[0]))
            node.children = [_Open(group, node.end) for group in groups]
            order += node.children
    made: dict[int, ActionNode] = {}
    for node in reversed(order):
        made[id(node)] = ActionNode(
            runs[node.runs[0]].actions[node.place : node.end] if node.runs else (),
            node.place,
            tuple(node.runs),
            tuple(made[id(child)] for child in node.children),
        )
    return made[id(root)]


def _common_end(node: _Open, runs: Sequence[RunActions]) -> int:
    """Return the number of actions that all runs of a node have in common from their start."""
    lists = [runs[number].actions for number in node.runs]
    if not lists:
        return 0
    shortest = min(map(len, lists))
    places = range(node.place, shortest)
    same = takewhile(lambda place: all(actions[place] == lists[0][place] for actions in lists), places)
    return node.place + sum(1 for _ in same)


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A row of a drawn tree: a node, its depth, and its number among all nodes."""

    node: ActionNode
    depth: int
    number: int


def rows_of(root: ActionNode, folded: frozenset[int] | set[int] = frozenset()) -> list[TreeRow]:
    """Return the rows of a tree, each node before its children, without the nodes below folded ones."""
    rows: list[TreeRow] = []
    waiting = [(root, 0, False)]
    number = 0
    while waiting:
        node, depth, hidden = waiting.pop()
        if not hidden:
            rows.append(TreeRow(node, depth, number))
        below = hidden or number in folded
        number += 1
        waiting += [(child, depth + 1, below) for child in reversed(node.children)]
    return rows


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How runs ended: the numbers of all runs, of runs with a recorded outcome, and of solved runs."""

    runs: int
    judged: int
    solved: int

    def __str__(self) -> str:
        return f"{self.solved} of {self.judged} solved" if self.judged else ""


def outcomes_of(node: ActionNode, runs: Sequence[RunActions]) -> Outcomes:
    """Return how the runs of a node ended."""
    verdicts = [runs[number].run.verdict for number in node.runs]
    return Outcomes(len(verdicts), sum(map(bool, verdicts)), verdicts.count("solved"))


def pair_of(node: ActionNode, runs: Sequence[RunActions]) -> tuple[int, int] | None:
    """Return two runs that diverge at a node; None if its runs don't diverge.

    They belong to its two largest children; if possible, one is solved and the other is not.
    """
    if not node.children:
        return None
    one, other = (child.runs for child in node.children[:2])
    apart = (pair for pair in product(one, other) if {runs[n].run.verdict for n in pair} == _APART)
    return next(apart, (one[0], other[0]))


_APART = {"solved", UNSOLVED}
