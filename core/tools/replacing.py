"""`submit_attempt` and `replace_function`, with the checks of a replacement before any test runs."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.browsing import BROWSING, existing_file
from gistpoint.core.tools.declaration import (
    Activity,
    Argument,
    ArgumentKind,
    Group,
    RefusalError,
    Replacement,
    Tool,
    ToolContext,
    ToolOutput,
)

MAX_CODE_CHARACTERS = 1_000_000


def _accepted(context: ToolContext, path: str, name: str, code: str) -> ToolOutput:
    if len(code) > MAX_CODE_CHARACTERS:
        raise RefusalError(f"The code has {len(code)} characters; at most {MAX_CODE_CHARACTERS} are taken.")
    if _is_protected(context, path):
        raise RefusalError(f"{path} belongs to the tests or to their configuration; it may not be changed.")
    if not path.endswith(".py"):
        raise RefusalError(f"{path} is not a Python file; only functions and classes can be replaced.")
    try:
        index = index_source(path, context.tree.read(path))
        definition = index.find(name)
        replacement = Replacement(path, definition.ref.qualname, code)
        replacement.on(context.tree)
    except CodeError as error:
        raise RefusalError(str(error)) from error
    return ToolOutput("", replacement=replacement)


def _is_protected(context: ToolContext, path: str) -> bool:
    """Return whether a path is a test's file, a link to one, or the target of such a link."""
    tests = context.test_files | {
        place for test in context.test_files if (place := context.tree.resolve(test))
    }
    return any(is_protected(place, tests) for place in (path, context.tree.resolve(path) or path))


def _submit_attempt(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    target = FunctionRef.parse(context.target)
    return _accepted(context, target.path, target.qualname, arguments["func_code"])


def _replace_function(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_file(context, arguments["file_path"])
    return _accepted(context, path, arguments["func_name"], arguments["func_code"])


SUBMIT_ATTEMPT = Tool(
    name="submit_attempt",
    description=(
        "Submit an attempt at repairing the target function: its whole definition. The tests are run on it."
    ),
    arguments=(Argument("func_code", ArgumentKind.CODE, "The whole definition of the target function."),),
    group=Group.SUBMIT,
    activity=Activity.EXECUTE,
    step="submit",
    run=_submit_attempt,
    runs_code=True,
)

REPLACE_FUNCTION = Tool(
    name="replace_function",
    description=(
        "Replace the definition of a function or class by new code and run the tests. The change persists."
    ),
    arguments=(
        Argument("func_code", ArgumentKind.CODE, "The whole new definition."),
        Argument("func_name", ArgumentKind.FUNCTION, "Name of the function or class to replace."),
        Argument("file_path", ArgumentKind.FILE, "Python file that it is in, relative to the repository."),
    ),
    group=Group.SUBMIT,
    activity=Activity.EXECUTE,
    step="edit",
    run=_replace_function,
    runs_code=True,
)

REPAIR_TOOLS: Mapping[str, tuple[Tool, ...]] = {
    Mode.REMOVE: (*BROWSING, SUBMIT_ATTEMPT),
    Mode.DISCOVERY: (*BROWSING, REPLACE_FUNCTION),
}
"""The tools of repairs by mode, browsing tools first and the submitting tool last."""
