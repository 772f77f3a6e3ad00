"""The repository at a step: exactly as the record implies, with a badge for its source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import make_all
from recorded_runs.repairs import (
    BROKEN,
    FILES,
    RIGHT,
    ROOT,
    WRONG,
    chat_run,
    diff_of,
    journal_run,
    swe_agent_run,
)
from small_trees import tree_of

from gistpoint.core.code.names import FunctionRef
from gistpoint.core.diffs import DiffLineKind, compute, parse, unified
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.repository import Badge, RepositoryHistory, RepositoryState, between

Calls = list[tuple[str, dict[str, Any], str]]
EDITOR = "str_replace_editor"
FILE = f"{ROOT}/src/stats.py"


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    return tree_of(FILES, tmp_path)


def states(path: Path, tree: SourceTree | None) -> list[RepositoryState]:
    document = open_run(path)
    history = RepositoryHistory(tree)
    for step in document.steps():
        history.feed(step)
    history.end(document.header.submission)
    return [history.at(index) for index in range(document.step_count)]


def text_of(state: RepositoryState, path: str = "src/stats.py") -> str:
    assert state.tree is not None
    return state.tree.read(path).decode()


def test_submissions_of_our_own_journals_add_up(tmp_path: Path, tree: SourceTree) -> None:
    found = states(journal_run(tmp_path), tree)
    assert [text_of(state) for state in found] == [BROKEN] * 6 + [WRONG, RIGHT, RIGHT]
    assert {state.badge for state in found} == {Badge.FROM_EDITS}
    assert found[5].diff == found[5].this_step == ()
    assert "".join(map(unified, found[7].diff)) == diff_of(RIGHT)
    assert [unified(diff) for diff in found[7].this_step] == [
        unified(compute(WRONG, RIGHT, old_path="src/stats.py", new_path="src/stats.py"))
    ]
    assert found[8].this_step == ()


def edited(*more: tuple[str, dict[str, Any], str]) -> Calls:
    return [(EDITOR, {"command": "view", "path": FILE}, "1 ..."), *more]


@pytest.mark.parametrize(
    "calls",
    [
        edited((EDITOR, {"command": "str_replace", "path": FILE, "old_str": " + 1", "new_str": ""}, "ok")),
        edited(("Edit", {"file_path": FILE, "old_string": " + 1", "new_string": ""}, "ok")),
        edited(("MultiEdit", {"file_path": FILE, "edits": [{"old_string": "+ 1", "new_string": "+ 2"},
                                                           {"old_string": " + 2", "new_string": ""}]}, "ok")),
        edited(("Write", {"file_path": FILE, "content": RIGHT}, "ok")),
        edited((EDITOR, {"command": "create", "path": FILE, "file_text": RIGHT}, "ok")),
        edited(("bash", {"command": f"cd {ROOT} && cat > src/stats.py <<'EOF'\n{RIGHT}EOF"}, "")),
        edited((EDITOR, {"command": "str_replace", "path": FILE, "old_str": "    count = len(values) + 1\n",
                         "new_str": ""}, "ok"),
               (EDITOR, {"command": "insert", "path": FILE, "insert_line": 9, "new_str": "    count = len(values)"},
                "ok")),
        edited(("Write", {"file_path": FILE, "content": RIGHT}, "ok"),
               ("Write", {"file_path": FILE, "content": "x"}, ""),
               (EDITOR, {"command": "undo_edit", "path": FILE}, "ok")),
        edited(("bash", {"command": f"sed -i s/a/b/ {FILE}"}, ""),
               ("bash", {"command": "git checkout src/stats.py"}, ""),
               ("Write", {"file_path": "src/stats.py", "content": RIGHT}, "ok")),
    ],
)  # fmt: skip
def test_edits_of_every_tool_come_to_the_same_file(tmp_path: Path, tree: SourceTree, calls: Calls) -> None:
    last = states(chat_run(tmp_path, calls), tree)[-1]
    assert text_of(last) == RIGHT
    assert "".join(map(unified, last.diff)) == diff_of(RIGHT)


def test_what_an_early_swe_agent_edited_in_its_window(tmp_path: Path, tree: SourceTree) -> None:
    import json

    def step(action: str, observation: str) -> dict[str, Any]:
        return {"action": action, "observation": observation, "response": "", "state": "{}", "thought": ""}

    window = f"[File: {FILE} (16 lines total)]\n1:"
    steps = [
        step("open src/stats.py\n", window),
        step("edit 10:10\n   bad\nend_of_edit\n", "Your proposed edit has introduced new syntax error(s)."),
        step("edit 10:10\n    count = len(values) + 2\nend_of_edit\n", window),
        step("edit 'len(values) + 2' 'len(values)'", f"Text replaced.\n{window}"),
        step("create new.py\n", "[File: new.py (1 lines total)]\n1:"),
        step("insert 'x = 1\ny = 2'", f"[File: {ROOT}/new.py (3 lines total)]\n1:"),
    ]
    path = tmp_path / "run"
    path.write_text(json.dumps({"trajectory": steps, "history": [], "info": {}}))
    found = states(path, tree)
    assert [text_of(state) for state in found] == [BROKEN, BROKEN, WRONG, *[RIGHT] * 3]
    assert text_of(found[-1], "new.py") == "\nx = 1\ny = 2\n"
    assert {state.badge for state in found} == {Badge.FROM_EDITS}
    other = tree_of({"src/stats.py": BROKEN + "one more\n"}, tmp_path)
    assert states(path, other)[2].problems == (
        "step 3: src/stats.py has 16 lines in the record, but 17 here.",
    )


def test_what_nobody_can_tell_is_badged_and_named(tmp_path: Path, tree: SourceTree) -> None:
    calls: Calls = [
        ("bash", {"command": "sed -i 's/1/2/' src/stats.py"}, ""),
        ("Edit", {"file_path": FILE, "old_string": "is not there", "new_string": ""}, "ok"),
        ("bash", {"command": "echo x > /tmp/elsewhere"}, ""),
    ]
    found = states(chat_run(tmp_path, calls), tree)
    assert [state.badge for state in found] == [Badge.FROM_EDITS] * 2 + [Badge.UNKNOWN] * 3
    assert found[2].problems == ("step 3: Only a part of an edit is recorded: src/stats.py",)
    assert found[4].problems[1:] == (
        "step 4: The text that was replaced in src/stats.py is not in the file.",
    )
    assert text_of(found[4]) == BROKEN


def test_refused_edits_change_nothing(tmp_path: Path, tree: SourceTree) -> None:
    path = journal_run(tmp_path, (RIGHT,))
    lines = [line for line in path.read_text().splitlines(keepends=True) if '"submit"' not in line]
    path.write_text("".join(lines).replace('"text": "score"', '"refused": true, "text": "Refused"'))
    assert states(path, tree)[-1].diff == ()


def claude_turn() -> list[dict[str, Any]]:
    uses = [("t0", "Bash", {"command": "ls"}), ("t1", "Edit", {"file_path": "/r/a.py", "old_string": "1",
            "new_string": "2"}), ("t2", "Write", {"file_path": "/r/b.py", "content": "y\n"})]  # fmt: skip
    blocks = [{"type": "tool_use", "id": id, "name": name, "input": given} for id, name, given in uses]
    results = [
        {"type": "tool_result", "tool_use_id": id, "is_error": id == "t1", "content": "."} for id, *_ in uses
    ]
    named = {"sessionId": "s", "parentUuid": None}
    return [
        {
            **named,
            "uuid": "1",
            "type": "assistant",
            "message": {"id": "m", "role": "assistant", "content": blocks},
        },
        {**named, "uuid": "2", "type": "user", "message": {"role": "user", "content": results}},
    ]


def gemini_turn() -> list[dict[str, Any]]:
    def call(id: str, name: str, status: str, **args: str) -> dict[str, Any]:
        diff = {
            "fileDiff": "--- c.py\n+++ c.py\n@@ -0,0 +1 @@\n+z\n",
            "fileName": "c.py",
            "newContent": "z\n",
        }
        response = {"functionResponse": {"id": id, "name": name, "response": {"output": "."}}}
        return {"id": id, "name": name, "args": args, "status": status, "result": [response],
                **({"resultDisplay": diff} if status == "cancelled" else {})}  # fmt: skip

    tools = [
        call("1", "replace", "error", file_path="/r/a.py", old_string="1", new_string="2"),
        call("2", "write_file", "cancelled", file_path="/r/c.py", content="z\n"),
        call("3", "write_file", "success", file_path="/r/b.py", content="y\n"),
    ]
    return [
        {"sessionId": "s", "projectHash": "h", "startTime": "2026-05-01T10:00:00Z"},
        {"id": "1", "type": "gemini", "content": "", "toolCalls": tools},
    ]


def codex_turn() -> list[dict[str, Any]]:
    def record(envelope: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-05-01T10:00:00Z", "type": envelope, "payload": payload}

    def patched(call: str, file: str) -> Iterator[dict[str, Any]]:
        changes = {file: {"type": "add", "content": "y\n"}}
        yield record("event_msg", type="patch_apply_begin", call_id=call, changes=changes)
        yield record("event_msg", type="patch_apply_end", call_id=call, success=file == "b.py", stderr=".")

    added = [(call, f"*** Begin Patch\n*** Add File: {file}\n+y\n*** End Patch", file)
             for call, file in (("1", "a.py"), ("2", "b.py"))]  # fmt: skip
    return [
        record("session_meta", id="s", cwd="/r"),
        *(record("response_item", type="custom_tool_call", call_id=call, name="apply_patch", input=patch)
          for call, patch, _ in added),
        *(event for call, _, file in added for event in patched(call, file)),
        *(record("response_item", type="custom_tool_call_output", call_id=call, output=".") for call, *_ in added),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "turn", [claude_turn(), gemini_turn(), codex_turn()], ids=["claude", "gemini", "codex"]
)
def test_a_call_that_failed_changes_nothing_though_others_of_its_step_did(
    tmp_path: Path, turn: list[dict[str, Any]]
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in turn), encoding="utf-8")
    last = states(path, None)[-1]
    assert [diff.path.removeprefix("r/").removeprefix("/r/") for diff in last.diff] == ["b.py"]
    assert last.problems == ()


@pytest.mark.parametrize("known", [True, False])
def test_recorded_diffs_are_taken_as_they_are(tmp_path: Path, tree: SourceTree, known: bool) -> None:
    new = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+y = 2\n"
    diffs = ["", diff_of(WRONG), diff_of(WRONG) + new, diff_of(RIGHT) + new, new]
    found = states(swe_agent_run(tmp_path, diffs), tree if known else None)
    assert {state.badge for state in found} == {Badge.RECORDED}
    assert [sorted(diff.path for diff in state.diff) for state in found] == [
        [], ["src/stats.py"], ["new.py", "src/stats.py"], ["new.py", "src/stats.py"], ["new.py"],
    ]  # fmt: skip
    changed = [[(line.kind, line.text) for line in diff.hunks[0].lines if line.kind is not DiffLineKind.CONTEXT]
               for diff in found[3].this_step]  # fmt: skip
    assert changed == [
        [
            (DiffLineKind.REMOVED, "    count = len(values) + 2"),
            (DiffLineKind.ADDED, "    count = len(values)"),
        ]
    ]
    assert [diff.path for diff in found[4].this_step] == ["src/stats.py"]
    if known:
        assert [text_of(state) for state in found] == [BROKEN, WRONG, WRONG, RIGHT, BROKEN]
        assert text_of(found[4], "new.py") == "y = 2\n"


def test_a_copied_file_stays_and_two_files_can_change_places(tmp_path: Path) -> None:
    def moved(verb: str, old: str, new: str) -> str:
        names = f"{verb} from {old}\n{verb} to {new}\n"
        return f"diff --git a/{old} b/{new}\nsimilarity index 100%\n{names}"

    tree = tree_of({"a.py": "1\n", "b.py": "2\n"}, tmp_path)
    swapped = moved("rename", "b.py", "a.py") + moved("rename", "a.py", "b.py")
    copied, renamed = (moved(verb, "a.py", "c.py") for verb in ("copy", "rename"))
    found = states(swe_agent_run(tmp_path, [copied, swapped, renamed]), tree)
    assert [state.problems for state in found] == [(), (), ()]
    trees = [{path: text_of(state, path) for path in ("a.py", "b.py", "c.py") if state.tree.is_file(path)}
             for state in found if state.tree is not None]  # fmt: skip
    assert trees == [
        {"a.py": "1\n", "b.py": "2\n", "c.py": "1\n"}, {"a.py": "2\n", "b.py": "1\n"},
        {"a.py": "", "b.py": "2\n", "c.py": "1\n"},
    ]  # fmt: skip


def test_a_recorded_diff_that_does_not_fit_the_tree_is_shown_and_said(tmp_path: Path) -> None:
    other = tree_of({"src/stats.py": "nothing alike\n"}, tmp_path)
    last = states(swe_agent_run(tmp_path, [diff_of(RIGHT)]), other)[-1]
    assert last.badge is Badge.RECORDED
    assert last.diff == parse(diff_of(RIGHT))
    assert len(last.problems) == 1
    assert text_of(last) == "nothing alike\n"


def test_without_the_files_at_the_start_the_parts_are_known(tmp_path: Path) -> None:
    calls: Calls = [
        ("Edit", {"file_path": FILE, "old_string": " + 1", "new_string": ""}, "ok"),
        ("Write", {"file_path": "/testbed/a.py", "content": "x\n"}, "ok"),
        ("Edit", {"file_path": "/testbed/a.py", "old_string": "x", "new_string": "y"}, "ok"),
    ]
    last = states(chat_run(tmp_path, calls), None)[-1]
    assert (last.badge, last.tree) == (Badge.FROM_EDITS, None)
    assert last.files == {"testbed/a.py": b"y\n"}
    assert [(diff.path, diff.added, diff.removed) for diff in last.diff] == [
        ("testbed/a.py", 1, 0), ("testbed/src/stats.py", 0, 1),
    ]  # fmt: skip


def test_paths_never_leave_the_repository(tmp_path: Path, tree: SourceTree) -> None:
    calls: Calls = [
        ("Write", {"file_path": path, "content": "x"}, "") for path in ("../up", "/a/../../b", "a\0b", "/")
    ]
    last = states(chat_run(tmp_path, calls), tree)[-1]
    assert (last.files, last.badge, len(last.problems)) == ({}, Badge.UNKNOWN, 4)


def test_what_was_executed_again_has_its_badge(tmp_path: Path, tree: SourceTree) -> None:
    history = RepositoryHistory(tree, target=FunctionRef("src/stats.py", "mean"))
    for step in open_run(
        chat_run(tmp_path, [("bash", {"command": "sed -i s/1// src/stats.py"}, "")] * 2)
    ).steps():
        history.feed(step)
    history.put(2, {"src/stats.py": RIGHT.encode(), "src/other.py": None})
    state = history.at(2)
    assert (state.badge, text_of(state), state.deleted) == (Badge.RE_EXECUTED, RIGHT, {"src/other.py"})
    assert [(diff.path, diff.new_path) for diff in state.diff] == [
        ("src/other.py", None), ("src/stats.py", "src/stats.py"),
    ]  # fmt: skip
    assert history.at(3).badge is Badge.UNKNOWN
    with pytest.raises(IndexError):
        history.at(4)


def test_submit_attempt_needs_the_brief_s_target(tmp_path: Path, tree: SourceTree) -> None:
    code = RIGHT[RIGHT.index("def mean") : RIGHT.index("\n\n\nclass")] + "\n"
    document = open_run(chat_run(tmp_path, [("submit_attempt", {"func_code": code}, "score 1")]))
    history = RepositoryHistory(tree, target=FunctionRef("src/stats.py", "mean"))
    for step in document.steps():
        history.feed(step)
    assert text_of(history.at(2)) == RIGHT


def test_between_two_diffs_of_a_start_that_is_not_known() -> None:
    start = "".join(f"line {number}\n" for number in range(1, 80))
    one = start.replace("line 10\n", "TEN\n").replace("line 50\n", "")
    other = start.replace("line 10\n", "ten\nten and a half\n").replace("line 70\n", "SEVENTY\n")
    found = between(
        compute(start, one, old_path="a", new_path="a"), compute(start, other, old_path="a", new_path="a")
    )
    assert found is not None
    changed = [
        line.kind.value + line.text for hunk in found.hunks for line in hunk.lines if line.kind.value != " "
    ]
    assert changed == ["-TEN", "+ten", "+ten and a half", "+line 50", "-line 70", "+SEVENTY"]
    assert all("\0" not in line.text for hunk in found.hunks for line in hunk.lines)


def test_every_format_is_followed_to_its_end(tmp_path: Path) -> None:
    make_all(tmp_path / "made")
    for listed in list_runs([tmp_path / "made"]):
        for place in (None, tree_of(FILES, tmp_path)):
            found = states(Path(listed.name), place) if "#" not in listed.name else []
            assert all(state.step == index for index, state in enumerate(found))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"file_path": FILE, "content": "LONG"}),
        ("Edit", {"file_path": FILE, "old_string": " + 1", "new_string": "LONG"}),
        ("Edit", {"file_path": FILE, "old_string": "LONG", "new_string": ""}),
        (EDITOR, {"command": "create", "path": FILE, "file_text": "LONG"}),
        (EDITOR, {"command": "insert", "path": FILE, "insert_line": 1, "new_str": "LONG"}),
    ],
)
def test_an_edit_too_long_to_keep_is_not_made_of_its_beginning(
    tmp_path: Path, tree: SourceTree, tool: str, arguments: dict[str, str], known: bool
) -> None:
    long = "".join(f"line {number} of the text\n" for number in range(80_000))
    written = {name: long if value == "LONG" else value for name, value in arguments.items()}
    messages = [
        {"role": "user", "content": "Repair it"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": tool, "input": written}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
    ]
    path = tmp_path / "long.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    last = states(path, tree if known else None)[-1]
    assert last.badge is Badge.UNKNOWN
    assert last.problems == (
        f"step 2: The edit of {'' if known else ROOT[1:] + '/'}src/stats.py is too long to follow.",
    )
    assert not last.diff
