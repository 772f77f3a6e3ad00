"""Tasks on disk: `task.toml`, `workspace/tree.tar` and `answer/`, each validated when it is read.

The public part and the answer are read by two functions, so that code that serves a solver has no reason to
open the answer.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.entrypoints.programs import entry_points
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.kind import TaskKind
from gistpoint.core.kinds.registry import all_modes, kind_named, kind_of, not_loaded
from gistpoint.core.logs import replace_file
from gistpoint.core.pins import EnvironmentPins, fault_in, folders_in, is_inside, plugins_in, quoted
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.conditions import kept_differences, require_same_conditions
from gistpoint.core.tasks.documents import (
    ANSWER,
    ANSWER_FILE,
    ANSWER_VERSION,
    TASK_FILE,
    json_text,
    read_document,
    write_baseline,
)
from gistpoint.core.tasks.entered import write_entered
from gistpoint.core.tasks.fields import Fields, Sha256
from gistpoint.core.tasks.identity import commitment, salted_id, task_id
from gistpoint.core.tasks.model import (
    CANARY,
    FORMAT,
    SALTED,
    Answer,
    Brief,
    Rules,
    Seal,
    Source,
    Suite,
    Task,
    ToolLimits,
)
from gistpoint.core.trees import SourceTree, sha256_of


def read_task(folder: Path, *, verify: bool = True) -> Task:
    """Return the task in `folder`, of which only the public part is read.

    With `verify`, check the hash of the tree, that solvers can't change a pytest plugin that the task names,
    and, if the answer is present, the id and the answer. Without the answer, a salted id can't be checked.
    Raises `TaskError` with one sentence that names the file and the key.
    """
    task = task_of(read_document(folder / TASK_FILE), folder)
    if verify:
        _require_sound(task)
        if (folder / ANSWER_FILE).is_file():
            verify_identity(task, read_answer(task))
    return task


def read_task_with_answer(folder: Path) -> tuple[Task, Answer]:
    """Return the task in `folder`, verified, and its answer, which is read only once.

    Raises `TaskError` as `read_task` and `read_answer` do.
    """
    task = read_task(folder, verify=False)
    _require_sound(task)
    answer = read_answer(task)
    verify_identity(task, answer)
    return task, answer


def _require_sound(task: Task) -> None:
    """Raise `TaskError` if the tree was changed, or if solvers could change a pytest plugin of the task."""
    if sha256_of(task.tree_path) != task.tree_sha256:
        raise TaskError(
            f"{TASK_FILE}: the key 'tree.sha256' does not match workspace/tree.tar.",
            hint="The task was changed or copied incompletely. Get it again.",
        )
    _require_plugins_of_others(task)


def task_of(fields: Fields, folder: Path) -> Task:
    """Return the task in `folder` from the fields of its file. Raises `TaskError` as `read_task` does."""
    task = _task(fields, folder)
    if not task.tree_path.is_file():
        raise TaskError(f"{TASK_FILE}: workspace/tree.tar is missing from {folder.name}.")
    return task


def compare(known: Task, other: Task) -> tuple[str, ...]:
    """Return the keys in which another task with the same id has different measurements or wording.

    The id does not cover the conditions for solvers (decision 119). Raises `TaskConflictError` if those
    conditions differ, and `TaskError` if the other task's brief can't be shown here.
    """
    kind = kind_of(known)
    require_same_conditions(known, kind.document(known), other, kind_of(other).document(other))
    kind_of(other).brief(other)
    return kept_differences(known, other)


def read_answer(task: Task) -> Answer:
    """Return the answer of a task. Raises `TaskError` if it is missing or damaged."""
    fields = read_document(task.folder / ANSWER_FILE)
    fields.get("canary", str)
    answer = kind_of(task).read_answer(task, fields)
    if _SEAL in fields.values:
        return replace(answer, seal=fields.table(_SEAL).record(Seal))
    return answer


_SEAL = "seal"
"""The table of an answer with the values from which a salted id was made."""


def content_sha256(task: Task) -> str:
    """Return the hash that tasks with the same content share; empty if it is unknown.

    The hash is the id of an unsalted task. For a salted task, the hash is stored in the answer, and is
    unknown if the answer is missing, damaged or without a hash.
    """
    return stored_content_sha256(task.folder) if is_salted(task) else task.id


def stored_content_sha256(folder: Path) -> str:
    """Return the hash of its content that the answer of a salted task contains; empty if it is unknown."""
    try:
        values = read_document(folder / ANSWER_FILE).values.get(_SEAL)
    except TaskError:
        return ""
    if isinstance(values, Mapping):
        return str(values.get("content_sha256", ""))
    return ""


def folders_of_content(root: Path, wanted: str) -> Iterator[Path]:
    """Yield, once each, the folders below `root` of tasks whose content has this hash."""
    named = root / wanted
    if (named / TASK_FILE).is_file():
        yield named
    for file in sorted(root.glob(f"[!.]*/{ANSWER_FILE}")):
        folder = file.parent.parent
        if folder == named:
            continue
        with suppress(OSError, TaskError):  # another process may remove it
            if (
                wanted.encode() in file.read_bytes()
                and content_sha256(read_task(folder, verify=False)) == wanted
            ):
                yield folder


def is_salted(task: Task) -> bool:
    """Return whether the id of a task is salted, according to its version."""
    return kind_of(task).version(task) == SALTED


def target_names(task: Task) -> tuple[str, ...]:
    """Return the corrupted functions of a task as `path::qualname`, reading only the file of the answer.

    The names are used only in titles, so the result is empty if no answer contains them.
    """
    try:
        targets = read_document(task.folder / ANSWER_FILE).values.get("targets")
    except TaskError:
        return ()
    if not isinstance(targets, list):
        return ()
    named = [target for target in targets if isinstance(target, Mapping)]
    return tuple(f"{target.get('path')}::{target.get('qualname')}" for target in named)


def verify_identity(task: Task, answer: Answer) -> None:
    """Raise `TaskError` unless the id is the hash of the task's content, with its salt if it has one.

    Also raises `TaskError` if the answer does not fit the suite that the task names.
    """
    salted = is_salted(task)
    sealed = _seal_of(task, answer) if salted else None
    content = task_id(
        mode=task.mode,
        source_name=task.source.name,
        source_revision=sealed.source_revision if sealed else task.source.revision,
        tree_sha256=task.tree_sha256,
        targets=answer.targets,
        lock=task.environment.lock,
        build_steps=task.environment.build_steps,
        ids_sha256=task.suite.ids_sha256,
        of_kind=kind_of(task).identity(task),
        image=task.environment.image,
        version=None if salted else kind_of(task).version(task),
    )
    if sealed and sealed.content_sha256 != content:
        raise TaskError(
            f"{ANSWER_FILE}: the key 'seal.content_sha256' does not match the task's content.",
            hint="The task was changed after it was made. Get it again.",
        )
    expected = salted_id(sealed, task.source) if sealed else content
    if expected != task.id:
        raise TaskError(
            f"{TASK_FILE}: the key 'id' does not match the task's content, whose id is {expected[:12]}.",
            hint=("The task was changed after it was made. Get it again, or make a new one with `task new`."),
        )
    kind_of(task).verify(task, answer)


def _seal_of(task: Task, answer: Answer) -> Seal:
    """Return the values from which a salted id was made.

    Raises `TaskError` if they are missing, or don't match the public part.
    """
    hint = "The task was changed or copied incompletely. Get it again."
    if answer.seal is None:
        raise TaskError(f"{ANSWER_FILE}: the key 'seal' is missing, so the id can't be checked.", hint=hint)
    if commitment(answer.seal.salt) != task.salt_sha256:
        raise TaskError(
            f"{TASK_FILE}: the key 'salt_sha256' does not match the salt in {ANSWER_FILE}.", hint=hint
        )
    return answer.seal


def write_task(task: Task, answer: Answer) -> None:
    """Write `task.toml` and `answer/` into the task's folder, which must contain `workspace/tree.tar`."""
    import tomli_w

    (task.folder / "answer" / "baselines").mkdir(parents=True, exist_ok=True)
    (task.folder / TASK_FILE).write_text(
        tomli_w.dumps(_public(task), multiline_strings=True), encoding="utf-8"
    )
    head = {"format": ANSWER, "version": ANSWER_VERSION, "canary": CANARY}
    document = {
        **head,
        "targets": [asdict(target) for target in answer.targets],
        "metrics": dict(answer.metrics),
        "provenance": dict(answer.provenance),
        **({_SEAL: asdict(answer.seal)} if answer.seal else {}),
        **kind_of(task).answer_document(answer),
    }
    (task.folder / ANSWER_FILE).write_text(json_text(document), encoding="utf-8")
    write_entered(task.folder, answer.entered, CANARY)
    for baseline in answer.baselines:
        write_baseline(task.folder, baseline)


def add_provenance(task: Task, entries: Mapping[str, Any]) -> None:
    """Add entries to the provenance in a task's answer, which is not part of its id.

    Existing entries are kept. Raises `TaskError` if the answer is missing or damaged.
    """
    file = task.folder / ANSWER_FILE
    document = dict(read_document(file).values)
    document["provenance"] = {**entries, **document.get("provenance", {})}
    replace_file(file, json_text(document).encode("ascii"), durable=False)


def put_provenance(task: Task, entries: Mapping[str, Any]) -> None:
    """Put entries into the provenance in a task's answer, replacing entries with the same keys.

    Nothing is written if the provenance already has them. Raises `TaskError` if the answer is missing or
    damaged.
    """
    file = task.folder / ANSWER_FILE
    document = dict(read_document(file).values)
    known = document.get("provenance", {})
    if any(known.get(key) != value for key, value in entries.items()):
        document["provenance"] = {**known, **entries}
        replace_file(file, json_text(document).encode("ascii"), durable=False)


@dataclass(frozen=True, slots=True)
class _Tree:
    sha256: Sha256


@dataclass(frozen=True, slots=True)
class _Budgets:
    tool_uses: Annotated[int, Meta(ge=1, le=1_000_000)]
    submissions: Annotated[int, Meta(ge=1, le=1_000_000)]
    time_limit_s: Annotated[int, Meta(ge=0, le=366 * 86_400)] = 0


@dataclass(frozen=True, slots=True)
class _TaskFile:
    """The content of `task.toml`, without its format, its version and the part of its kind."""

    canary: str
    id: Sha256  # the id becomes the name of a folder
    mode: str
    source: Source
    tree: _Tree
    budgets: _Budgets
    limits: ToolLimits
    rules: Rules
    suite: Suite
    environment: EnvironmentPins
    brief: Brief
    demo: bool = False
    several: bool = False
    salt_sha256: Sha256 | None = None


_OPTIONAL = frozenset({"demo", "several", "brief.test", "source.location", "budgets.time_limit_s"})


def _task(fields: Fields, folder: Path) -> Task:
    mode, kind = _mode(fields)
    file = fields.record(_TaskFile, optional=_OPTIONAL)
    if kind.suite and not file.suite.tests:
        raise TaskError(f"{fields.file}: the key 'suite.tests' must be at least 1.")
    if fault := fault_in(file.environment):
        raise TaskError(f"{fields.file}: {fault}", hint="None of the task's code was run. Ask its author.")
    if fault := _strange_path(file):
        raise TaskError(f"{fields.file}: {fault}", hint="None of the task's code was run. Ask its author.")
    semantics = file.limits.tool_semantics
    known = ToolLimits().tool_semantics
    if semantics != known:
        raise TaskError(
            f"{fields.file}: the key 'limits.tool_semantics' is {semantics}; the known value is {known}.",
            hint="Install a newer gistpoint.",
        )
    budgets = file.budgets
    task = Task(
        id=file.id,
        mode=mode,
        source=replace(file.source, location=""),
        tree_sha256=file.tree.sha256,
        brief=file.brief,
        suite=file.suite,
        environment=file.environment,
        budgets=Budgets(budgets.tool_uses, budgets.submissions, budgets.time_limit_s or None),
        limits=file.limits,
        rules=file.rules,
        of_kind=kind.read(fields),
        demo=file.demo,
        several=file.several,
        salt_sha256=file.salt_sha256 or "",
        folder=folder,
    )
    version = fields.get("version", int)
    written = kind.version(task)
    if version != written:
        raise TaskError(
            f"{fields.file}: the key 'version' is {version}, but a task with this content has version"
            f" {written}.",
            hint="None of the task's code was run. Ask its author.",
        )
    return task


def _strange_path(file: _TaskFile) -> str:
    """Return a sentence about the first path outside of the repository; empty if there is none."""
    named = {f"suite.test_files[{n}]": path for n, path in enumerate(file.suite.test_files)}
    named["brief.target"] = file.brief.target.partition("::")[0]
    for key, path in named.items():
        if path and not is_inside(path):
            return f"the key {key!r} is not a path inside the repository: {quoted(path)}."
    return ""


def _require_plugins_of_others(task: Task) -> None:
    """Raise `TaskError` if pytest would load a plugin that solvers of the task can change.

    The plugins that the project provides by entry points are permitted, because its suite needs them.
    """
    pins = task.environment
    own = entry_points(pins.metadata, "pytest11") if pins.plugins else {}
    named = [("pytest_args", name) for name in plugins_in(pins.pytest_args)]
    named += [("plugins", name) for name in pins.plugins if name not in own]
    if not named:
        return
    tree = SourceTree.open(task.tree_path)
    tests = frozenset(task.suite.test_files)
    for key, name in named:
        found = [file for file in _files_of_module(task, name) if tree.is_file(file)]
        # A link's target is what solvers would change.
        found += [tree.resolve(file) or file for file in found]
        if any(not is_protected(file, tests) for file in found):
            raise TaskError(
                f"{TASK_FILE}: the key 'environment.{key}' loads {quoted(name)} as a plugin,"
                " which is code that solvers of the task can change.",
                hint="None of the task's code was run. Ask its author.",
            )


def _mode(fields: Fields) -> tuple[str, TaskKind[Any]]:
    """Return the mode in the spelling of its kind, and the kind. Raises `TaskError` for an unknown mode."""
    mode = fields.get("mode", str)
    kind = kind_named(mode)
    if kind is None:
        known = ", ".join(all_modes())
        message = f"{fields.file}: the key 'mode' is {mode!r}; the known modes are {known}."
        raise TaskError(message, hint=not_loaded())
    return kind.modes[kind.modes.index(mode)], kind


def _files_of_module(task: Task, name: str) -> Iterator[str]:
    """Yield the possible paths of a module's file, below each folder of the import path."""
    path = name.replace(".", "/")
    pins = task.environment
    for root in (".", *pins.import_roots, *folders_in(pins.pytest_args)):
        yield posixpath.normpath(f"{root}/{path}.py")
        yield posixpath.normpath(f"{root}/{path}/__init__.py")


def _public(task: Task) -> dict[str, Any]:
    budgets = _table(task.budgets)
    budgets.pop("scores", None)
    brief = _table(task.brief)
    if not task.brief.test:
        brief.pop("test", None)
    brief["failing"] = [_table(failure) for failure in task.brief.failing]
    source = {"kind": task.source.kind, "name": task.source.name, "revision": task.source.revision}
    own = kind_of(task).document(task)
    tables = {key: value for key, value in own.items() if isinstance(value, Mapping)}
    optional = {"salt_sha256": task.salt_sha256, "demo": task.demo, "several": task.several}
    return {
        "format": FORMAT,
        "version": kind_of(task).version(task),
        "canary": CANARY,
        "id": task.id,
        "mode": str(task.mode),
        **{key: value for key, value in own.items() if key not in tables},
        **{key: value for key, value in optional.items() if value},
        "source": source,
        "tree": {"sha256": task.tree_sha256},
        **tables,
        "budgets": budgets,
        "limits": _table(task.limits),
        "rules": _table(task.rules),
        "suite": _table(task.suite),
        "environment": _table(task.environment),
        "brief": brief,
    }


def _table(value: Any) -> dict[str, Any]:
    """Return the fields of a record that have a value, with tuples as lists."""
    table = {}
    for key, part in asdict(value).items():
        if part is not None:
            table[key] = list(part) if isinstance(part, tuple) else part
    return table
