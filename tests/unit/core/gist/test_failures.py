"""Comparable outputs, fidelity, error categories and flags."""

from __future__ import annotations

import pytest

from gistpoint.core.entrypoints.runs import CommandRun, Isolation, Raised, TestRun, TestsRun
from gistpoint.core.kinds.gist.failures import ErrorCategory, ErrorKind, gist_error, owned_imports
from gistpoint.core.kinds.gist.fidelity import compare_commands, compare_tests, normalise_output
from gistpoint.core.kinds.gist.flags import main_guard_added, moved_under_guard, vacuity_mutants
from gistpoint.core.kinds.gist.rates import Originals, line_existence
from gistpoint.core.outcomes import Outcome, RunStatus

PASSED = TestRun(Outcome.PASSED)
AREA = "import math\ndef area(r):\n    return math.pi * r * r\n"
TEST = "def test_it():\n    assert area(1) > 3\n"


def run(*, status: RunStatus = RunStatus.FINISHED, error: Raised | None = None, **tests: TestRun) -> TestsRun:
    return TestsRun(status, {f"tests/a.py::{name}": test for name, test in tests.items()}, error)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<A object at 0x7f00aa11>", "<A object at 0x7fffbb22>"),
        ("took 0.31s", "took 12 s"),
        ("at 2026-01-02 03:04:05.123", "at 2025-11-12T13:14:15Z"),
        ("seed=4", "seed=99"),
        ("pid 17 in /tmp/pytest-0/x", "pid 4242 in /tmp/tmpab12/y"),
        ('  File "/a/b.py", line 3, in f', '  File "/gist.py", line 900, in f'),
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_what_varies_by_its_nature_is_masked(one: str, other: str) -> None:
    assert normalise_output(one) == normalise_output(other)


@pytest.mark.parametrize(
    ("one", "other"), [("0x1f", "0x2f"), ("3 items", "4 items"), ("1.5", "1.6"), ("a b", "ab")]
)
def test_what_is_said_is_not_masked(one: str, other: str) -> None:
    assert normalise_output(one) != normalise_output(other)


def test_places_of_a_run_are_masked_longest_first() -> None:
    places = {"/srv/work": "<root>", "/srv/work/gist.py": "<file>"}
    assert normalise_output("/srv/work/gist.py in /srv/work", places) == "<file> in <root>"


def test_fidelity_wants_the_same_instances_to_pass_fail_and_be_skipped() -> None:
    original = run(**{"t[1]": PASSED, "t[2]": TestRun(Outcome.SKIPPED)})
    assert compare_tests([original], original).value == 1
    less = compare_tests([original], run(**{"t[1]": PASSED}))
    assert (less.value, less.pass_rate) == (0, 50)
    other = compare_tests([original], run(**{"t[1]": PASSED, "t[2]": PASSED}))
    assert [(d.test, d.what) for d in other.differences] == [("t[2]", "outcome")]


def test_a_test_that_fails_alike_is_faithful() -> None:
    failing = TestRun(Outcome.FAILED, raised=Raised("pkg.errors.Bad", "at 0x7f00aa11"))
    alike = TestRun(Outcome.FAILED, raised=Raised("test_gist.Bad", "at 0x7f00bb22"))
    assert compare_tests([run(t=failing)], run(t=alike)).value == 1
    other = TestRun(Outcome.FAILED, raised=Raised("test_gist.Bad", "else"))
    assert compare_tests([run(t=failing)], run(t=other)).value == 0


def test_commands_are_compared_by_status_streams_and_exception() -> None:
    original = CommandRun(RunStatus.FINISHED, 0, "out\n", "err\n")
    assert compare_commands([original], original).value == 1
    for changed in (
        CommandRun(RunStatus.FINISHED, 1, "out\n", "err\n"),
        CommandRun(RunStatus.FINISHED, 0, "out!\n", "err\n"),
        CommandRun(RunStatus.FINISHED, 0, "out\n", ""),
        CommandRun(RunStatus.FINISHED, 0, "out\n", "err\n", Raised("ValueError", "x")),
        CommandRun(RunStatus.TIMED_OUT, 0, "out\n", "err\n"),
    ):
        assert compare_commands([original], changed).value == 0
    written = CommandRun(RunStatus.FINISHED, files={"a.txt": "1"})
    assert compare_commands([written], CommandRun(RunStatus.FINISHED)).value == 1
    assert compare_commands([written], CommandRun(RunStatus.FINISHED), compared_files=["a.txt"]).value == 0


def test_what_varies_in_the_original_excuses_no_other_difference() -> None:
    originals = [CommandRun(RunStatus.FINISHED, 0, f"begin\nid {number} of 3\n") for number in (7, 12, 90)]
    for stdout, value in (
        ("begin\nid 55 of 3\n", 1),
        ("begin\nid 55 of 4\n", 0),
        ("begin\nsomething wholly different\n", 0),
        ("begin\nid none of 3\n", 0),
        ("begin\n", 0),
    ):
        assert compare_commands(originals, CommandRun(RunStatus.FINISHED, 0, stdout)).value == value
    raised = [TestRun(Outcome.FAILED, raised=Raised("E", f"no {number} in box")) for number in (1, 2)]
    for message, value in (("no 3 in box", 1), ("no 3 in bag", 0), ("whatever", 0)):
        found = TestRun(Outcome.FAILED, raised=Raised("E", message))
        assert compare_tests([run(t=one) for one in raised], run(t=found)).value == value


def error_of(gist: str, found: TestsRun | None, original: TestsRun) -> tuple[ErrorCategory, ErrorKind] | None:
    fidelity = compare_tests([original], found) if found else None
    error = gist_error(gist, "test_it", {"a"}, found, fidelity)
    return (error.category, error.kind) if error else None


ORIGINAL = run(test_it=PASSED)
RUNTIME = ErrorCategory.PYTEST_RUNTIME


@pytest.mark.parametrize(
    ("gist", "found", "expected"),
    [
        (AREA + TEST, ORIGINAL, None),
        ("from a import area\n" + TEST, ORIGINAL, (ErrorCategory.IMPORT_ERROR, ErrorKind.NONE)),
        (" \n", None, (ErrorCategory.FILE_CREATION, ErrorKind.NONE)),
        (
            AREA + "if __name__ == '__main__':\n    assert area(1) > 3\n",
            None,
            (ErrorCategory.MISSING_TEST, ""),
        ),
        ("def f(:\n" + TEST, run(error=Raised("SyntaxError", "")), (RUNTIME, ErrorKind.SYNTAX)),
        (AREA + TEST, run(error=Raised("NameError", "functools")), (RUNTIME, ErrorKind.COLLECTION)),
        (AREA + TEST, run(status=RunStatus.TIMED_OUT), (RUNTIME, ErrorKind.TIMEOUT)),
        (AREA + TEST, run(status=RunStatus.CRASHED, test_it=PASSED), (RUNTIME, ErrorKind.CRASH)),
        (
            "print('x')\n" + AREA + TEST,
            run(test_it=TestRun(Outcome.PASSED, "x\n")),
            (RUNTIME, ErrorKind.WRONG_OUTPUT),
        ),
        (AREA + TEST, run(test_it=TestRun(Outcome.SKIPPED)), (RUNTIME, ErrorKind.WRONG_OUTCOME)),
        (
            AREA + TEST,
            run(test_it=TestRun(Outcome.FAILED, raised=Raised("builtins.AssertionError", ""), phase="call")),
            (RUNTIME, ErrorKind.ASSERTION),
        ),
        (
            AREA + TEST,
            run(test_it=TestRun(Outcome.FAILED, raised=Raised("builtins.TypeError", ""), phase="call")),
            (RUNTIME, ErrorKind.EXCEPTION),
        ),
        (
            AREA + TEST,
            run(
                test_it=TestRun(
                    Outcome.ERROR, raised=Raised("FixtureLookupError", "fixture 'x'"), phase="setup"
                )
            ),
            (RUNTIME, ErrorKind.FIXTURE),
        ),
    ],
)
def test_the_first_rule_that_holds_names_the_error(
    gist: str, found: TestsRun | None, expected: tuple[ErrorCategory, ErrorKind] | None
) -> None:
    assert error_of(gist, found, ORIGINAL) == expected


@pytest.mark.parametrize(
    ("gist", "evidence"),
    [
        ("x = 1\ndef f(:\n" + TEST, "line 2: invalid syntax"),
        (TEST + "return 1\n", "line 3: 'return' outside function"),
        (
            "def f():\nx = 1\n" + TEST,
            "line 2: expected an indented block after function definition on line 1",
        ),
        ("x = '\0'\n" + TEST, "source code string cannot contain null bytes"),
    ],
)
def test_a_fault_of_syntax_is_named_with_its_line(gist: str, evidence: str) -> None:
    error = gist_error(gist, "test_it", {"a"}, None, None)
    assert error is not None
    assert error.kind is ErrorKind.SYNTAX
    assert evidence in error.evidence


def test_a_refused_import_is_an_import_error_even_where_the_outcome_is_right() -> None:
    found = TestsRun(
        RunStatus.FINISHED, {"g.py::test_it": PASSED}, isolation=Isolation(refused_imports=("a",))
    )
    assert error_of(AREA + TEST, found, ORIGINAL) == (ErrorCategory.IMPORT_ERROR, ErrorKind.NONE)


def test_half_of_the_instances_pass() -> None:
    bad = TestRun(Outcome.FAILED, raised=Raised("builtins.AssertionError", ""), phase="call")
    original = run(**{"test_it[0]": PASSED, "test_it[1]": PASSED})
    assert compare_tests([original], run(**{"test_it[0]": PASSED, "test_it[1]": bad})).pass_rate == 50


def test_guards_are_told_apart() -> None:
    guarded = AREA + "if __name__ == '__main__':\n    assert area(1) > 3\n"
    assert main_guard_added(guarded, TEST)
    assert not main_guard_added(guarded, guarded)
    assert moved_under_guard(guarded, TEST, "test_it")
    assert not moved_under_guard(guarded + TEST, TEST, "test_it")
    assert not moved_under_guard(AREA, TEST, "test_it")


@pytest.mark.parametrize(
    ("test", "guards"),
    [
        ("__name__ == '__main__'", True),
        ("'__main__' == __name__", True),
        ("__name__ != '__main__'", False),
        ("__name__ in '__main__'", False),
        ("__name__ == '__main__' == __name__", False),
        ("__name__ == 'main'", False),
    ],
)
def test_a_guard_compares_for_equality(test: str, guards: bool) -> None:
    guarded = AREA + f"if {test}:\n    assert area(1) > 3\n"
    assert bool(main_guard_added(guarded, TEST)) is guards


@pytest.mark.parametrize(
    ("gist", "runs"),
    [
        ("if TYPE_CHECKING:\n    import a\n", False),
        ("if typing.TYPE_CHECKING and x:\n    import a\n", False),
        ("if not TYPE_CHECKING:\n    import a\n", True),
        ("if not not TYPE_CHECKING:\n    import a\n", False),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import a\n", True),
        ("if not TYPE_CHECKING:\n    pass\nelse:\n    import a\n", False),
        ("if TYPE_CHECKING:\n    pass\nelif x:\n    import a\n", True),
        ("if TYPE_CHECKING or x:\n    import a\n", True),
        ("if not TYPE_CHECKING or x:\n    pass\nelse:\n    import a\n", False),
        ("if x == TYPE_CHECKING:\n    import a\n", True),
        ("try:\n    import a\nexcept* ValueError:\n    pass\n", True),
        ("match x:\n    case 1:\n        import a\n", True),
        ("def f():\n    import a\n", False),
    ],
)
def test_imports_that_no_type_checker_needs_are_found(gist: str, runs: bool) -> None:
    assert owned_imports(gist, {"a"}) == (["import a"] if runs else [])


def test_mutants_break_one_function_each_and_keep_line_numbers() -> None:
    gist = AREA + "class A:\n    def go(self):\n        x = 1\n        return x\n" + TEST
    mutants = dict(vacuity_mutants(gist, [1, 2, 3, 4, 5, 6, 7, 8, 9], "test_it"))
    assert list(mutants) == ["A.go", "area"]
    assert "        return object()\n\ndef test_it" in mutants["A.go"]
    for text in mutants.values():
        assert len(text.splitlines()) == len(gist.splitlines())
        compile(text, "<mutant>", "exec")
    assert dict(vacuity_mutants(gist, [1, 2, 4], "test_it")) == {}


def test_a_file_that_does_not_parse_is_left_out_and_named() -> None:
    originals = Originals({"bad.py": "print 1\n", "a.py": AREA})
    assert originals.unparsed == ["bad.py"]
    assert line_existence(AREA, originals).rate == 100


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        ("AssertionError", ErrorKind.ASSERTION),
        ("builtins.AssertionError", ErrorKind.ASSERTION),
        ("_pytest.outcomes.Failed", ErrorKind.ASSERTION),
        ("shop.PaymentFailed", ErrorKind.EXCEPTION),
        ("PaymentFailed", ErrorKind.EXCEPTION),
        ("shop.NoAssertionError", ErrorKind.EXCEPTION),
    ],
)
def test_only_an_assertion_is_an_assertion(raised: str, kind: ErrorKind) -> None:
    test = TestRun(Outcome.FAILED, raised=Raised(raised, "no"), phase="call")
    found = run(test_it=test)
    error = gist_error(AREA + TEST, "test_it", ("pkg",), found, compare_tests([run(test_it=PASSED)], found))
    assert error is not None
    assert error.kind is kind
    if not raised.endswith(".Failed"):
        program = CommandRun(RunStatus.FINISHED, 1, raised=Raised(raised, "no"))
        fidelity = compare_commands([CommandRun(RunStatus.FINISHED)], program)
        error = gist_error(AREA, "", ("pkg",), program, fidelity)
        assert error is not None
        assert error.kind is kind
