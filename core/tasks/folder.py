"""A task on disk: `task.toml`, `workspace/tree.tar` and `answer/`, each validated when it is read.

The public part and the answer are read by two functions, so that whatever serves a solver's code has no reason to
open the second.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.documents import gist_answer_document, read_gist_answer, read_settings, settings_table
from gistpoint.core.kinds.gist.model import GistAnswer
from gistpoint.core.kinds.gist.runs import TestsRun
from gistpoint.core.pins import fault_in
from gistpoint.core.ports import EnvironmentPins, Source
from gistpoint.core.tasks.entered import read_entered, write_entered
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.model import (
    CANARY,
    FORMAT,
    VERSION,
    Answer,
    Baseline,
    Brief,
    Failure,
    Limits,
    Mode,
    Rules,
    Suite,
    Target,
    Task,
)
from gistpoint.core.tasks.protection import protection_document, read_protections
from gistpoint.core.trees import sha256_of

FORMATS = frozenset({FORMAT, "gistpoint.answer", "gistpoint.baseline"})

UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From version N to N + 1; each one that is added has a golden file among the tests' data."""


def upgraded(document: dict[str, Any], file: str) -> dict[str, Any]:
    """Return `document` in the present version; raises `TaskError` for another format or a newer version."""
    for key in ("format", "version"):
        if key not in document:
            raise TaskError(f"{file}: the key {key!r} is missing.")
    if not isinstance(document["format"], str) or document["format"] not in FORMATS:
        raise TaskError(f"{file}: the key 'format' is {document['format']!r}, not one of gistpoint's.")
    version = document["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1 or version > VERSION:
        raise TaskError(
            f"{file}: the key 'version' is {version!r}; this gistpoint reads 1 to {VERSION}.",
            hint="Install a newer gistpoint." if isinstance(version, int) and version > VERSION else "",
        )
    while version < VERSION:
        document = UPGRADES[version](document)
        version += 1
    return document


TASK_FILE = "task.toml"
ANSWER_FILE = "answer/answer.json"


def read_task(folder: Path, *, verify: bool = True) -> Task:
    """Read the public part of the task in `folder`.

    With `verify` the hash of the tree is checked, and the id where the answer lies beside it. Raises `TaskError` with
    one sentence that names file and key.
    """
    fields = _document(folder / TASK_FILE)
    task = _task(fields, folder)
    if not task.tree_path.is_file():
        raise TaskError(f"{TASK_FILE}: workspace/tree.tar is missing from {folder.name}.")
    if verify:
        if sha256_of(task.tree_path) != task.tree_sha256:
            raise TaskError(
                f"{TASK_FILE}: the key 'tree.sha256' does not match workspace/tree.tar.",
                hint="The task was changed or copied incompletely: get it again.",
            )
        if (folder / ANSWER_FILE).is_file():
            verify_identity(task, read_answer(task))
    return task


def read_answer(task: Task) -> Answer:
    """Read the answer of a task. Raises `TaskError` where it is absent or broken."""
    fields = _document(task.folder / ANSWER_FILE)
    fields.get("canary", str)
    targets = tuple(
        Target(item.get("path", str), item.get("qualname", str), item.get("original", str), item.get("corrupted", str))
        for item in fields.tables("targets")
    )
    baselines = tuple(_baseline(path) for path in sorted((task.folder / "answer" / "baselines").glob("*.json")))
    if task.mode is Mode.GIST:
        gist = read_gist_answer(fields.table("gist"))
        return Answer((), (), fields.table("metrics").values, fields.table("provenance").values, gist)
    if not targets:
        raise TaskError(f"{ANSWER_FILE}: the key 'targets' names no function.")
    if not baselines:
        raise TaskError("answer/baselines: there is no baseline, so no submission can be scored.")
    return Answer(
        targets,
        baselines,
        fields.table("metrics").values,
        fields.table("provenance").values,
        entered=read_entered(task.folder),
    )


def verify_identity(task: Task, answer: Answer) -> None:
    """Raise `TaskError` unless the id is the hash of the task's content."""
    expected = task_id(
        mode=task.mode,
        source_name=task.source.name,
        source_revision=task.source.revision,
        tree_sha256=task.tree_sha256,
        targets=answer.targets,
        lock=task.environment.lock,
        build_steps=task.environment.build_steps,
        ids_sha256=task.suite.ids_sha256,
        entrypoint=task.entrypoint,
    )
    if expected != task.id:
        raise TaskError(
            f"{TASK_FILE}: the key 'id' does not match the task's content, whose id is {expected[:12]}.",
            hint="The task was changed after it was made: get it again, or make one as you want it with `task new`.",
        )
    if answer.gist is not None:
        _verify_originals(task, answer.gist)
        return
    for baseline in answer.baselines:
        if hash_of_ids(baseline.passed) == task.suite.ids_sha256:
            return
    raise TaskError(f"{TASK_FILE}: the key 'suite.ids_sha256' matches no baseline in answer/baselines.")


def _verify_originals(task: Task, answer: GistAnswer) -> None:
    for run in answer.originals:
        ids = run.tests if isinstance(run, TestsRun) else ()
        if hash_of_ids(ids) != task.suite.ids_sha256:
            raise TaskError(f"{TASK_FILE}: the key 'suite.ids_sha256' does not match the runs in {ANSWER_FILE}.")


def write_task(task: Task, answer: Answer) -> None:
    """Write `task.toml` and `answer/` into the task's folder, whose `workspace/tree.tar` must be there already."""
    import tomli_w

    (task.folder / "answer" / "baselines").mkdir(parents=True, exist_ok=True)
    (task.folder / TASK_FILE).write_text(tomli_w.dumps(_public(task), multiline_strings=True), encoding="utf-8")
    head = {"format": "gistpoint.answer", "version": VERSION, "canary": CANARY}
    document = {
        **head,
        "targets": [asdict(target) for target in answer.targets],
        "metrics": dict(answer.metrics),
        "provenance": dict(answer.provenance),
        **({"gist": gist_answer_document(answer.gist)} if answer.gist else {}),
    }
    (task.folder / ANSWER_FILE).write_text(_json(document), encoding="utf-8")
    write_entered(task.folder, answer.entered, CANARY)
    for baseline in answer.baselines:
        write_baseline(task.folder, baseline)


def write_baseline(folder: Path, baseline: Baseline) -> None:
    """Write one baseline beside the others; one of the same backend and environment is replaced."""
    told = {key: sorted(value) if isinstance(value, frozenset) else value for key, value in asdict(baseline).items()}
    told["protections"] = {name: protection_document(found) for name, found in baseline.protections.items()}
    document = {"format": "gistpoint.baseline", "version": VERSION, "canary": CANARY, **told}
    path = folder / "answer" / "baselines" / f"{baseline.backend}-{baseline.environment[:12]}.json"
    beside = path.with_name(f".{path.name}.{os.getpid()}")  # others may be reading it
    beside.write_text(_json(document), encoding="utf-8")
    beside.replace(path)


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=True, sort_keys=False) + "\n"


def _document(path: Path) -> Fields:
    name = path.name if path.name == TASK_FILE else "/".join(path.parts[-2:])
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except FileNotFoundError:
        raise TaskError(f"{name} is missing from {path.parent.name or path.parent}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise TaskError(f"{name} can't be read: {error}.") from error
    if not isinstance(values, dict):
        raise TaskError(f"{name} must hold a table at its top.")
    return Fields(upgraded(values, name), name)


def _task(fields: Fields, folder: Path) -> Task:
    mode = fields.get("mode", str)
    if mode not in {m.value for m in Mode}:
        raise TaskError(f"{fields.file}: the key 'mode' is {mode!r}; known are {', '.join(m.value for m in Mode)}.")
    source, budgets = fields.table("source"), fields.table("budgets")
    limit = budgets.at_least("time_limit_s", 0, 0)
    fields.get("canary", str)
    return Task(
        id=_hash(fields, "id"),
        mode=Mode(mode),
        source=Source(source.get("kind", str), source.get("name", str), source.get("revision", str)),
        tree_sha256=_hash(fields.table("tree"), "sha256"),
        brief=_brief(fields.table("brief")),
        suite=_suite(fields.table("suite"), 0 if mode == Mode.GIST else 1),
        environment=_environment(fields.table("environment")),
        budgets=Budgets(budgets.at_least("tool_uses", 1), budgets.at_least("submissions", 1), limit or None),
        limits=_limits(fields.table("limits")),
        rules=_rules(fields.table("rules")),
        entrypoint=fields.get("entrypoint", str) if mode == Mode.GIST else "",
        gist=read_settings(fields.table("gist")) if mode == Mode.GIST else None,
        demo=fields.get("demo", bool, False),
        several=fields.get("several", bool, False),
        folder=folder,
    )


def _hash(fields: Fields, key: str) -> str:
    """Return a sha256; an id becomes the name of a folder, so it must be nothing else."""
    value = fields.get(key, str)
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise TaskError(f"{fields.file}: the key {fields.name(key)!r} must be 64 hexadecimal digits.")
    return value


def _brief(fields: Fields) -> Brief:
    return Brief(
        template=fields.get("template", str),
        template_sha256=fields.get("template_sha256", str),
        failing=tuple(Failure(item.get("id", str), item.get("text", str)) for item in fields.tables("failing")),
        target=fields.get("target", str),
        signature=fields.get("signature", str),
        docstring=fields.get("docstring", str),
        targets=fields.at_least("targets", 0),
        test=fields.get("test", str, ""),
    )


def _suite(fields: Fields, fewest: int) -> Suite:
    """Read the suite; a gist of a command that is no test has no tests."""
    return Suite(
        tests=fields.at_least("tests", fewest),
        ids_sha256=_hash(fields, "ids_sha256"),
        seconds=fields.get("seconds", float),
        timeout_s=fields.above_zero("timeout_s"),
        deselected=fields.strings("deselected"),
        test_files=fields.strings("test_files"),
    )


def _environment(fields: Fields) -> EnvironmentPins:
    metadata = fields.table("metadata")
    pins = EnvironmentPins(
        python=fields.get("python", str),
        lock=fields.strings("lock"),
        resolved=fields.get("resolved", str),
        import_roots=fields.strings("import_roots"),
        plugins=fields.strings("plugins"),
        build_steps=fields.strings("build_steps"),
        pytest_args=fields.strings("pytest_args"),
        metadata={key: metadata.get(key, str) for key in metadata.values},
    )
    if fault := fault_in(pins):
        raise TaskError(f"{fields.file}: {fault}", hint="Nothing of the task was run: ask whoever made it.")
    return pins


def _limits(fields: Fields) -> Limits:
    known = Limits()
    semantics = fields.at_least("tool_semantics", 1)
    if semantics != known.tool_semantics:
        raise TaskError(
            f"{fields.file}: the key 'limits.tool_semantics' is {semantics}; known is {known.tool_semantics}.",
            hint="Install a newer gistpoint.",
        )
    return Limits(
        tool_semantics=semantics,
        search_seconds=fields.above_zero("search_seconds"),
        **{key: fields.at_least(key, 0) for key in Limits.__slots__ if key not in ("tool_semantics", "search_seconds")},
    )


def _rules(fields: Fields) -> Rules:
    return Rules(
        refused_costs_attempt=fields.get("refused_costs_attempt", bool),
        tell_count=fields.get("tell_count", bool),
        min_failing=fields.at_least("min_failing", 1),
    )


def _baseline(path: Path) -> Baseline:
    fields = _document(path)
    fields.get("canary", str)
    return Baseline(
        backend=fields.get("backend", str),
        environment=fields.get("environment", str),
        runs=fields.at_least("runs", 1),
        collected=frozenset(fields.strings("collected")),
        passed=frozenset(fields.strings("passed")),
        passed_corrupted=frozenset(fields.strings("passed_corrupted")),
        seconds=fields.get("seconds", float),
        any_order=fields.get("any_order", bool, False),
        protections=read_protections(fields.table("protections")) if "protections" in fields.values else {},
    )


def _public(task: Task) -> dict[str, Any]:
    def table(value: Any) -> dict[str, Any]:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(value).items() if v is not None}

    budgets = {key: value for key, value in table(task.budgets).items() if key != "scores"}
    brief = {key: value for key, value in table(task.brief).items() if key != "test" or value}
    source = {"kind": task.source.kind, "name": task.source.name, "revision": task.source.revision}
    optional = {"entrypoint": task.entrypoint, "demo": task.demo, "several": task.several}
    return {
        "format": FORMAT,
        "version": VERSION,
        "canary": CANARY,
        "id": task.id,
        "mode": task.mode.value,
        **{key: value for key, value in optional.items() if value},
        "source": source,
        "tree": {"sha256": task.tree_sha256},
        **({"gist": settings_table(task.gist)} if task.gist else {}),
        "budgets": budgets,
        "limits": table(task.limits),
        "rules": table(task.rules),
        "suite": table(task.suite),
        "environment": table(task.environment),
        "brief": {**brief, "failing": [table(failure) for failure in task.brief.failing]},
    }
