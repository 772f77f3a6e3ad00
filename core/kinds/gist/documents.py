"""A gist task's own tables in `task.toml` and `answer.json`, validated when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.fakes import Habits
from gistpoint.core.kinds.gist.model import (
    OPTIONAL_TOOLS,
    STRATEGIES,
    UNLIMITED,
    GistAnswer,
    GistSettings,
    ReferenceGist,
)
from gistpoint.core.kinds.gist.reference.trace import Difficulty, read_trace
from gistpoint.core.kinds.gist.runs import CommandRun, Raised, TestRun, TestsRun
from gistpoint.core.kinds.gist.score import GistTest
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.tasks.fields import Fields


def read_settings(fields: Fields) -> GistSettings:
    """Read the table `gist` of a `task.toml`. Raises `TaskError` naming the key."""
    tools, strategy = fields.strings("tools"), fields.get("strategy", str)
    _one_of(fields, "strategy", strategy, STRATEGIES)
    for tool in tools:
        _one_of(fields, "tools", tool, OPTIONAL_TOOLS)
    budget = fields.at_least("score_budget", UNLIMITED)
    return GistSettings(
        owned=fields.strings("owned"),
        execution=fields.get("execution", bool),
        strategy=strategy,
        give_test=fields.get("give_test", bool),
        tools=tools,
        score_budget=None if budget == UNLIMITED else budget,
        output_characters=fields.at_least("output_characters", 1),
        gist_characters=fields.at_least("gist_characters", 1),
    )


def settings_table(settings: GistSettings) -> dict[str, Any]:
    """Return the table `gist` of a `task.toml`."""
    table = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(settings).items()}
    return {**table, "score_budget": UNLIMITED if settings.score_budget is None else settings.score_budget}


def read_gist_answer(fields: Fields) -> GistAnswer:
    """Read the table `gist` of an `answer.json`. Raises `TaskError` naming the key."""
    originals = tuple(_run(item) for item in fields.tables("originals"))
    if len(originals) < 2:
        raise TaskError(f"{fields.file}: the key {fields.name('originals')!r} must hold two runs or more.")
    test = fields.table("test")
    trace: dict[str, Any] = fields.get("trace", dict)
    try:
        read_trace(trace)
    except (TaskError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise TaskError(f"{fields.file}: the key {fields.name('trace')!r} holds no trace ({error}).") from error
    return GistAnswer(
        originals=originals,
        owned=fields.strings("owned"),
        modules=fields.strings("modules"),
        trace=trace,
        difficulty=_difficulty(fields.table("difficulty")),
        test=GistTest(test.get("qualname", str), test.get("source", str)) if test.get("qualname", str) else None,
        compared_files=fields.strings("compared_files"),
        seconds=fields.get("seconds", float),
        habits=Habits(
            made_functions=fields.strings("made_functions"),
            made_elsewhere=fields.strings("made_elsewhere") if "made_elsewhere" in fields.values else None,
            made_here=fields.strings("made_here") if "made_here" in fields.values else None,
            loads_own_modules=fields.get("loads_own_modules", bool),
            starts_processes=fields.get("starts_processes", bool) if "starts_processes" in fields.values else None,
        ),
        reference=_reference(fields.table("reference")) if "reference" in fields.values else None,
        provenance=fields.table("provenance").values,
    )


def gist_answer_document(answer: GistAnswer) -> dict[str, Any]:
    """Return the table `gist` of an `answer.json`."""
    test = answer.test or GistTest("", "")
    document: dict[str, Any] = {
        "owned": list(answer.owned),
        "modules": list(answer.modules),
        "test": {"qualname": test.qualname, "source": test.source},
        "originals": [_run_document(run) for run in answer.originals],
        "compared_files": list(answer.compared_files),
        **_habits_document(answer.habits),
        "seconds": answer.seconds,
        "difficulty": asdict(answer.difficulty),
        "trace": dict(answer.trace),
        "provenance": dict(answer.provenance),
    }
    if answer.reference is not None:
        reference = {key: value for key, value in asdict(answer.reference).items() if value is not None}
        document["reference"] = reference
    return document


def _habits_document(habits: Habits) -> dict[str, Any]:
    known = {key: value for key, value in asdict(habits).items() if value is not None}
    return {key: value if isinstance(value, bool) else list(value) for key, value in known.items()}


def _reference(fields: Fields) -> ReferenceGist:
    def rate(key: str) -> float | None:
        return fields.get(key, float) if key in fields.values else None

    return ReferenceGist(
        text=fields.get("text", str),
        faithful=fields.get("faithful", bool),
        line_execution=rate("line_execution"),
        line_existence=rate("line_existence"),
        how=fields.get("how", str),
        reason=fields.get("reason", str),
        seconds=fields.get("seconds", float),
    )


def _difficulty(fields: Fields) -> Difficulty:
    counts = {key: fields.at_least(key, 0) for key in ("calls", "functions", "files", "depth")}
    return Difficulty(**counts, lines_covered=fields.get("lines_covered", float))


def _one_of(fields: Fields, key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        names = ", ".join(name for name in known if name)
        raise TaskError(f"{fields.file}: the key {fields.name(key)!r} has {value!r}; known are {names}.")


def _run(fields: Fields) -> TestsRun | CommandRun:
    status = RunStatus(_known(fields, "status", RunStatus))
    if "tests" not in fields.values:
        return CommandRun(
            status,
            fields.get("exit_status", int),
            fields.get("stdout", str),
            fields.get("stderr", str),
            _raised(fields, "raised"),
            files={path: fields.table("files").get(path, str) for path in fields.table("files").values},
        )
    tests = fields.table("tests")
    return TestsRun(status, {id: _test(tests.table(id)) for id in tests.values}, _raised(fields, "collection_error"))


def _test(fields: Fields) -> TestRun:
    outcome = Outcome(_known(fields, "outcome", Outcome))
    texts = (fields.get("stdout", str), fields.get("stderr", str))
    return TestRun(outcome, *texts, _raised(fields, "raised"), fields.get("phase", str))


def _known(fields: Fields, key: str, names: type[RunStatus] | type[Outcome]) -> str:
    value = fields.get(key, str)
    _one_of(fields, key, value, tuple(names))
    return value


def _raised(fields: Fields, key: str) -> Raised | None:
    if key not in fields.values:
        return None
    raised = fields.table(key)
    return Raised(raised.get("type", str), raised.get("message", str))


def _run_document(run: TestsRun | CommandRun) -> dict[str, Any]:
    if isinstance(run, TestsRun):
        tests = {id: _test_document(test) for id, test in run.tests.items()}
        return {
            "status": run.status.value,
            "tests": tests,
            **_raised_document("collection_error", run.collection_error),
        }
    texts = {"stdout": run.stdout, "stderr": run.stderr}
    head = {"status": run.status.value, "exit_status": run.exit_status}
    return {**head, **texts, "files": dict(run.files), **_raised_document("raised", run.raised)}


def _test_document(test: TestRun) -> Mapping[str, Any]:
    head = {"outcome": test.outcome.value, "stdout": test.stdout, "stderr": test.stderr, "phase": test.phase}
    return {**head, **_raised_document("raised", test.raised)}


def _raised_document(key: str, raised: Raised | None) -> dict[str, Any]:
    return {key: {"type": raised.type, "message": raised.message}} if raised else {}
