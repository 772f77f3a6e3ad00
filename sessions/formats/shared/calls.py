"""Guesses the purpose of tool calls from the tool's name or its shell command, and finds their edits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from gistpoint.sessions.records.model import FileEdit, Json, RunCall, StepKind
from gistpoint.sessions.records.values import as_dict, as_str, compact, first, objects, parsed_object

_NAMES: dict[StepKind, tuple[str, ...]] = {
    StepKind.VIEW: (
        "read",
        "view",
        "open",
        "goto",
        "scroll_up",
        "scroll_down",
        "ls",
        "notebookread",
        "view_file",
        "cat",
        "read_file",
        "read_files",
        "readfile",
        "list",
        "list_dir",
        "list_files",
        "copilot_readfile",
        "copilot_listdirectory",
        "copilot_geterrors",
        "view_image",
        "read_many_files",
        "listfilestoplevel",
        "listfilesrecursive",
    ),
    StepKind.SEARCH: (
        "grep",
        "glob",
        "search",
        "search_dir",
        "search_file",
        "find_file",
        "websearch",
        "webfetch",
        "web_search",
        "fetch",
        "file_search",
        "grep_search",
        "semantic_search",
        "codebase_search",
        "search_files",
        "find",
        "list_code_definition_names",
        "copilot_findtextinfiles",
        "copilot_findfiles",
        "copilot_searchcodebase",
        "file_glob_search",
        "copilot_fetchwebpage",
        "fetch_webpage",
        "web_fetch",
        "google_web_search",
        "search_file_content",
        "tool_search",
        "searchfiles",
        "codebasesearch",
        "listcodedefinitionnames",
    ),
    StepKind.EDIT: (
        "edit",
        "write",
        "multiedit",
        "create",
        "insert",
        "append",
        "notebookedit",
        "apply_patch",
        "rewrite",
        "str_replace",
        "undo_edit",
        "create_file",
        "write_file",
        "write_to_file",
        "replace_in_file",
        "apply_diff",
        "insert_content",
        "search_and_replace",
        "search_replace",
        "replace_string_in_file",
        "insert_edit_into_file",
        "multi_replace_string_in_file",
        "editor",
        "patch",
        "copilot_createfile",
        "copilot_replacestring",
        "copilot_insertedit",
        "copilot_applypatch",
        "replace",
        "file_change",
        "create_new_file",
        "multi_edit",
        "edit_existing_file",
        "single_find_and_replace",
        "newfilecreated",
        "editedexistingfile",
        "applieddiff",
    ),
    StepKind.SUBMIT: ("submit", "finish", "submit_review", "attempt_completion", "exit_forfeit"),
    StepKind.DELEGATE: ("task", "agent", "delegate", "spawn_agent"),
    StepKind.MESSAGE: ("think", "todowrite", "task_tracking", "update_plan", "write_todos", "todo_write"),
    StepKind.TEST: ("eval", "test"),
}
"""The tools of agents, in lower case, by their purpose."""
_SHELLS = frozenset(
    (
        "bash",
        "shell",
        "sh",
        "terminal",
        "execute_bash",
        "bash_command",
        "run",
        "run_command",
        "exec_command",
        "local_shell",
        "swe_agent_action",
        "cmd_run",
        "execute",
        "run_ipython",
        "run_in_terminal",
        "run_terminal_cmd",
        "execute_command",
        "run_commands",
        "run_shell_command",
        "shell_command",
        "run_terminal_command",
        "command_execution",
        "code_interpreter",
    )
)
_TEST = re.compile(
    r"\b(pytest|py\.test|tox|nox|unittest|runtests\.py|bin/test|npm (run )?test|go test|cargo test|ctest)\b"
    r"|\bmake (check|test)\b"
)
_TEST_WORDS = (
    "pytest",
    "py.test",
    "tox",
    "nox",
    "unittest",
    "runtests.py",
    "bin/test",
    "npm ",
    "go test",
    "cargo test",
    "ctest",
    "make ",
)
"""One of these words is in every match of `_TEST`, and one of `_EDIT_WORDS` in every match of `_EDIT`.

Most commands contain none, and a regular expression takes ten times as long to detect that.
"""
_SUBMIT = re.compile(r"\s*(submit|exit_forfeit)\b")
_SUBMIT_WORDS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
_EDIT_FIRST = re.compile(r"\s*(create|edit|insert|append)\s")
_EDIT_WORDS = ("sed", "tee", "patch", "git apply", ">")
_EDIT = re.compile(r"\bsed\b[^|;&]*\s-i|\btee\b|\bpatch\b|\bgit apply\b|(?<!\S)>>?\s*([^&\s/]|/(?!dev/null))")
_SEARCH = re.compile(r"^\s*(e?grep|rg|ag|find|fd|git grep|search_dir|search_file|find_file)\b")
_VIEW = re.compile(
    r"^\s*(cat|head|tail|less|more|nl|ls|tree|open|goto|scroll_\w+|sed\s+-n|git"
    r" (show|diff|log|status)|pwd|wc)\b"
)
_PATHS = ("path", "file_path", "filePath", "filepath")
_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.M)
_WORD = re.compile(r"""(?:[^\s'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.)++""", re.S)
_SPLIT = re.compile(rf"\s*+(?:{_WORD.pattern}\s*+)*+\Z", re.S)
_QUOTED = re.compile(r"""'([^']*+)'|"((?:[^"\\]++|\\.)*+)"|\\(.)""", re.S)
_WRAPPED = re.compile(r"(/(usr/)?bin/)?(ba|z)?sh -l?c ")
_CHANGE_DIRECTORY = re.compile(r"^\s*cd\s+\S+\s*(&&|;)\s*")


def kind_of_command(command: str) -> StepKind:
    """Guess the purpose of a shell command; EXECUTE if no other is recognised."""
    # A command may contain a whole file: its purpose is at the beginning, after the `cd` that many agents
    # put first.
    text = _CHANGE_DIRECTORY.sub("", command[:4000])
    submits = _SUBMIT.match(text) or _has(text, _SUBMIT_WORDS)
    if submits:
        return StepKind.SUBMIT
    if _PATCH in text:
        return StepKind.EDIT
    # SWE-agent calls its editor with a command line.
    if text.lstrip().startswith("str_replace_editor"):
        return StepKind.VIEW if text.split()[1:2] == ["view"] else StepKind.EDIT
    runs_tests = _has(text, _TEST_WORDS) and _TEST.search(text)
    if runs_tests:
        return StepKind.TEST
    writes_files = _has(text, _EDIT_WORDS) and _EDIT.search(text)
    if writes_files or _EDIT_FIRST.match(text):
        return StepKind.EDIT
    if _SEARCH.match(text):
        return StepKind.SEARCH
    return StepKind.VIEW if _VIEW.match(text) else StepKind.EXECUTE


def _has(text: str, words: tuple[str, ...]) -> bool:
    # A loop, because `any` with a generator takes three times as long, and every command is tested up to
    # three times.
    for word in words:  # noqa: SIM110
        if word in text:
            return True
    return False


def command_of(call: RunCall) -> str:
    """Return the shell command of a call, without the shell that executes it; empty if the call has none.

    Arguments that could not be parsed are returned as the command.
    """
    # Agents name the argument of their shells differently.
    for key in ("command", "commands", "cmd", "keystrokes", "raw_action", "code"):
        value = (call.parsed or {}).get(key)
        if isinstance(value, str | list):
            return command_in(value)
    return call.arguments if call.parsed is None else ""


def command_in(value: str | list[Json]) -> str:
    """Return the command in an argument: a string, or a list of words.

    A command that is passed to a shell, as in `bash -lc COMMAND`, is returned without the shell.
    """
    if isinstance(value, str):
        words = shell_words(value) if _WRAPPED.match(value[:4000]) else []
        return words[2] if len(words) == 3 else value
    parts = [as_str(part) for part in value]
    return parts[2] if len(parts) == 3 and _WRAPPED.match(" ".join(parts[:2]) + " ") else " ".join(parts)


_IMPORTANCE = (
    StepKind.SUBMIT,
    StepKind.EDIT,
    StepKind.TEST,
    StepKind.DELEGATE,
    StepKind.EXECUTE,
    StepKind.SEARCH,
    StepKind.VIEW,
    StepKind.TOOL,
    StepKind.MESSAGE,
)
"""The purposes that a call can have, most important first."""


def kind_of(calls: tuple[RunCall, ...]) -> StepKind:
    """Guess the purpose of a step: the most important one among its calls; MESSAGE without calls."""
    kinds = set(map(_kind, calls))
    return next((kind for kind in _IMPORTANCE if kind in kinds), StepKind.MESSAGE)


def _kind(call: RunCall) -> StepKind:
    name = call.tool.lower()
    if name in ("str_replace_editor", "str_replace_based_edit_tool", "file_editor", "edit_file"):
        return StepKind.VIEW if as_str((call.parsed or {}).get("command")) == "view" else StepKind.EDIT
    if name in _SHELLS:
        return kind_of_command(command_of(call))
    return _of_agents().get(name) or _of_our_tool(name)


def is_shell(tool: str) -> bool:
    """Return whether a tool runs shell commands, judging by its name."""
    return tool.lower() in _SHELLS


@cache
def _of_agents() -> dict[str, StepKind]:
    return {name: kind for kind, names in _NAMES.items() for name in names}


def _of_our_tool(name: str) -> StepKind:
    from gistpoint.core.kinds.registry import declared  # which loads the kinds

    tool = declared(name)
    return StepKind(tool.step) if tool is not None else StepKind.TOOL


def edits_of(calls: tuple[RunCall, ...]) -> tuple[FileEdit, ...]:
    """Return the file changes in the arguments of calls."""
    found: list[FileEdit] = []
    for call in calls:
        arguments = call.parsed or {}
        # OpenAI's models write a patch as a whole argument, or as part of a shell command.
        patch = command_of(call) or as_str(first(arguments, "input", "patch"))
        if _PATCH in patch:
            found += _patched(patch)
            continue
        path = as_str(next((arguments[key] for key in _PATHS if arguments.get(key)), ""))
        if not path or _kind(call) is not StepKind.EDIT:
            continue
        for change in objects(arguments.get("edits")):
            found.append(_edit(path, change))
        if not arguments.get("edits"):
            found.append(_edit(path, arguments))
    return tuple(found)


def _edit(path: str, change: Mapping[str, Json]) -> FileEdit:
    pairs = (
        ("old_str", "new_str"),
        ("old_string", "new_string"),
        ("oldString", "newString"),
        ("old_text", "new_text"),
    )
    for old, new in (*pairs, ("oldText", "newText")):
        if isinstance(change.get(old), str):
            return FileEdit(path, as_str(change[old]), as_str(change.get(new)))
    texts = [change.get(key) for key in ("file_text", "content", "contents", "func_code")]
    whole = next((text for text in texts if isinstance(text, str)), None)
    # With `func_name`, the code is that of one function, and the whole file is unknown.
    return FileEdit(path, None, None if "func_name" in change else whole)


def _patched(patch: str) -> Iterator[FileEdit]:
    """Yield the changes of a patch in OpenAI's form, in which a hunk replaces one string with another."""
    _, *pieces = _PATCHED.split(patch.partition("*** End Patch")[0])
    for verb, path, body in zip(*[iter(pieces)] * 3, strict=True):
        lines = body.strip("\n").split("\n")
        if verb == "Add":
            yield FileEdit(path.strip(), None, "".join(f"{line[1:]}\n" for line in lines if line[:1] == "+"))
            continue
        changes = list(_hunks(lines)) if verb == "Update" else []
        for hunk in changes:
            old, new = ("".join(f"{line[1:]}\n" for line in hunk if line[0] != sign) for sign in "+-")
            yield FileEdit(path.strip(), old, new)
        if not changes:
            yield FileEdit(path.strip())


def _hunks(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines of each hunk that is not empty."""
    hunk: list[str] = []
    for line in lines:
        if line.startswith("@@"):
            if hunk:
                yield hunk
            hunk = []
        elif line[:1] in (" ", "-", "+"):
            hunk.append(line)
    if hunk:
        yield hunk


def call_of_function(value: Json, fallback_id: str = "") -> RunCall:
    """Return a call from any of the forms of chat messages.

    The function may be nested, and its arguments may be a string or an object. A call without an id gets
    `fallback_id`.
    """
    item = as_dict(value)
    function = as_dict(item.get("function"))
    # Inspect puts the function's name where OpenAI's API has an object.
    name = (
        item.get("function")
        if isinstance(item.get("function"), str)
        else function.get("name", item.get("name"))
    )
    name = name or item.get("toolName") or as_str(item.get("type")).removesuffix("_call")
    arguments = function.get("arguments", _arguments(item))
    # An item of the Responses API has both ids: `id` is the item's, and the item's result names `call_id`.
    ids = ("id", "call_id") if as_str(item.get("type")).endswith("tool_use") else ("call_id", "id")
    identity = as_str(first(item, *ids, "tool_call_id", "toolCallId")) or fallback_id
    if isinstance(arguments, str):
        return RunCall(identity, as_str(name), arguments, parsed_object(arguments))
    if isinstance(arguments, dict):
        return RunCall(identity, as_str(name), compact(arguments), arguments)
    return RunCall(identity, as_str(name), "" if arguments is None else compact(arguments), None)


def _arguments(item: Mapping[str, Json]) -> Json:
    """Return a call's arguments, or None; OpenAI's hosted tools store them in the call itself."""
    whole = next((item[key] for key in _ARGUMENTS if key in item), None)
    if whole is not None:
        return whole
    return {key: item[key] for key in _ARGUMENTS_OF_HOSTED_TOOLS if key in item} or None


_ARGUMENTS = ("arguments", "input", "args", "action", "operation")
"""The keys under which calls have all their arguments; the first one that is present counts."""
_ARGUMENTS_OF_HOSTED_TOOLS = ("code", "queries")


def shell_call(command: str, identity: str = "", tool: str = "bash") -> RunCall:
    """Return the call to a shell with one command."""
    return RunCall(identity, tool, command, {"command": command})


def shell_words(command: str) -> list[str]:
    """Return the words of a command, split as a shell would, or at whitespace if its quotes do not match."""
    if not _SPLIT.match(command):
        return command.split()
    return [_QUOTED.sub(_unquoted, match[0]) for match in _WORD.finditer(command)]


def _unquoted(quoted: re.Match[str]) -> str:
    single, double, escaped = quoted.groups()
    if single is not None:
        return single
    return escaped if double is None else re.sub(r"\\([\"\\])", r"\1", double)
