import ast
import contextlib
import gc
import threading
import time
import warnings

import pytest

from gistpoint.core.code.parsing import (
    CodeError,
    Fault,
    NestedTooDeeplyError,
    compile_module,
    compile_problem,
    fault_in,
    first_line,
    parse,
    parse_expression,
    parse_module,
    parsed_or_empty,
    undisturbed,
)
from gistpoint.sandbox.environments.requirement import requirement_of

DEEP = "[" * 30 + "1, 2" + "]" * 30
MARKED = " or ".join(f"extra == 'name{number}'" for number in range(40))


@pytest.fixture
def interrupted():
    """Make threads that build objects yield often, as finalizers or callbacks of the collector would."""

    def elsewhere(phase, info):
        time.sleep(0)

    thresholds = gc.get_threshold()
    gc.callbacks.append(elsewhere)
    gc.set_threshold(20, 2, 2)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(elsewhere)


def side_by_side(*calls, seconds=1.5):
    raised = []
    done = []
    end = time.monotonic() + seconds

    def work(call):
        while time.monotonic() < end and not raised:
            try:
                call()
            except BaseException as error:
                raised.append(error)
            done.append(call)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) > len(calls)
    return raised


@pytest.mark.parametrize(
    "call",
    [
        lambda: parse(DEEP),
        lambda: parse_expression(DEEP),
        lambda: compile_module(DEEP, "<test>"),
        lambda: requirement_of(f"name; {MARKED}"),
    ],
    ids=["parse", "expression", "compile", "requirement"],
)
def test_threads_that_parse_at_one_moment_do_not_disturb_each_other(interrupted, call):
    before = list(warnings.filters)
    assert side_by_side(call, call, call) == []
    assert warnings.filters == before


def test_a_library_that_parses_in_another_thread_does_not_disturb(interrupted):
    """The library's own errors are left to Python; gistpoint's parsing is repeated."""

    def library():
        with contextlib.suppress(SystemError):
            ast.parse(DEEP)

    assert side_by_side(lambda: parse(DEEP), library, library) == []


def test_what_is_disturbed_is_begun_again_and_ends_some_time():
    disturbed = []

    def call():
        disturbed.append(1)
        if len(disturbed) < 4:
            raise SystemError("AST constructor recursion depth mismatch (before=66, after=64)")
        return "done"

    def never():
        raise SystemError("AST constructor recursion depth mismatch (before=66, after=64)")

    assert undisturbed(call) == "done"
    assert len(disturbed) == 4
    with pytest.raises(SystemError, match="depth mismatch"):
        undisturbed(never)


def test_another_fault_of_python_is_told_at_once():
    asked = []

    def call():
        asked.append(1)
        raise SystemError("bad argument to internal function")

    with pytest.raises(SystemError, match="bad argument"):
        undisturbed(call)
    assert asked == [1]


def test_warnings_are_not_shown_and_their_filters_stay():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        assert isinstance(parse("x = '\\d'").body[0], ast.Assign)
        compile_module("x is 1", "<test>")
        assert warnings.filters == before


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "decorator",
    [
        "@d",
        "@ (\n(d\n))",
        "@(  # a @ b\n# @c\n  d\n)",
        "@\\\n(\n\nd)",
        "@(d\n)",
        "@(\n'é@', d)[1]",
        "@(\nd)\n@d",
    ],
)
@pytest.mark.parametrize("header", ["def f(): pass", "class F:\n  x = y \\\n    @ z"])
def test_a_definition_begins_with_the_at_sign_of_its_first_decorator(
    decorator: str, header: str, end: str
) -> None:
    text = f"x = (y\n@ z)\n{decorator}\n{header}\n".replace("\n", end)
    for source in (text, text.encode()):
        assert first_line(parse(source).body[1]) == 3
    assert first_line(parse("x = y @ z\n").body[0]) == 1


NESTED = {
    "signs": "-" * 9_000 + "1",
    "attributes": "a" + ".b" * 30_000,
    "a sum": "1" + "+1" * 30_000,
    "calls": "f" + "()" * 30_000,
}
"""Expressions that make Python raise `RecursionError` or `MemoryError`, each by other means."""


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("read", [parse, parse_expression, lambda text: compile_module(text, "m")])
def test_code_that_is_nested_too_deeply_is_refused_like_any_other(read, text):
    with pytest.raises(NestedTooDeeplyError, match="nested too deeply"):
        read(text)
    assert not parsed_or_empty(text).body
    assert fault_in(text) == Fault("it is nested too deeply")
    assert "nested too deeply" in str(compile_problem(text))
    with pytest.raises(CodeError, match="nested too deeply"):
        parse_module(text, "x.py")
