"""Information from the text of a failure."""

import pytest

from gistpoint.sandbox.candidates.warm import LineSpan, read_failure

SHORT = """tests/test_a.py:7: ValueError: no

tests/test_a.py:7: in test_a
    mod.f(1)
src/mod.py:12: in f
    g(x)
src/mod.py:30: in g
    raise ValueError("no")
E   ValueError: no"""
NATIVE = """src/mod.py:30: pkg.errors.Odd: no

Traceback (most recent call last):
  File "tests/test_a.py", line 7, in test_a
    mod.f(1)
  File "src/mod.py", line 12, in f
    g(x)
pkg.errors.Odd: no"""


@pytest.mark.parametrize("text", [SHORT, NATIVE])
def test_a_traceback_goes_through_the_lines_that_it_names(text: str) -> None:
    assert read_failure(text, [LineSpan("src/mod.py", 10, 12)]).through_target
    assert not read_failure(text, [LineSpan("src/mod.py", 13, 29), LineSpan("mod.py", 1, 99)]).through_target
    assert not read_failure(text).through_target


@pytest.mark.parametrize(
    ("text", "error_type", "assertion"),
    [
        (SHORT, "ValueError", False),
        (NATIVE, "Odd", False),
        ("t.py:3: assert 1 == 2\n", "AssertionError", True),
        ("t.py:3: AssertionError: assert 1 == 2\n", "AssertionError", True),
        ("t.py:3: AssertionError", "AssertionError", True),
        ("t.py:3: Failed: DID NOT RAISE <class 'KeyError'>", "Failed", True),
        ("t.py:3: KeyError: 'assert: x'", "KeyError", False),
        ("('t.py', 3, 'Skipped: no')", "", False),
        ("", "", False),
    ],
)
def test_the_exception_and_whether_it_is_an_expectation(text: str, error_type: str, assertion: bool) -> None:
    failure = read_failure(text)
    assert (failure.error_type, failure.assertion, failure.message) == (error_type, assertion, text)


def test_what_is_known_of_the_exception_goes_before_the_text() -> None:
    assert read_failure("t.py:3: Odd: x", raised="AssertionError").assertion
