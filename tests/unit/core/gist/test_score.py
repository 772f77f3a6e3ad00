"""All metrics of one gist together, including failures checked by hand."""

from __future__ import annotations

from gistpoint.core.entrypoints.runs import CommandRun, Isolation, Raised, TestRun, TestsRun
from gistpoint.core.kinds.gist.failures import ErrorCategory, ErrorKind
from gistpoint.core.kinds.gist.original_test import GistTest, splice_test
from gistpoint.core.kinds.gist.rates import Originals
from gistpoint.core.kinds.gist.score import (
    GistRun,
    GistScore,
    evidence_rows,
    line_evidence,
    read_evidence,
    score_gist,
    score_record,
)
from gistpoint.core.outcomes import Outcome, RunStatus

AREA = "import math\ndef area(r):\n    return math.pi * r * r\n"
BODY = "def test_it():\n    assert area(1) > 3\n"
TEST = GistTest("test_it", "from a import area\n" + BODY)
REPO = Originals({"a.py": AREA, "test_a.py": TEST.source})
EVERYTHING = frozenset(range(1, 50))
PASSED = TestRun(Outcome.PASSED)
CLEAN = Isolation()


def outcome_of(test: TestRun | None = PASSED, isolation: Isolation = CLEAN, **more: TestRun) -> TestsRun:
    tests = {"gist.py::test_it": test} if test else {}
    error = None if test else Raised("NameError", "name 'functools' is not defined")
    return TestsRun(RunStatus.FINISHED, {**tests, **more}, error, isolation)


def score(gist: str, run: TestsRun, original: TestsRun | None = None) -> GistScore:
    text = splice_test(gist, TEST.source, "test_it", {"a"}).text
    made = GistRun(text, run, [original or outcome_of()], EVERYTHING)
    return score_gist(gist, made, REPO, {"a"}, TEST)


def test_a_faithful_gist() -> None:
    found = score(AREA + BODY, outcome_of())
    assert (found.execution_fidelity, found.self_contained, found.error) == (1, True, None)
    assert found.existence is not None
    assert found.execution is not None
    assert found.test is not None
    assert (found.existence.rate, found.execution.rate, found.test.recall) == (100, 100, 100)
    assert found.flags.mocked == ""
    assert not found.flags.test_changed


def test_a_gist_that_imports_the_codebase() -> None:
    found = score("from a import area\n" + BODY, outcome_of(None, Isolation(("a",))))
    assert found.error is not None
    assert found.error.category is ErrorCategory.IMPORT_ERROR
    assert (found.execution_fidelity, found.self_contained, found.execution) == (0, False, None)


def test_no_gist_and_no_test() -> None:
    empty = score_gist("", None, REPO, {"a"}, TEST)
    assert empty.error is not None
    assert empty.error.category is ErrorCategory.FILE_CREATION
    guarded = score_gist(
        AREA + "if __name__ == '__main__':\n    assert area(1) > 3\n", None, REPO, {"a"}, TEST
    )
    assert guarded.error is not None
    assert guarded.error.category is ErrorCategory.MISSING_TEST
    assert guarded.flags.main_guard_added
    assert guarded.flags.test_moved_under_guard
    assert (guarded.execution_fidelity, guarded.execution) == (0, None)


def test_a_name_missing_at_collection() -> None:
    found = score(AREA + BODY, outcome_of(None))
    assert found.error is not None
    assert (found.error.category, found.error.kind) == (ErrorCategory.PYTEST_RUNTIME, ErrorKind.COLLECTION)


def test_output_that_differs_keeps_the_pass_rate() -> None:
    found = score("print('x')\n" + AREA + BODY, outcome_of(TestRun(Outcome.PASSED, "x\n")))
    assert found.error is not None
    assert found.error.kind is ErrorKind.WRONG_OUTPUT
    assert found.fidelity is not None
    assert (found.execution_fidelity, found.fidelity.pass_rate) == (0, 100)


def test_failing_alike_is_faithful() -> None:
    failing = TestRun(Outcome.FAILED, raised=Raised("AssertionError", "assert 2 > 3"), phase="call")
    assert score(AREA + BODY, outcome_of(failing), outcome_of(failing)).execution_fidelity == 1


def test_a_fake_is_scored_by_outcome_and_flagged() -> None:
    gist = "import sys, types\nsys.modules['a'] = types.ModuleType('a')\n" + AREA + BODY
    entry = Isolation(stand_ins=(("sys.modules['a']", "builtins.module"),))
    found = score(gist, outcome_of(isolation=entry))
    assert found.execution_fidelity == 1
    assert found.flags.mocked == "sys.modules['a'] is builtins.module"
    equal = score(gist, outcome_of(isolation=Isolation(equal_to_all=("Any.__eq__",))))
    assert (equal.flags.mocked, equal.flags.equal_to_all) == ("", "Any.__eq__")
    assert score_record(equal)["flags"]["equal_to_all"] == "Any.__eq__"


def test_a_changed_test_cannot_help() -> None:
    gist = AREA + "def test_it():\n    assert True\n"
    text = splice_test(gist, TEST.source, "test_it", {"a"}).text
    assert BODY in text
    found = score(gist, outcome_of())
    assert found.flags.test_changed
    assert found.existence is not None
    assert found.existence.rate == 100


def test_a_command_has_no_test_metrics() -> None:
    run = CommandRun(RunStatus.FINISHED, 0, "6\n")
    gist = AREA + "if __name__ == '__main__':\n    print(6)\n"
    found = score_gist(gist, GistRun(gist, run, [run], EVERYTHING), REPO, {"a"})
    assert (found.execution_fidelity, found.test, found.flags.main_guard_added) == (1, None, False)


def test_a_read_of_the_codebase_is_not_self_contained() -> None:
    found = score(AREA + BODY, outcome_of(isolation=Isolation(original_reads=("/repo/a.py",))))
    assert (found.self_contained, found.error) == (False, None)


def test_evidence_and_record_of_folded_lines() -> None:
    gist = AREA.replace("import math\n", "import math; import math\n").replace(
        "    return", "    if r < 0: raise E\n    return"
    )
    text = splice_test(gist + BODY, TEST.source, "test_it", {"a"})
    ran = EVERYTHING - {5}  # `raise E` is on line 5 of the text that is run
    made = GistRun(text.text, outcome_of(), [outcome_of()], ran)
    found = score_gist(gist + BODY, made, REPO, {"a"}, TEST)
    evidence = line_evidence(found, text)
    assert read_evidence(evidence_rows(evidence)) == evidence
    assert [(one.first, one.ran, one.exists) for one in evidence] == [
        (1, True, True), (1, True, True), (2, True, True), (3, True, False), (3, False, False), (4, True, True),
    ]  # fmt: skip
    record = score_record(found)
    assert record["line_execution"]["executed"] == 6
    assert record["line_execution"]["executable"] == 7
    assert record["line_execution"]["paper"] == {
        "rate": 100, "rate_without_test": 100, "executed": 8, "executable": 8,
    }  # fmt: skip
    assert (record["line_existence"]["existing"], record["line_existence"]["lines"]) == (5, 7)
    assert (record["line_existence"]["paper"]["existing"], record["line_existence"]["paper"]["lines"]) == (
        6,
        8,
    )
