"""Lines that a submission writes in place of an answer count for nothing, and don't stop the reader."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gistpoint.core.confirmation import differences
from gistpoint.core.confirmation.showing import (
    ValueRenderer,
    answer_text,
    effects_text,
    same_answer,
    same_effects,
    same_without_order,
    texts_apart,
    with_kept_numbers,
)
from gistpoint.sandbox.confirmation.pair import Asked, Exchange, PairReport
from gistpoint.sandbox.confirmation.repeating import PlainCall, plain_calls
from gistpoint.sandbox.confirmation.submission import parsed
from gistpoint.sandbox.payload import audit_events
from gistpoint.sandbox.payload.audit_events import what_runs
from gistpoint.sandbox.payload.plain_sides import CannotTravelError, Shared, UnseenNameError
from gistpoint.sandbox.payload.trusted_calls import Learned, StubCalls, TestSide, _place_of_warning, _reply

ANSWER: dict[str, Any] = {"re": "value", "roots": [1], "heap": {}}
NONE = [
    b"",
    b"\xff",
    b"null",
    b"[]",
    b'{"re": 5}',
    b"[" * 100_000,
    b'{"re": "value", "roots": [' + b"[" * 3_000 + b"]" * 3_000 + b"]}",
    b'{"re": "value", "roots": [' + b"1" * 5_000 + b"]}",
    b'{"re": "value", "heap": {}}',
    b'{"re": "raised", "roots": []}',
    b'{"re": "value", "roots": {"a": 1}}',
    *(
        json.dumps({**ANSWER, "heap": heap}).encode()
        for heap in ([1], {"5": []}, {"5": 1}, {"5": ["dict", 1]})
    ),
    *(json.dumps({**ANSWER, "reason": reason}).encode() for reason in ("bogus", "", 5, ["x"], {})),
    b'{"re": "unplain", "words": 5}',
    *(
        json.dumps({**ANSWER, "heap": {number: ["list", []]}}).encode()
        for number in ("+2", " 2", "2 ", "02", "-0", "1_0", "\u0662", "2.0", "")
    ),
]


@pytest.mark.parametrize("line", NONE, ids=range(len(NONE)))
def test_what_is_no_answer_is_none(line: bytes) -> None:
    assert parsed(line) is None


def test_an_answer_is_one() -> None:
    for answer in (ANSWER, {"re": "ready"}, {"re": "unplain", "reason": "not_plain_data", "words": "x"}):
        assert parsed(json.dumps(answer).encode()) == answer


@pytest.mark.parametrize(
    "heap",
    [{"5": ["object", 1]}, {"5": ["object", "a:B", 3, "x", 4]}, {"5": ["list", 7]}, {"5": ["set", {"a": 1}]}],
)
def test_an_odd_answer_can_be_shown_and_compared(heap: dict[str, Any]) -> None:
    answer = {"re": "value", "roots": [["#", 5]], "heap": heap}
    assert parsed(json.dumps(answer).encode()) is None
    assert isinstance(answer_text(answer, ValueRenderer()), str)
    assert not same_answer(ANSWER, answer)
    assert not same_without_order(ANSWER, answer)


def put_again(*exchanges: tuple[dict[str, Any], dict[str, Any]], steps: bool = True) -> list[PlainCall]:
    """Return the repeatable calls of one test with these requests and answers."""
    asked = {"t": Asked([Exchange(*exchange) for exchange in exchanges])}
    return plain_calls(cast(PairReport, SimpleNamespace(asked=asked)), steps=steps)


CALL = {"do": "call", "call": 1, "roots": []}
NEXT = {"re": "callback", "do": "next", "of": 1_000_000_000, "roots": [["t", []], ["t", []]], "heap": {}}


def test_whether_a_call_can_be_put_again_is_not_for_the_submission_to_say() -> None:
    for steps in (False, True):
        assert put_again((CALL, {**ANSWER, "stays": True}), steps=steps)
    for number in (1_000_000_000, -1_000_000_001):
        for roots, heap in (
            ([["t", [["#", number]]]], {}),
            ([1], {"-5": ["dict", [["k", ["#", number]]]]}),
            ([1], {"-5": ["list", [], ["#", number]]}),
            ([["a", number, "function", "f", None]], {}),
        ):
            assert put_again((CALL, {"re": "value", "roots": roots, "heap": heap}))


def test_a_call_that_asks_the_test_is_put_again_with_the_replies() -> None:
    reply = {"do": "return", "roots": [2], "heap": {}}
    nested = ({**CALL, "call": 2}, ANSWER)
    given = {**CALL, "stays": True}
    found = put_again((given, NEXT), nested, (reply, NEXT), ({"do": "stop", "roots": [None]}, ANSWER))
    assert [len(call.steps) for call in found] == [3]
    assert put_again((given, NEXT), (reply, NEXT)) == [], "its end was not recorded"
    assert put_again((given, NEXT), (reply, ANSWER), steps=False) == []


def test_a_call_is_put_again_for_each_of_its_answers() -> None:
    other = {"re": "raised", "roots": [["#", -1]], "heap": {}}
    assert len(put_again((CALL, ANSWER), ({**CALL, "call": 2}, ANSWER))) == 1
    assert len(put_again((CALL, ANSWER), ({**CALL, "call": 2}, other))) == 2
    assert len(put_again((CALL, ANSWER), ({**CALL, "call": 2}, other), steps=False)) == 1


def test_numbers_of_what_stays_are_those_of_the_other_process() -> None:
    request = {"do": "next", "of": -1_000_000_000, "roots": [["#", -1_000_000_002]], "heap": {}}
    numbers = {"-1000000000": "-1000000007", "-1000000002": "-1000000009"}
    assert with_kept_numbers(request, numbers) == {
        **request,
        "of": -1_000_000_007,
        "roots": [["#", -1_000_000_009]],
    }
    assert with_kept_numbers(request, {}) is None
    assert with_kept_numbers({**CALL, "of": 1_000_000_000}, {}) == {**CALL, "of": 1_000_000_000}


def kept(number: int, name: str = "f", place: int = -5) -> dict[str, Any]:
    heap = {str(place): ["list", [["#", number]]], str(number): ["function", name, None]}
    return {"re": "value", "roots": [["#", place], ["a", number - 1, "function", "g", None]], "heap": heap}


def test_each_process_counts_what_stays_with_it_by_itself() -> None:
    assert same_without_order(kept(-1_000_000_000), kept(-1_000_000_017))
    assert same_answer(kept(-1_000_000_000), kept(-1_000_000_017))
    assert not same_answer(kept(-1_000_000_000), kept(-1_000_000_017, "h"))
    assert not same_answer(kept(-1_000_000_000), kept(-1_000_000_017, place=-6))
    text = {**ANSWER, "roots": ['["#", -1000000000]']}
    assert not same_answer(text, {**ANSWER, "roots": ['["#", -1000000001]']})
    given = [{**ANSWER, "roots": [["#", number]]} for number in (1_000_000_000, 1_000_000_001)]
    assert not same_answer(*given)


@pytest.mark.parametrize("name", ["out", "err", "warnings", "logs"])
def test_what_an_answer_writes_and_logs_is_compared_and_shown(name: str) -> None:
    effects = {"out": "x", "err": "x", "warnings": [["a:B", "x", 0]], "logs": [["a", 1, "x", {}]]}
    other = {**ANSWER, name: effects[name]}
    assert same_answer(ANSWER, other)
    assert not same_effects(ANSWER, other)
    request = {"roots": [1]}
    assert effects_text(request, ANSWER, ValueRenderer()) == "its arguments are then (1)"
    assert "x" in effects_text(request, other, ValueRenderer())


DIFFERENT: dict[str, tuple[list[Any], list[Any]]] = {
    "a dictionary of defaults": (["dict", [["a", 1]]], ["default", [["a", 1]], None]),
    "a dictionary in order": (["dict", [["a", 1]]], ["ordered", [["a", 1]]]),
    "a row": (["list", [1]], ["deque", [1], None]),
    "another row": (["deque", [1], None], ["deque", [2], None]),
    "a namespace": (["namespace", [["a", 1]]], ["namespace", [["a", 2]]]),
    "a file": (["text file", "x", 0], ["text file", "x", 1]),
    "other data that look the same": (["lock", "lock"], ["lock", "RLock"]),
    "a list in place of the same one": (["list", [["t", [0]]]], ["list", [["#", 6]]]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_two_different_answers_are_shown_differently(name: str) -> None:
    answers = [
        {"re": "value", "roots": [["#", 5]], "heap": {"5": node, "6": ["list", [0]]}}
        for node in DIFFERENT[name]
    ]
    texts = [answer_text(answer, ValueRenderer()) for answer in answers]
    first, second = texts_apart(*answers, texts)
    assert first != second
    assert all(len(text) <= 300 for text in (first, second))


ODD = [
    b"[]",
    b"x",
    b"[" * 100_000,
    b"{}",
    *(
        json.dumps({**ANSWER, **beside}).encode()
        for beside in (
            {"re": 5},
            {"out": 5},
            {"err": []},
            {"heap": []},
            {"roots": 1},
            {"warnings": 5},
            {"warnings": [["a"]]},
            {"warnings": [["a:B", "x"]]},
            {"warnings": [["a:B", "x", "0"]]},
            {"logs": [["a", "b", "c"]]},
            {"logs": [["a", 1, "c"]]},
            {"logs": [["a", 1, "c", []]]},
            {"logs": [["a", 1, 2]]},
            {"re": "callback"},
            {"re": "callback", "do": "next"},
            {"re": "callback", "of": 1},
            {"re": "callback", "do": 1, "of": 1},
            {"re": "callback", "do": "next", "of": [1]},
            {"re": "callback", "do": "next", "of": True},
        )
    ),
]


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_the_tests_process_takes_no_odd_reply(line: bytes) -> None:
    with pytest.raises(CannotTravelError):
        _reply(line)
    assert _reply(json.dumps(ANSWER).encode()) == ANSWER


@pytest.mark.parametrize("do", ["call", "apply", "close", "next", "throw"])
def test_only_an_iterator_stops(do: str) -> None:
    calls: Any = object.__new__(StubCalls)
    calls.learning = False
    shared = Shared(TestSide(cast(Any, FakeCalls()), "/", []))
    reply = {"re": "stop", "roots": [5], "heap": {}}
    if do in ("next", "throw"):
        assert calls.result_of(reply, shared, do).value == 5
    else:
        with pytest.raises(CannotTravelError):
            calls.result_of(reply, shared, do)


class Odd:
    def __bool__(self) -> bool:
        raise ValueError("neither true nor false")


def raised() -> BaseException:
    try:
        raise AssertionError("open")
    except AssertionError as error:
        return error


@pytest.mark.parametrize(
    ("roots", "answer", "is_reported"),
    [
        ([1, (AssertionError, raised(), None)], True, True),
        ([raised()], 1, True),
        ([raised()], Odd(), True),
        ([raised()], False, False),
        ([raised()], None, False),
        ([AssertionError("made by the test")], True, False),
        ([(None, None, None)], True, False),
        ([Odd(), 5], Odd(), False),
    ],
)
def test_an_exception_that_a_call_may_end_is_reported(
    roots: list[Any], answer: object, is_reported: bool
) -> None:
    calls: Any = object.__new__(StubCalls)
    reported: list[str] = []
    calls.checks = SimpleNamespace(report_once=reported.append)
    calls.report_ended_block(roots, answer)
    assert reported == ["builtins:AssertionError('open',)"] * is_reported


class FakeCalls:
    asked = (0,)

    def __init__(self, *answers: str) -> None:
        self.learned = [Learned(learning=False, answers=list(answers), writes=[])]


@pytest.mark.parametrize("name", ["antigravity:", "antigravity:x", "this:Zen", "os:system", "tests:x", ""])
def test_no_module_is_imported_for_the_category_of_a_warning(name: str) -> None:
    calls: Any = FakeCalls("json:")
    before = set(sys.modules)
    with pytest.raises(UnseenNameError):
        TestSide(calls, "/", []).warning_named(name)
    assert set(sys.modules) == before


def test_categories_that_the_true_function_used_and_those_of_python_are_taken() -> None:
    calls: Any = FakeCalls("ssl:SSLError", "json:")
    side = TestSide(calls, "/", [])
    assert side.warning_named("builtins:UserWarning") is UserWarning
    assert side.warning_named("builtins:exec") is None
    assert side.warning_named("ssl:SSLError") is None
    assert side.warning_named("pytest:PytestWarning") is None


def test_the_place_of_a_warning_is_that_of_the_same_caller() -> None:
    assert _place_of_warning(0, chr(120))[0] == _place_of_warning(-7, chr(120))[0] == __file__

    def stub() -> tuple[list[Any], int]:
        assert "stub"
        places = [_place_of_warning(-1, "stub"), _place_of_warning(0, "stub")]
        places += [_place_of_warning(1, "stub"), _place_of_warning(10**30, "stub")]
        return places, stub.__code__.co_firstlineno + 2

    def caller() -> tuple[list[Any], int]:
        return stub()

    (own, above, further, outermost), line = caller()
    first = caller.__code__.co_firstlineno
    assert own == (__file__, line)
    assert above == (__file__, first + 1)
    assert further[0] == __file__
    assert further[1] > first + 1
    assert outermost[0] != __file__


TOOLS = ["unittest.mock:_ANY", "unittest.mock:MagicMock", "_pytest.python_api:ApproxScalar", "pytest:approx"]


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("learning", [False, True])
def test_no_object_of_a_tool_of_tests_is_taken_even_if_a_true_answer_had_one(
    name: str, learning: bool
) -> None:
    calls: Any = FakeCalls(name)
    calls.learned[0].learning = learning
    side = TestSide(calls, "/", [])
    with pytest.raises(UnseenNameError):
        side.kind_named(name, "")
    with pytest.raises(UnseenNameError):
        side.answered(name)
    with pytest.raises(UnseenNameError):
        side.exception_named(name, "")


EFFECTS = ("writes out", "logs 30 kit", "warns builtins:UserWarning")


def test_effects_that_no_true_answer_had_are_left_out_unless_all_changes_are_made() -> None:
    true = Learned(learning=True, answers=[], writes=[])
    assert true.does("writes out")
    known = sorted(true.answers)
    own = Learned(learning=False, answers=known, writes=[])
    assert list(map(own.does, EFFECTS)) == [True, False, False]
    assert own.has_unmade_change
    every = Learned(learning=False, answers=known, writes=[], all_changes=True)
    assert all(map(every.does, EFFECTS))
    assert every.has_unmade_change
    # Older controls do not name effects, so all are repeated.
    before = Learned(learning=False, answers=["builtins:int"], writes=[])
    assert all(map(before.does, EFFECTS))
    assert not before.has_unmade_change


@pytest.mark.parametrize(
    ("event", "arguments", "other"),
    [
        ("compile", ("x + 1", "a"), ("x + 2", "a")),
        ("compile", (b"x + 1", "a"), (b"x + 2", "a")),
        ("compile", (ast.parse("x + 1"), None), (ast.parse("x + 2"), None)),
        ("pickle.find_class", ("os", "path"), ("os", "system")),
        ("marshal.loads", (b"a",), (b"b",)),
        ("os.system", (b"true",), (b"false",)),
    ],
)
def test_what_is_run_is_told_apart(event: str, arguments: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert what_runs(event, arguments) == what_runs(event, arguments) != b""
    assert what_runs(event, arguments) != what_runs(event, other)
    assert what_runs("open", arguments) == b""


_HEARD = '''
import ast, os, sys
sys.path[:0] = [{payload!r}, {modules!r}]
from audit_events import is_of_tools
began, heard = {began}, []
hook = """def hook(event, arguments):
    if event in ("compile", "marshal.loads") and not is_of_tools(event, arguments, began):
        heard.append(event)
"""
exec(compile(hook, os.path.join({payload!r}, "hook.py"), "exec"))
sys.addaudithook(hook)
{code}
print(*heard)
'''


@pytest.mark.parametrize(
    ("code", "later", "heard"),
    [
        ("import known", 0, ""),
        ("import known; del sys.modules['known']; import known", 0, ""),
        ("import known", 1, "compile"),  # it may contain an answer
        ("compile('1 + 1', 'known.py', 'eval')", 0, "compile"),
        ("ast.parse('1 + 1')", 0, "compile"),  # by the standard library, but not for pytest
        (
            "import marshal; marshal.loads(marshal.dumps(compile('1', 'x', 'eval')))",
            0,
            "compile marshal.loads",
        ),
    ],
)
def test_a_module_that_was_there_before_is_no_answer_that_is_run(
    tmp_path: Path, code: str, later: int, heard: str
) -> None:
    (tmp_path / "known.py").write_text("answer = 'what was answered'\n")
    payload = Path(audit_events.__file__).parent
    began = (tmp_path / "known.py").stat().st_ctime + (-5 if later else 5)
    text = _HEARD.format(payload=str(payload), modules=str(tmp_path), began=began, code=code)
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(text)
    ran = subprocess.run(
        [sys.executable, "-B", str(script)], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == heard


@pytest.mark.parametrize(
    ("path", "is_code", "is_data"),
    [
        ("tests/test_a.py", True, False),
        ("tests/data/expected.json", False, True),
        ("tests/conftest.py", True, False),
        ("pyproject.toml", False, False),
        ("setup.cfg", False, False),
        ("lib/data.json", False, False),
    ],
)
def test_the_other_process_has_neither_tests_nor_what_they_expect(
    path: str, is_code: bool, is_data: bool
) -> None:
    tree: Any = SimpleNamespace(files=lambda: (path,))
    assert differences.test_paths(tree, (), data=False) == ((path,) if is_code else ())
    assert differences.test_paths(tree, (), data=True) == ((path,) if is_code or is_data else ())
