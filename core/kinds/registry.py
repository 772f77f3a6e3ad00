"""All kinds of tasks with their tools: the built-in ones and those that other packages declare.

Only this module names the kinds, so that the engine and the stores serve any of them (decision 53).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from gistpoint.core.attempts.state import KindState, NoKindState
from gistpoint.core.kinds.gist.kind import Gist
from gistpoint.core.kinds.kind import TaskKind
from gistpoint.core.kinds.measures import Measure
from gistpoint.core.kinds.repair.kind import Repair
from gistpoint.core.plugins import instance_of, load_all
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import Tool

GROUP = "gistpoint.kinds"
"""The entry-point group: each entry names one `TaskKind`."""

BUILT_IN: tuple[TaskKind[Any], ...] = (Repair(), Gist())


def fault_of_kind(loaded: Any) -> str:
    """Return in a few words why an object can't be an additional kind; empty if it can.

    An additional kind must not replace a mode or a tool.
    """
    fault = instance_of(TaskKind)(loaded)
    if fault:
        return fault
    own_modes = set[str]()
    own_tools = dict[str, Tool]()
    for kind in BUILT_IN:
        own_modes.update(kind.modes)
        own_tools.update({tool.name: tool for tool in kind.tools})
    taken = sorted(own_modes.intersection(loaded.modes))
    if taken:
        return f"the mode {taken[0]!r} is gistpoint's own"
    changed = [tool.name for tool in loaded.tools if own_tools.get(tool.name, tool) != tool]
    if changed:
        return f"the tool {changed[0]!r} is gistpoint's own, but a different one"
    return ""


@cache
def all_kinds() -> tuple[TaskKind[Any], ...]:
    """Return the built-in kinds, then those of installed packages that can be loaded, ordered by name."""
    return (*BUILT_IN, *load_all(GROUP, fault_of_kind)[0])


@cache
def _built_in_modes() -> dict[str, TaskKind[Any]]:
    return {mode: kind for kind in BUILT_IN for mode in kind.modes}


def all_modes() -> dict[str, TaskKind[Any]]:
    """Return the kinds by mode."""
    found = dict[str, TaskKind[Any]]()
    for kind in all_kinds():
        found.update(dict.fromkeys(kind.modes, kind))
    return found


def not_loaded() -> str:
    """Return why kinds of installed packages are missing, in sentences; empty if none is."""
    return " ".join(map(str, load_all(GROUP, fault_of_kind)[1]))


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
    """Whether solvers have to find the functions to be changed, in a mode that reports distinguish."""
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
def _built_in_tools() -> dict[str, Tool]:
    return _tools_of(BUILT_IN)


def _tools_of(kinds: Iterable[TaskKind[Any]]) -> dict[str, Tool]:
    return {tool.name: tool for kind in kinds for tool in kind.tools}


def declared(name: str) -> Tool | None:
    """Return the tool with this name from any kind; None if there is none."""
    return _built_in_tools().get(name) or all_tools().get(name)


def submits(name: str) -> bool:
    """Whether a tool with this name submits."""
    tool = declared(name)
    return tool is not None and tool.submits
