"""Determines why a gist failed: the first rule that applies, with its kind (Gistify, appendix B.2)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.code.parsing import NestedTooDeeplyError, compile_module, fault_in, parse
from gistpoint.core.entrypoints.runs import CommandRun, TestRun, TestsRun
from gistpoint.core.kinds.gist.fidelity import Fidelity, instance_key
from gistpoint.core.kinds.gist.lines import children, import_texts
from gistpoint.core.kinds.gist.original_test import imports_owned, missing_test
from gistpoint.core.outcomes import Outcome, RunStatus

MAX_CHARACTERS = 4_000_000
"""The maximum number of characters in a gist; longer gists fail without being examined."""


class ErrorCategory(StrEnum):
    """The category of a failure: one of the paper's four categories."""

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
    """A gist's failure: its category, its kind, and a sentence of evidence."""

    category: ErrorCategory
    kind: ErrorKind = ErrorKind.NONE
    evidence: str = ""


def unreadable(gist: str) -> GistError | None:
    """Return the failure of code that is too long or too deeply nested to be examined; otherwise None."""
    if len(gist) > MAX_CHARACTERS:
        reason = f"It is longer than {MAX_CHARACTERS:,} characters."
        return GistError(ErrorCategory.PYTEST_RUNTIME, ErrorKind.SYNTAX, reason)
    try:
        compile_module(gist, "<gist>")
    except NestedTooDeeplyError:
        reason = "It is nested too deeply to be compiled."
        return GistError(ErrorCategory.PYTEST_RUNTIME, ErrorKind.SYNTAX, reason)
    except (SyntaxError, ValueError):
        return None
    return None


def owned_imports(gist: str, owned: Collection[str]) -> list[str]:
    """Return the normalised imports of `owned` names that may run when the file is imported.

    Imports in functions and loops are left to the import blocker, which refuses those that run. A branch that
    runs only for a type checker is skipped. Empty for a gist that does not parse.
    """
    try:
        statements = parse(gist).body
    except (SyntaxError, ValueError):
        return []
    return [text for text in _imports(statements) if imports_owned(text, owned)]


def _imports(statements: Iterable[ast.stmt]) -> list[str]:
    found: list[str] = []
    for statement in statements:
        match statement:
            case ast.Import() | ast.ImportFrom():
                found.extend(import_texts(statement))
            case ast.If(test=test, body=body, orelse=otherwise):
                holds = _truth(test)
                found.extend(_imports(body) if holds is not False else ())
                found.extend(_imports(otherwise) if holds is not True else ())
            case ast.ClassDef() | ast.With() | ast.Try() | ast.TryStar() | ast.Match():
                found.extend(_imports(children(statement)))
    return found


def _truth(test: ast.expr) -> bool | None:
    """Return the value of a condition if `TYPE_CHECKING`, false at run time, decides it; else None."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return False
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = _truth(operand)
            return None if value is None else not value
        case ast.BoolOp(op=operator, values=values):
            decisive = isinstance(operator, ast.Or)
            found = [_truth(value) for value in values]
            if decisive in found:
                return decisive
            return None if None in found else not decisive
        case _:
            return None


def gist_error(
    gist: str,
    test: str,
    owned: Collection[str],
    run: TestsRun | CommandRun | None,
    fidelity: Fidelity | None,
) -> GistError | None:
    """Return the failure by the first rule that applies to the gist; None if no rule applies.

    A faithful gist also fails if it imports the codebase. `test` is a test that the gist must define; empty
    for none. `run` is None only if nothing was run.
    """
    if not gist.strip():
        return GistError(ErrorCategory.FILE_CREATION, evidence="No gist was handed in.")
    if test and missing_test(gist, test):
        return GistError(ErrorCategory.MISSING_TEST, evidence=f"The gist defines no {test}.")
    # Imports are checked before the outcome, because a gist may catch a refused import and still pass
    # (decision 15).
    imported = owned_imports(gist, owned)
    if run is not None:
        imported = [*imported, *run.isolation.refused_imports]
    if imported:
        names = ", ".join(imported)
        return GistError(ErrorCategory.IMPORT_ERROR, evidence=f"The gist imports the codebase: {names}.")
    if fidelity is not None and fidelity.value:
        return None
    kind, evidence = _runtime_kind(gist, run, fidelity)
    return GistError(ErrorCategory.PYTEST_RUNTIME, kind, evidence)


def _runtime_kind(
    gist: str, run: TestsRun | CommandRun | None, fidelity: Fidelity | None
) -> tuple[ErrorKind, str]:
    # Code that does not parse may well contain the test, so it is a syntax error (decision 15).
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
    if run.collection_error is not None:
        return ErrorKind.COLLECTION, run.collection_error.text
    if not run.tests:
        return ErrorKind.COLLECTION, "No test was collected."
    return _test_kind(run, fidelity)


def _command_kind(run: CommandRun, fidelity: Fidelity | None) -> tuple[ErrorKind, str]:
    whats = {difference.what for difference in fidelity.differences} if fidelity else set()
    if run.raised is not None and "exception" in whats:
        if run.raised.type.rpartition(".")[2] == "AssertionError":
            return ErrorKind.ASSERTION, run.raised.text
        return ErrorKind.EXCEPTION, run.raised.text
    if whats & {"exit", "status", "exception"}:
        return ErrorKind.WRONG_OUTCOME, f"It exited with status {run.exit_status}."
    return ErrorKind.WRONG_OUTPUT, "Its output differs."


def _test_kind(run: TestsRun, fidelity: Fidelity | None) -> tuple[ErrorKind, str]:
    # If only output differs, all outcomes are those of the original, and exceptions explain nothing.
    if fidelity is not None and fidelity.only_output_differs:
        first = fidelity.differences[0]
        return ErrorKind.WRONG_OUTPUT, f"{first.what} of {first.test} differs."
    differences = fidelity.differences if fidelity else ()
    different = {one.test for one in differences if one.what in ("outcome", "exception", "data")}
    for node_id, test in run.tests.items():
        failed = test.outcome in (Outcome.FAILED, Outcome.ERROR)
        if failed and instance_key(node_id) in different:
            return _failure_kind(test)
    return ErrorKind.WRONG_OUTCOME, "Tests did not have the same outcomes as on the original."


def _failure_kind(test: TestRun) -> tuple[ErrorKind, str]:
    raised = test.raised
    if raised is None:
        return ErrorKind.EXCEPTION, ""
    if test.phase == "setup" and "fixture" in (raised.type + raised.message):
        return ErrorKind.FIXTURE, raised.message
    if raised.type.rpartition(".")[2] in ("AssertionError", "Failed"):
        return ErrorKind.ASSERTION, raised.text
    return ErrorKind.EXCEPTION, raised.text
