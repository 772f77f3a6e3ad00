"""A gist task's own tables in `task.toml` and `answer.json`, validated when they are read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.entrypoints.command import EntrypointError, parse_entrypoint, with_input
from gistpoint.core.entrypoints.runs import CommandRun, TestRun, TestsRun
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.answer import GistAnswer, ReferenceGist
from gistpoint.core.kinds.gist.flags import Habits
from gistpoint.core.kinds.gist.model import UNLIMITED, GistSettings, GistTask
from gistpoint.core.kinds.gist.original_test import GistTest, document_of_test, stored_test, unfound_test
from gistpoint.core.kinds.gist.overrides import require_known
from gistpoint.core.kinds.gist.trace import Difficulty, TracedFunction, counted, read_trace
from gistpoint.core.locations import read_regular
from gistpoint.core.tasks.documents import ANSWER_FILE
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.model import Task


def read_settings(fields: Fields) -> GistSettings:
    """Return the settings in the table `gist` of a `task.toml`. Raises `TaskError`, naming a bad key."""
    settings = fields.record(GistSettings, optional=("parameter",))
    require_known(fields, settings)
    if settings.score_budget == UNLIMITED:
        return replace(settings, score_budget=None)
    return settings


def settings_table(settings: GistSettings) -> dict[str, Any]:
    """Return the table `gist` of a `task.toml`."""
    table = {
        key: list(value) if isinstance(value, tuple) else value for key, value in asdict(settings).items()
    }
    if settings.score_budget is None:
        table["score_budget"] = UNLIMITED
    if not settings.parameter:
        del table["parameter"]
    return table


def read_command(fields: Fields, part: GistTask) -> GistTask:
    """Return `part` with standard input and variables from the table `input` of a `task.toml`, if any.

    Raises `TaskError`, which names the key, for a bad value.
    """
    if "input" not in fields.values:
        return part
    given = fields.table("input")
    stdin = "\n".join(given.get("stdin", list[str])) if "stdin" in given.values else ""
    variables = given.get("variables", dict[str, str]) if "variables" in given.values else {}
    try:
        with_input(parse_entrypoint(part.entrypoint), stdin, variables)
    except EntrypointError as error:
        raise TaskError(
            f"{fields.file}: the key 'input' is not valid for a command. {error.message}"
        ) from error
    return replace(part, stdin=stdin, variables=variables)


def command_document(part: GistTask) -> dict[str, Any]:
    """Return the command for `task.toml`; standard input is a list of lines, which keeps line endings."""
    document: dict[str, Any] = {}
    given: dict[str, Any] = {}
    if part.entrypoint:
        document["entrypoint"] = part.entrypoint
    if part.stdin:
        given["stdin"] = part.stdin.split("\n")
    if part.variables:
        given["variables"] = dict(part.variables)
    if given:
        document["input"] = given
    return document


def read_gist_answer(fields: Fields) -> GistAnswer:
    """Return the answer in an `answer.json`'s table `gist`. Raises `TaskError`, naming a bad key."""
    trace = fields.get("trace", dict[str, Any])
    try:
        read_trace(trace)
    except TaskError as error:
        raise TaskError(
            f"{fields.file}: the key {fields.name('trace')!r} does not contain a trace ({error})."
        ) from error
    answer = GistAnswer(
        originals=tuple(_run(item) for item in fields.tables("originals")),
        owned=fields.get("owned", tuple[str, ...]),
        modules=fields.get("modules", tuple[str, ...]),
        trace=trace,
        difficulty=fields.get("difficulty", Difficulty),
        test=_read_test(fields.table("test")),
        compared_files=fields.get("compared_files", tuple[str, ...]),
        seconds=fields.get("seconds", float),
        habits=fields.record(Habits),
        reference=fields.get("reference", ReferenceGist) if "reference" in fields.values else None,
        provenance=fields.table("provenance").values,
    )
    if len(answer.originals) < 2:
        raise TaskError(f"{fields.file}: the key {fields.name('originals')!r} must contain two or more runs.")
    return answer


class _OtherTest(msgspec.Struct):
    qualname: str
    defined_as: str
    doctest: bool
    file: int


def _read_test(fields: Fields) -> GistTest | None:
    """Return the tests of a command; None for a program, whose table has empty strings.

    Raises `TaskError`, which names the key, for a bad value.
    """
    name = fields.get("qualname", str)
    doctest = fields.get("doctest", bool, False)
    fields.get("source", str)
    fields.get("defined_as", str, "")
    others = fields.get("others", list[_OtherTest], [])
    files = fields.get("files", list[str], [])
    if any(not 0 <= one.file < len(files) for one in others):
        raise TaskError(f"{fields.file}: the key {fields.name('others')!r} names a file that does not exist.")
    if not (name or doctest):
        return None
    test = stored_test(fields.values)
    # Without this, a gist could not be run with its tests, and a faithful one would score nothing.
    missing = unfound_test(test)
    if missing:
        raise TaskError(
            f"{fields.file}: the key {fields.name('source')!r} does not contain the test {missing!r}.",
            hint="Get the task again.",
        )
    return test


def gist_answer_document(answer: GistAnswer) -> dict[str, Any]:
    """Return the table `gist` of an `answer.json`."""
    document: dict[str, Any] = {
        "owned": answer.owned,
        "modules": answer.modules,
        "test": document_of_test(answer.test or GistTest("", "")),
        "originals": [_run_document(run) for run in answer.originals],
        "compared_files": answer.compared_files,
        **_known(answer.habits),
        "seconds": answer.seconds,
        "difficulty": asdict(answer.difficulty),
        "trace": dict(answer.trace),
        "provenance": dict(answer.provenance),
    }
    if answer.reference is not None:
        document["reference"] = _known(answer.reference)
    return document


@dataclass(frozen=True, slots=True)
class GistFigures:
    """The figures of an answer that lists show: the difficulty, and the reference gist if one was tried."""

    difficulty: Difficulty
    reference: ReferenceGist | None = None


class _Traced(msgspec.Struct):
    files: list[str]
    functions: list[TracedFunction]


class _Figured(msgspec.Struct):
    difficulty: Difficulty
    trace: _Traced
    reference: ReferenceGist | None = None


class _FiguredFile(msgspec.Struct):
    gist: _Figured


def read_figures(task: Task) -> GistFigures | None:
    """Return the figures in the answer of a gist task; None if it has no readable answer.

    Functions and files are counted from the trace, as everywhere (see `counted`).
    """
    try:
        found = msgspec.json.decode(
            read_regular(task.folder / ANSWER_FILE), type=decodable(_FiguredFile)
        ).gist
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    functions, files = counted(found.trace.functions, found.trace.files)
    return GistFigures(replace(found.difficulty, functions=functions, files=files), found.reference)


def _known(record: Habits | ReferenceGist | TestsRun | CommandRun | TestRun) -> dict[str, Any]:
    return {key: value for key, value in asdict(record).items() if value is not None}


def _run(fields: Fields) -> TestsRun | CommandRun:
    if "tests" in fields.values:
        return fields.record(TestsRun, optional=("isolation",))
    return fields.record(CommandRun, optional=("isolation",))


def _run_document(run: TestsRun | CommandRun | TestRun) -> dict[str, Any]:
    """Return the stored form of a run: any exception comes last, and there is no isolation (see `Habits`)."""
    document = {key: value for key, value in _known(run).items() if key not in ("isolation", "raised")}
    if isinstance(run, TestsRun):
        document["tests"] = {id: _run_document(test) for id, test in run.tests.items()}
    elif run.raised is not None:
        document["raised"] = asdict(run.raised)
    return document
