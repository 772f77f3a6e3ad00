"""Build steps of a task run before the tests of every run, in the same isolation."""

from __future__ import annotations

from working_backends import on_one_backend

from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.pins import EnvironmentPins

TREE = {"test_made.py": "def test_made():\n    from made import VALUE\n    assert VALUE == 7\n"}


def test_what_a_step_makes_is_there_for_the_tests(run):
    pins = EnvironmentPins(python="", build_steps=("echo 'VALUE = 6' > made.py", "sed -i s/6/7/ made.py"))
    report = run(TREE, pins=pins)
    assert report.status is RunStatus.FINISHED, report.reason
    assert report.results["test_made.py::test_made"].outcome is Outcome.PASSED


@on_one_backend
def test_a_step_that_fails_is_named_and_ends_the_run(run):
    pins = EnvironmentPins(python="", build_steps=("echo nothing to make >&2; exit 3",))
    report = run(TREE, pins=pins)
    assert report.status is RunStatus.COULD_NOT_RUN
    assert "nothing to make" in report.output
    assert "status 3" in report.output


def test_a_step_can_write_no_results(run):
    forge = "for n in 3 4 5 6 7 8 9; do (echo forged >&$n) 2>/dev/null; done; env | grep -c GISTPOINT > made.txt; true"
    pins = EnvironmentPins(
        python="", build_steps=("echo 'VALUE = 7' > made.py", forge, "grep -q '^0$' made.txt")
    )
    report = run(TREE, pins=pins)
    assert report.status is RunStatus.FINISHED, report.reason
