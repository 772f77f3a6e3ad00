"""All kinds of tasks with their tools: the built-in ones and those that other packages declare.

Only this module names the kinds, so that the engine and the stores serve any of them (decision 53).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from gistpoint.core.attempts.state import KindState, NoKindState
from gistpoint.core.kinds.kind import TaskKind
from gistpoint.core.kinds.measures import Measure
from gistpoint.core.kinds.repair.kind import Repair
from gistpoint.core.plugins import PluginError, instance_of, load_all
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import Tool

GROUP = "gistpoint.kinds"
"""The entry-point group: each entry names one `TaskKind`."""

_REPAIR = Repair()


@cache
def built_in() -> tuple[TaskKind[Any], ...]:
    """Return gistpoint's own kinds. The kind of gists is imported when it is needed (decision 216)."""
    from gistpoint.core.kinds.gist.kind import Gist

    return _REPAIR, Gist()


def fault_of_kind(loaded: Any, others: Iterable[TaskKind[Any]] = ()) -> str:
    """Return, in a few words, why an object can't be an additional kind; empty if it can.

    An additional kind must not replace anything of a built-in kind, or of the `others` that other packages
    have added before: a mode, a tool, a measure or an analysis.
    """
    fault = instance_of(TaskKind)(loaded)
    if fault:
        return fault
    own = _names_of(loaded)
    for owner, kinds in (("gistpoint's own", built_in()), ("another package's", others)):
        for known in map(_names_of, kinds):
            for what, held in own.items():
                for name in sorted(held.keys() & known[what].keys()):
                    if what not in _SHARED:
                        return f"the {what} {name!r} is {owner}"
                    if held[name] != known[what][name]:
                        return f"the {what} {name!r} is {owner}, but a different one"
    return ""


def fault_among_others(loaded: Any) -> str:
    """Return what `fault_of_kind` returns, with the kinds that installed packages have added as `others`."""
    added = [kind for kind in all_kinds() if kind not in built_in() and kind is not loaded]
    return fault_of_kind(loaded, added)


_SHARED = frozenset(("tool", "measure", "measure of tasks"))
"""The attributes that several kinds may share if their values are equal."""


def _names_of(kind: TaskKind[Any]) -> dict[str, dict[str, object]]:
    """Return the modes, tools, measures and analyses that a kind adds, each by name."""
    return {
        "mode": dict.fromkeys((*kind.modes, *kind.reported_modes), kind),
        "tool": {tool.name: tool for tool in kind.tools},
        "measure": {measure.name: measure for measure in kind.measures},
        "measure of tasks": {measure.name: measure for measure in kind.task_measures},
        "analysis": {analysis.id: analysis for analysis in kind.analyses},
    }


@cache
def all_kinds() -> tuple[TaskKind[Any], ...]:
    """Return the built-in kinds, then those of installed packages that can be loaded, ordered by name."""
    return (*built_in(), *_installed()[0])


def _installed() -> tuple[list[TaskKind[Any]], list[PluginError]]:
    """Return the kinds of installed packages, and the errors of those that can't be loaded."""
    found: list[TaskKind[Any]] = []

    def fault(loaded: Any) -> str:
        why = fault_of_kind(loaded, found)
        if not why:
            found.append(loaded)
        return why

    return load_all(GROUP, fault)


@cache
def _built_in_modes() -> dict[str, TaskKind[Any]]:
    return {mode: kind for kind in built_in() for mode in kind.modes}


def is_built_in(task: Task) -> bool:
    """Return whether a task's kind is gistpoint's own, so that its code changes only with the version."""
    kind = kind_of(task)
    return kind is _REPAIR or kind in built_in()


def all_modes() -> dict[str, TaskKind[Any]]:
    """Return the kinds by mode."""
    found = dict[str, TaskKind[Any]]()
    for kind in all_kinds():
        found.update(dict.fromkeys(kind.modes, kind))
    return found


def not_loaded() -> str:
    """Return why kinds of installed packages are missing, in sentences; empty if none is."""
    return " ".join(map(str, _installed()[1]))


def kind_of(task: Task) -> TaskKind[Any]:
    """Return the kind of a task, whose mode was validated when it was read or made."""
    found = kind_named(task.mode)
    assert found is not None, f"no kind of task has the mode {task.mode!r}"
    return found


def kind_with_settings() -> TaskKind[Any]:
    """Return the kind whose attempts can have their own settings; the first if there are several."""
    return next(kind for kind in all_kinds() if kind.takes_settings)


def kind_named(mode: object) -> TaskKind[Any] | None:
    """Return the kind of a mode; None if no loaded kind has it."""
    if str(mode) in _REPAIR.modes:
        return _REPAIR
    # Installed packages can't replace a built-in mode, and finding them delays the first paint (decision 37).
    return _built_in_modes().get(str(mode)) or all_modes().get(str(mode))


def measure_named(name: str) -> Measure:
    """Return the measure of attempts with this name. Raises `LookupError` if no kind declares it."""
    for kind in all_kinds():
        for measure in kind.measures:
            if measure.name == name:
                return measure
    raise LookupError(f"No kind of task has a measure {name!r}.")


def modes_measuring(measure: str) -> tuple[str, ...]:
    """Return the reported modes of all kinds that have a measure with this name."""
    modes = list[str]()
    for kind in all_kinds():
        if measure in [own.name for own in kind.measures]:
            modes += kind.reported_modes
    return tuple(modes)


def is_searched(mode: str) -> bool:
    """Return whether solvers have to find the functions to be changed, in a reported mode."""
    reporting = [kind for kind in all_kinds() if mode in kind.reported_modes]
    return bool(reporting) and reporting[-1].searched(mode)


def blank_state(mode: object) -> KindState:
    """Return the part of an attempt's state that a mode's kind adds, before the first event.

    The part is empty if no loaded kind has the mode.
    """
    found = kind_named(mode)
    if found is None:
        return NoKindState()
    return found.blank


def render_brief(task: Task) -> str:
    """Return the brief of a task as it is shown and sent. Raises `TaskError` if it can't be rendered."""
    return kind_of(task).brief(task)


@cache
def all_tools() -> dict[str, Tool]:
    """Return all tools by name, browsing tools first."""
    return _tools_of(all_kinds())


@cache
def _repair_tools() -> dict[str, Tool]:
    return _tools_of((_REPAIR,))


@cache
def _built_in_tools() -> dict[str, Tool]:
    return _tools_of(built_in())


def _tools_of(kinds: Iterable[TaskKind[Any]]) -> dict[str, Tool]:
    return {tool.name: tool for kind in kinds for tool in kind.tools}


def declared(name: str) -> Tool | None:
    """Return the tool with this name from any kind; None if there is none."""
    return _repair_tools().get(name) or _built_in_tools().get(name) or all_tools().get(name)


def submits(name: str) -> bool:
    """Return whether a tool with this name submits."""
    tool = declared(name)
    return tool is not None and tool.submits
