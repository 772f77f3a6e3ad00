"""The metrics of a study's tasks, and of all functions of their libraries, in `metrics.json`.

Measuring a library takes seconds, so it is done once, when an analysis first needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.registry import kind_named
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.operations import StudyError
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree

METRICS_FILE = "metrics.json"
FORMAT, VERSION = "gistpoint.study_metrics", 1


class StudyMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a `metrics.json`."""

    format: str = FORMAT
    version: int = VERSION
    tasks: dict[str, dict[str, float]] = {}
    """The metrics of each task's target, or their means over several targets, by the task's id."""
    libraries: dict[str, dict[str, dict[str, float]]] = {}
    """The metrics of each library's functions, by `name revision` and `path::qualname`."""


def read_metrics(root: Path) -> StudyMetrics:
    """Return the metrics stored in a study's folder, which are empty if there is no file.

    Raises `StudyError` if the file can't be read.
    """
    try:
        return msgspec.json.decode(
            read_regular(root / METRICS_FILE, links=False), type=decodable(StudyMetrics)
        )
    except FileNotFoundError:
        return StudyMetrics()
    except (OSError, ValueError, RecursionError) as error:
        raise StudyError(
            f"{METRICS_FILE} can't be read: {error}.", hint="Delete it; it will be made again."
        ) from error


def library_key(task: StudyTask) -> str:
    """Return the key of a task's library: its name and revision."""
    return f"{task.source} {task.revision}".strip()


def complete_metrics(
    root: Path,
    tasks_of_study: Mapping[str, StudyTask],
    find: Callable[[str], Task],
    report: Callable[[str], None] = lambda words: None,
) -> tuple[StudyMetrics, tuple[str, ...]]:
    """Measure the metrics missing from the study in `root`, store them if possible, and return all.

    Also returns a sentence for each library that can't be measured. `find` returns the task with an id.
    Raises `StudyError` if the stored metrics can't be read.
    """
    known, problems = read_metrics(root), list[str]()
    tasks, libraries = dict(known.tasks), dict(known.libraries)
    for task in tasks_of_study.values():
        kind = kind_named(task.mode)
        if kind is None or not kind.has_targets:
            continue
        key = library_key(task)
        try:
            if key not in libraries:
                report(f"measuring {key}")
                libraries[key] = _measured(find(task.id))
        except UserError as error:
            problems.append(f"{key} can't be measured: {error}")
            continue
        if not task.metrics and task.id not in tasks:
            tasks[task.id] = _of_targets(libraries[key], task)
    found = StudyMetrics(tasks=tasks, libraries=libraries)
    if found != known:
        _write(root / METRICS_FILE, found)
    return found, tuple(problems)


def with_metrics(tasks: Mapping[str, StudyTask], measured: StudyMetrics) -> dict[str, StudyTask]:
    """Return the tasks by id, with measured metrics for tasks whose answers contain none."""
    return {
        id: task if task.metrics else msgspec.structs.replace(task, metrics=measured.tasks.get(id, {}))
        for id, task in tasks.items()
    }


def candidates(
    tasks: Mapping[str, StudyTask], measured: StudyMetrics
) -> dict[str, tuple[dict[str, float], ...]]:
    """Return the metrics of all functions of each library, by the library's name."""
    keys: dict[str, set[str]] = {}
    for task in tasks.values():
        keys.setdefault(task.source, set()).add(library_key(task))
    found = {
        name: tuple(values for key in sorted(of_name) for values in measured.libraries.get(key, {}).values())
        for name, of_name in keys.items()
    }
    return {name: values for name, values in found.items() if values}


def _measured(task: Task) -> dict[str, dict[str, float]]:
    from gistpoint.core.metrics.table import original_metrics  # loads networkx

    answer = read_answer(task)
    values = original_metrics(SourceTree.open(task.tree_path), answer.targets, task.suite.test_files)
    return {function: dict(of_function) for function, of_function in values.items()}


def _of_targets(library: Mapping[str, Mapping[str, float]], task: StudyTask) -> dict[str, float]:
    from gistpoint.core.metrics.table import mean_metrics

    return mean_metrics(library, task.targets)


def _write(path: Path, metrics: StudyMetrics) -> None:
    with suppress(OSError):  # on a read-only disk, the libraries are measured again next time
        replace_file(path, msgspec.json.encode(metrics, order="sorted") + b"\n", durable=False)
