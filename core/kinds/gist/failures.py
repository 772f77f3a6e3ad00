"""Why a gist failed: the first rule that holds, with its kind (Gistify, appendix B.2)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.code.parsing import compile_module, fault_in, parse
from gistpoint.core.entrypoints.runs import CommandRun, TestsRun
from gistpoint.core.kinds.gist.fidelity import Fidelity, instance_key
from gistpoint.core.kinds.gist.lines import children, import_texts
from gistpoint.core.kinds.gist.original_test import imports_owned, missing_test
from gistpoint.core.outcomes import Outcome, RunStatus

MAX_CHARACTERS = 4_000_000
"""Longer gists are refused."""


class ErrorCategory(StrEnum):
    """The four categories of the paper."""

    FILE_CREATION = "file_creation"
    MISSING_TEST = "missing_test"
    IMPORT_ERROR = "import_error"
    PYTEST_RUNTIME = "pytest_runtime"


class ErrorKind(StrEnum):
    """The kind of failure at run time."""

    NONE = ""
    SYNTAX = "syntax"
    COLLECTION = "collection"
    FIXTURE = "fixture"
    EXCEPTION = "exception"
    ASSERTION = "assertion"
    WRONG_OUTCOME = "wrong_outcome"
    WRONG_OUTPUT = "wrong_output"
    TIMEOUT = "timeout"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class GistError:
    """Category, kind, and a sentence of evidence."""

    category: ErrorCategory
    kind: ErrorKind = ErrorKind.NONE
    evidence: str = ""


def unreadable(gist: str) -> GistError | None:
    """Return why a text can't be examined at all; None for all other texts, even wrong ones."""
    reason = ""
    if len(gist) > MAX_CHARACTERS:
        reason = f"It is longer than {MAX_CHARACTERS:,} characters."
    else:
        try:
            compile_module(gist, "<gist>")
        except (SyntaxError, ValueError):
            return None
        except (RecursionError, MemoryError, OverflowError):
            reason = "It is nested too deeply to be compiled."
    if reason:
        return GistError(ErrorCategory.PYTEST_RUNTIME, ErrorKind.SYNTAX, reason)
    return None


def owned_imports(gist: str, owned: Collection[str]) -> list[str]:
    """Return the normalised imports of `owned` names that run when the file is imported.

    Imports in functions are left to the import blocker, which sees the ones that run; imports under `if TYPE_CHECKING`
    never run.
    """
    try:
        statements = parse(gist).body
    except (SyntaxError, ValueError):
        return []
    return [text for text in _imports(statements) if imports_owned(text, owned)]


def _imports(statements: Iterable[ast.stmt]) -> list[str]:
    found: list[str] = []
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found.extend(import_texts(statement))
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            continue
        elif isinstance(statement, ast.ClassDef | ast.With | ast.If | ast.Try):
            found.extend(_imports(children(statement)))
    return found


def gist_error(
    gist: str,
    test: str,
    owned: Collection[str],
    run: TestsRun | CommandRun | None,
    fidelity: Fidelity | None,
) -> GistError | None:
    """Return the first rule that holds for the gist as handed in, or None for one that is faithful.

    `test` is empty for a command that is not a test. `run` is None only if nothing was run.
    """
    if not gist.strip():
        return GistError(ErrorCategory.FILE_CREATION, evidence="No gist was handed in.")
    if test and missing_test(gist, test):
        return GistError(ErrorCategory.MISSING_TEST, evidence=f"The gist defines no {test}.")
    imported = owned_imports(gist, owned)
    refused = run.isolation.refused_imports if run else ()
    if fidelity is not None and fidelity.value and not refused and not imported:
        return None
    if imported or refused:
        names = ", ".join([*imported, *refused])
        return GistError(ErrorCategory.IMPORT_ERROR, evidence=f"The gist imports the codebase: {names}.")
    kind, evidence = _runtime_kind(gist, run, fidelity)
    return GistError(ErrorCategory.PYTEST_RUNTIME, kind, evidence)


def _runtime_kind(gist: str, run: TestsRun | CommandRun | None, fidelity: Fidelity | None) -> tuple[ErrorKind, str]:
    fault = fault_in(gist)
    if fault:
        return ErrorKind.SYNTAX, str(fault)
    if run is None:
        return ErrorKind.CRASH, "It was not run."
    if run.status is RunStatus.TIMED_OUT:
        return ErrorKind.TIMEOUT, "The run took longer than its limit."
    if run.status in (RunStatus.CRASHED, RunStatus.OUT_OF_MEMORY, RunStatus.INVALID):
        return ErrorKind.CRASH, f"The run ended as {run.status}."
    if isinstance(run, CommandRun):
        return _command_kind(run, fidelity)
    if run.collection_error is not None or not run.tests:
        error = run.collection_error
        return ErrorKind.COLLECTION, error.text if error is not None else "No test was collected."
    return _test_kind(run, fidelity)


def _command_kind(run: CommandRun, fidelity: Fidelity | None) -> tuple[ErrorKind, str]:
    whats = {difference.what for difference in fidelity.differences} if fidelity else set()
    if run.raised is not None and "exception" in whats:
        assertion = run.raised.type.endswith("AssertionError")
        return ErrorKind.ASSERTION if assertion else ErrorKind.EXCEPTION, run.raised.text
    if whats & {"exit", "status", "exception"}:
        return ErrorKind.WRONG_OUTCOME, f"It left with status {run.exit_status}."
    return ErrorKind.WRONG_OUTPUT, "Its output differs."


def _test_kind(run: TestsRun, fidelity: Fidelity | None) -> tuple[ErrorKind, str]:
    if fidelity is not None and fidelity.only_output_differs:
        first = fidelity.differences[0]
        return ErrorKind.WRONG_OUTPUT, f"{first.what} of {first.test} differs."
    different = (
        {d.test for d in fidelity.differences if d.what in ("outcome", "exception", "data")} if fidelity else set()
    )
    for node_id, test in run.tests.items():
        if instance_key(node_id) not in different or test.outcome not in (Outcome.FAILED, Outcome.ERROR):
            continue
        raised = test.raised
        if raised is None:
            return ErrorKind.EXCEPTION, ""
        if test.phase == "setup" and "fixture" in (raised.type + raised.message):
            return ErrorKind.FIXTURE, raised.message
        assertion = raised.type.endswith(("AssertionError", "Failed"))
        return ErrorKind.ASSERTION if assertion else ErrorKind.EXCEPTION, raised.text
    return ErrorKind.WRONG_OUTCOME, "Tests passed, failed or were skipped otherwise than on the original."
