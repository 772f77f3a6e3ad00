"""The facts about a run derived from its steps: causes, failing tests, loops and the final answer."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted_runs import plant
from recorded_runs import make_all

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.records.model import Actor, ByteRange, Result, Run, RunCall, Step, StepKind, Tokens
from gistpoint.sessions.runs.causes import LONGEST, error_line, normalised
from gistpoint.sessions.runs.digest import AnswerShape, Digester, Happening, RunDigest, digest_of
from gistpoint.sessions.runs.happened import happened_words
from gistpoint.sessions.runs.kept import kept_of
from gistpoint.sessions.runs.named_tests import failing_in, outcomes_in
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.rendering import show
from gistpoint.tui import cli


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("No such file: '/tmp/a1/x.py'", "No such file: '/srv/b/y/z.py'"),
        ("x.py:12:4: error: bad", "lib/y.py:7:1: error: bad"),
        ("<Foo object at 0x7f31> is closed", "<Foo object at 0x8a00> is closed"),
        ("request req_a1b2c3d4 failed at 2026-01-02T03:04:05Z", "request req_zzzz9999 failed at 2025-11-12"),
        ("took 12.5 s of 10 s", "took 3 s of 5 s"),
        ("bash: line 3: foo: command not found", "bash: line 12: foo: command not found"),
        ("lost 8f14e45fceea167a", "lost c9f0f895fb98ab91"),
        ("can't connect to 10.0.0.1:5432", "can't connect to 192.168.7.2:1"),
        ("\x1b[31mKeyError\x1b[0m: 'a'", "KeyError: 'a'"),
    ],
)
def test_equal_causes_are_equal(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("KeyError: 'a'", "KeyError: 'b'"),
        ("HTTP 404 for http://a/b", "HTTP 500 for http://a/b"),
        ("exit code 1", "exit code 137"),
        ("No module named 'numpy'", "No module named 'scipy'"),
        ("[Errno 2] /a/b", "[Errno 13] /a/b"),
    ],
)
def test_different_causes_stay_different(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@given(st.text(max_size=400))
def test_normalising_is_bounded_and_changes_nothing_twice_in_plain_text(text: str) -> None:
    found = normalised(text)
    assert len(found) <= 4 * LONGEST
    assert error_line(text) == error_line(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'a\nTraceback (most recent call last):\n  File "a.py", line 1\n    f()\n\nKeyError: 1\n',
            "KeyError: 1",
        ),
        ("E   ValueError: no\n=== 1 failed in 0.1s ===", "ValueError: no"),
        ("ls: cannot access 'x': No such file\n[exit code: 2]", "ls: cannot access 'x': No such file"),
        ("<tool_use_error>File has not been read yet.</tool_use_error>", "File has not been read yet."),
        ('{"type":"x","message":"Overloaded","id":1}', "Overloaded"),
        ("Output: gcc: command not found\nError: (none)\nExit Code: 1", "gcc: command not found"),
        (
            "OperationalError     Traceback (most recent call last)\nCell In[1], line 10\n---> 10 run()\n\n"
            "OperationalError: no such column: a\nYou have 3 steps left.",
            "OperationalError: no such column: a",
        ),
        ("Tokens: 19,537 sent, 217 received.\nThe edit did not apply.", "The edit did not apply."),
        ("# 1 SEARCH/REPLACE block failed to match!", "1 SEARCH/REPLACE block failed to match!"),
        ("> app@0.1.0 build\n> astro build\nplain.js: cannot read it", "plain.js: cannot read it"),
        ("--no-error   ignore\nERROR: HTTP Error 429\n", "ERROR: HTTP Error 429"),
        ('{\n  "attempt": 1,\n  "error": "rate_limit"\n}', "rate_limit"),
        ("FAILURES\ntest_a - AssertionError: expected 5", "test_a - AssertionError: expected 5"),
        ("exit code 1", "exit code 1"),
        ("<returncode>137</returncode>\n<output>\n\n</output>", "exit code 137"),
        ("[exit code: 0]", ""),
        (
            "a.c:3:4: error: expected ';'\na.c:9:1: error: too\nmake: *** [x.o] Error 1",
            "a.c:3:4: error: expected ';'",
        ),
        ("", ""),
    ],
)
def test_the_line_that_names_an_error(text: str, line: str) -> None:
    assert error_line(text) == line


def step(
    index: int,
    kind: StepKind = StepKind.EXECUTE,
    arguments: str = "",
    text: str = "",
    *,
    said: str = "",
    code: int | None = None,
    error: bool | None = None,
    label: str = "",
    actor: Actor = Actor.AGENT,
) -> Step:
    calls = (RunCall("c", "bash", arguments or f"run {index}"),) if kind not in SILENT else ()
    results = (Result("c", text, error, code),) if calls else ()
    return Step(index, actor, kind, ByteRange("", 0, 1), calls=calls, results=results, text=said, label=label)


SILENT = (StepKind.MESSAGE, StepKind.END, StepKind.SCORE, StepKind.ERROR)


def digest(*steps: Step, **header: Any) -> RunDigest:
    run = Run("chat", **header)
    digester = Digester(run)
    for one in steps:
        digester.feed(one)
    return digester.digest(run)


def test_the_last_error_is_kept_with_its_step() -> None:
    found = digest(
        step(0, text="first: No such file or directory", code=1),
        step(1, text="fine"),
        step(2, text="Traceback (most recent call last):\n  File 'x'\nKeyError: 'a'", code=1),
        step(3, text="Traceback (most recent call last) in a file that was read", kind=StepKind.VIEW),
    )
    assert (found.error, found.cause, found.error_step, found.errors) == ("KeyError: 'a'",) * 2 + (2, 2)


def test_an_error_that_no_format_marks_is_seen_in_the_output() -> None:
    found = digest(step(0, text="x\nTraceback (most recent call last):\n  a\nTypeError: bad 3"))
    assert found.cause == "TypeError: bad <n>"


def test_failing_tests_are_no_error_but_a_test_run_that_did_not_begin_is() -> None:
    failing = step(0, StepKind.TEST, text="FAILED a.py::t - KeyError\n= 1 failed, 2 passed in 1s =", code=1)
    found = digest(failing)
    assert (found.cause, found.failing, found.failing_count) == ("", ("a.py::t",), 1)
    assert found.has(Happening.FAILED_TESTS)
    not_begun = step(1, StepKind.TEST, text="/usr/bin/python: No module named pytest", code=1)
    found = digest(failing, not_begun)
    assert found.cause == "<path>: No module named pytest"
    assert found.failing == ("a.py::t",), "the failing tests that were last seen"
    assert not digest(failing, step(1, StepKind.TEST, text="3 passed")).has(Happening.FAILED_TESTS)


def test_failing_tests_are_read_as_their_runners_print_them() -> None:
    text = (
        "FAIL: test_a (pkg.T)\ntest a::b ... FAILED\n--- FAIL: TestC (0.01s)\n  \u25cf suite \u203a adds\n"
        "x.py::d PASSED\nx.py::e FAILED"
    )
    failing = [found.id for found in outcomes_in([text]) if found.outcome != "passed"]
    assert failing == ["test_a (pkg.T)", "a::b", "TestC", "suite \u203a adds", "x.py::e"]
    score = step(0, StepKind.SCORE, said="unsolved\nagent_timeout\ntest_one: failed\ntest_two: passed")
    assert failing_in(score) == ["test_one"]


def test_a_loop_is_a_call_with_the_same_result_and_no_edit_in_between() -> None:
    again = [step(n, arguments="ls", text=f"a b in 0.{n} s") for n in range(3)]
    assert digest(*again).has(Happening.LOOPED)
    assert digest(*again).loop == 3
    others = [step(n, arguments="ls", text=f"a{n}") for n in range(3)]
    assert digest(*others).loop == 1, "another result is progress"
    patch = Step(
        9,
        Actor.AGENT,
        StepKind.EDIT,
        ByteRange("", 0, 1),
        calls=(RunCall("e", "edit", "{}", {"path": "a.py"}),),
    )
    assert digest(*again[:2], patch, again[2]).loop == 2
    alternating = [step(n, arguments="ab"[n % 2], text="x") for n in range(6)]
    assert digest(*alternating).has(Happening.LOOPED)


@pytest.mark.parametrize(
    ("steps", "header", "shape"),
    [
        ((), {}, AnswerShape.EMPTY),
        ((step(0, StepKind.MESSAGE, said="Done."),), {}, AnswerShape.TEXT),
        ((step(0, StepKind.MESSAGE, said="Which one?"),), {}, AnswerShape.QUESTION),
        ((step(0, StepKind.MESSAGE, said="```\ndiff --git a/x b/x\n```"),), {}, AnswerShape.PATCH),
        ((step(0),), {}, AnswerShape.CALL),
        ((step(0, StepKind.SUBMIT),), {}, AnswerShape.SUBMISSION),
        ((step(0),), {"submission": "--- a/x\n+++ b/x\n"}, AnswerShape.PATCH),
        ((step(0),), {"submission": "42"}, AnswerShape.SUBMISSION),
    ],
)
def test_the_shape_of_the_final_answer(
    steps: tuple[Step, ...], header: dict[str, Any], shape: AnswerShape
) -> None:
    assert digest(*steps, **header).answer == shape


@pytest.mark.parametrize("status", ["exit_cost", "LimitsExceeded", "time_cap", "max_turns", "agent_timeout"])
def test_a_run_that_a_limit_ended_is_out_of_budget(status: str) -> None:
    assert digest(step(0), exit_status=status).happened == (Happening.OUT_OF_BUDGET.value,)


@pytest.mark.parametrize("status", ["success", "submitted", "", "cancelled"])
def test_other_ends_are_no_limits(status: str) -> None:
    assert not digest(step(0), exit_status=status).has(Happening.OUT_OF_BUDGET)


def test_giving_up_is_in_the_end_reason_or_in_the_last_words() -> None:
    assert digest(step(0), exit_status="gave_up").has(Happening.GAVE_UP)
    assert digest(step(0, StepKind.MESSAGE, said="I was unable to find it.")).has(Happening.GAVE_UP)
    assert not digest(step(0, StepKind.MESSAGE, said="The tests pass.")).has(Happening.GAVE_UP)
    thinking = step(0, said="I can't find it there; let me look elsewhere.")
    assert not digest(thinking).has(Happening.GAVE_UP), "a run that ends with a call did not end with words"


def test_a_digest_of_every_format_is_bounded(tmp_path: Path) -> None:
    make_all(tmp_path)
    for listed in list_runs([tmp_path]):
        found = digest_of(open_run(listed.name, known=listed.format))
        assert len(found.cause) <= 4 * LONGEST
        assert happened_words(found)
        assert found.calls == sum(found.tools.values())


def test_the_command_prints_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_all(tmp_path)
    path = str(tmp_path)
    cli.main(["runs", path, "--json", "--group", "answer"])
    found = json.loads(capsys.readouterr().out)
    assert sum(group["count"] for group in found["groups"]) == len(found["runs"]) > 50
    assert {"cause", "happened", "answer", "failing_tests", "tools"} <= found["runs"][0].keys()
    cli.main(["runs", path, "--csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    by_name = {run["run"]: run for run in found["runs"]}
    assert len(rows) == len(by_name)
    assert all(row["answer"] == by_name[row["run"]]["answer"] for row in rows)
    cli.main(["runs", path, "--group", "cause"])
    assert capsys.readouterr().out.startswith("cause\truns\tsolved\tunsolved\tmedian steps\nno error\t")


def test_planted_causes_are_found_in_four_formats(tmp_path: Path) -> None:
    runs = plant(tmp_path, 80)
    pairs = [(run, digest_of(open_run(str(run.path)))) for run in runs]
    recorded = [(run, found) for run, found in pairs if run.format in ("mini-swe-agent", "claude-code")]
    assert all(bool(run.cause) is bool(found.cause) for run, found in recorded)
    causes = {
        run.cause: {found.cause for other, found in recorded if other.cause == run.cause}
        for run, _ in recorded
    }
    assert all(len(found) == 1 for found in causes.values()), causes
    assert len(set.union(*causes.values())) == len(causes), "different causes are different groups"
    for run, found in pairs:
        assert run.edited is found.has(Happening.EDITED)
        assert run.tested is found.has(Happening.TESTED)
        assert run.looped is found.has(Happening.LOOPED)
        assert run.out_of_budget is found.has(Happening.OUT_OF_BUDGET)
        assert run.answer == found.answer
        assert tuple(sorted(run.failing)) == found.failing


def test_an_exit_code_says_more_than_an_arbitrary_line() -> None:
    served = step(0, StepKind.EXECUTE, text="Serving HTTP on 0.0.0.0 port 8000", code=130)
    assert digest(served).cause == "exit code 130"
    refused = step(0, StepKind.EXECUTE, text="Serving HTTP\nport 80: permission denied", code=1)
    assert digest(refused).cause == "port <n>: permission denied"


def test_a_reply_that_broke_off_ends_with_the_reason() -> None:
    broken = replace(step(0, StepKind.ERROR), text="Now let me look at it:\nterminated", results=(), calls=())
    assert digest(broken).cause == "terminated"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("No replacement was performed, old_str `a = 1", "No replacement was performed, old_str `b = 2"),
        ("port 80: http://0.0.0.0:8000/ is in use", "port 81: http://0.0.0.0:8001/ is in use"),
    ],
)
def test_what_differs_between_equal_causes_is_left_out(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)
    assert normalised("1 SEARCH/REPLACE block: HTTP Error 429") == "<n> SEARCH/REPLACE block: HTTP Error 429"


@pytest.mark.parametrize(
    ("output", "failing", "cause"),
    [
        (
            "E   ModuleNotFoundError: No module named 'a'\nERROR tests/test_a.py\n= 1 error in 0.10s =",
            ("tests/test_a.py",),
            "ModuleNotFoundError: No module named 'a'",
        ),
        (
            "E   fixture 'a' not found\nERROR t.py::b\nFAILED t.py::c - x\n= 1 failed, 1 error in 0.1s =",
            ("t.py::b", "t.py::c"),
            "fixture 'a' not found",
        ),
        (
            "ERROR: test_a (t.T)\nKeyError: 1\nRan 1 test in 0.1s\nFAILED (errors=1)",
            ("test_a (t.T)",),
            "KeyError: <n>",
        ),
        ("FAILED t.py::c - x\n= 1 failed, 2 passed in 0.1s =", ("t.py::c",), ""),
        ("FAIL: test_a (t.T)\nRan 1 test in 0.1s\nFAILED (failures=1)", ("test_a (t.T)",), ""),
    ],
)
def test_a_test_with_an_error_is_an_error(output: str, failing: tuple[str, ...], cause: str) -> None:
    found = digest(step(0, StepKind.TEST, text=output, code=1))
    assert (found.failing, found.cause, found.errors) == (failing, cause, int(bool(cause)))


def test_a_score_names_tests_without_their_reasons() -> None:
    text = "unsolved\ntest_a - Failed: it: is down: failed\ntest_b[x y]: error\ntest_c: passed\nnot a test: failed"
    score = replace(step(0, StepKind.SCORE), text=text, actor=Actor.ENVIRONMENT, calls=(), results=())
    assert failing_in(score) == ["test_a", "test_b[x y]"]


def test_edits_and_test_runs_are_counted_by_call() -> None:
    calls = tuple(
        RunCall(str(number), tool, json.dumps(arguments), arguments)
        for number, (tool, arguments) in enumerate(
            [
                ("edit", {"path": "a.py", "oldText": "1", "newText": "2"}),
                ("edit", {"path": "b.py", "oldText": "1", "newText": "2"}),
                ("bash", {"command": "pytest a"}),
                ("bash", {"command": "pytest b"}),
            ]
        )
    )
    together = Step(0, Actor.AGENT, kind_of(calls), ByteRange("", 0, 1), calls=calls, edits=edits_of(calls))
    found = digest(together)
    assert (found.calls, found.edits, found.test_runs) == (4, 2, 2)


def test_tokens_and_cost_of_the_steps_are_those_of_a_run_that_records_none(tmp_path: Path) -> None:
    make_all(tmp_path)
    derived = set()
    for listed in list_runs([tmp_path]):
        if listed.header is None:
            continue
        document = open_run(listed.name, known=listed.format)
        run = kept_of(document, listed.header).run
        recorded, steps = document.header, list(document.steps())
        spent = sum((step.tokens for step in steps), start=Tokens())
        costs = [step.cost for step in steps if step.cost is not None]
        if recorded.tokens:
            assert run.tokens == recorded.tokens
        elif spent.prompt is None or spent.completion is None:
            assert not run.tokens
        else:
            assert (run.tokens, "tokens" in run.derived) == (spent, True)
            assert f"tokens       ~{spent.prompt} / {spent.completion}" in show(document)
            derived.add(run.format)
        assert run.cost == (recorded.cost if recorded.cost is not None or not costs else sum(costs))
    assert {"openhands", "debug-gym", "dataset-rows"} <= derived
