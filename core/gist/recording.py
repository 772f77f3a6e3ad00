"""The answer side of a gist task as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.gist.answer import GistAnswer, ReferenceGist
from gistpoint.core.gist.reference.trace import Difficulty
from gistpoint.core.gist.runs import CommandRun, Isolation, Raised, TestRun, TestsRun
from gistpoint.core.gist.score import GistTest
from gistpoint.core.outcomes import Outcome, RunStatus


def answer_to_json(answer: GistAnswer) -> dict[str, Any]:
    """Return the answer as values that JSON can hold."""
    return {
        "originals": [_run_to_json(run) for run in answer.originals],
        "owned": list(answer.owned),
        "modules": list(answer.modules),
        "trace": dict(answer.trace),
        "difficulty": asdict(answer.difficulty),
        "test": asdict(answer.test) if answer.test else None,
        "compared_files": list(answer.compared_files),
        "seconds": answer.seconds,
        "made_functions": list(answer.made_functions),
        "loads_own_modules": answer.loads_own_modules,
        "reference": asdict(answer.reference) if answer.reference else None,
        "provenance": dict(answer.provenance),
    }


def answer_from_json(values: Mapping[str, Any]) -> GistAnswer:
    """Return the answer that `answer_to_json` gave. Raises `TaskError` for anything else."""
    try:
        return GistAnswer(
            originals=tuple(_run_from_json(run) for run in values["originals"]),
            owned=tuple(values["owned"]),
            modules=tuple(values["modules"]),
            trace=values["trace"],
            difficulty=Difficulty(**values["difficulty"]),
            test=GistTest(**values["test"]) if values["test"] else None,
            compared_files=tuple(values["compared_files"]),
            seconds=float(values["seconds"]),
            made_functions=tuple(values["made_functions"]),
            loads_own_modules=bool(values["loads_own_modules"]),
            reference=ReferenceGist(**values["reference"]) if values["reference"] else None,
            provenance=values["provenance"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TaskError(f"The answer of the gist task is damaged: {error}.", hint="Make the task again.") from error


def _run_to_json(run: TestsRun | CommandRun) -> dict[str, Any]:
    return {"kind": "tests" if isinstance(run, TestsRun) else "command", **asdict(run)}


def _run_from_json(values: Mapping[str, Any]) -> TestsRun | CommandRun:
    isolation = Isolation(**{name: tuple(found) for name, found in values["isolation"].items()})
    if values["kind"] == "tests":
        tests = {id: _test_from_json(test) for id, test in values["tests"].items()}
        return TestsRun(RunStatus(values["status"]), tests, _raised(values["collection_error"]), isolation)
    return CommandRun(
        status=RunStatus(values["status"]),
        exit_status=int(values["exit_status"]),
        stdout=values["stdout"],
        stderr=values["stderr"],
        raised=_raised(values["raised"]),
        isolation=isolation,
        files=dict(values["files"]),
    )


def _test_from_json(values: Mapping[str, Any]) -> TestRun:
    return TestRun(
        Outcome(values["outcome"]), values["stdout"], values["stderr"], _raised(values["raised"]), values["phase"]
    )


def _raised(values: Mapping[str, Any] | None) -> Raised | None:
    return Raised(values["type"], values["message"]) if values else None
