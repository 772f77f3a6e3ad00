"""Analyses are run one by one; a failing one is reported without paths on this machine."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from study_rows import World, study_data

from gistpoint.core.analysis.catalogue import analyses
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.running import PRIMARY, chosen, run_analyses
from gistpoint.core.errors import CancelledError
from gistpoint.core.kinds.measures import Analysis
from gistpoint.core.running import CancelToken, RunContext, RunProgress
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.operations import StudyError


def works(data: StudyData) -> Findings:
    return Findings({"x": Number(float(len(data.rows)))})


def fails(data: StudyData) -> Findings:
    raise FileNotFoundError(2, "No such file", "/home/somebody/secret")


def lacks_a_package(data: StudyData) -> Findings:
    raise ModuleNotFoundError("No module named 'lifelines'", name="lifelines")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Analysis]:
    module = ModuleType("analyses_of_a_test")
    functions = (works, fails, lacks_a_package)
    module.__dict__.update({function.__name__: function for function in functions})
    monkeypatch.setitem(sys.modules, "analyses_of_a_test", module)
    return {
        f.__name__: Analysis(f.__name__, f.__name__, "", f"analyses_of_a_test:{f.__name__}")
        for f in functions
    }


def test_one_that_fails_leaves_the_others_alone(made: dict[str, Analysis]) -> None:
    broken, whole = run_analyses(World().data(1), [made["fails"], made["works"]])
    assert broken.failed.startswith("FileNotFoundError: No such file (in fails, line ")
    assert "somebody" not in broken.failed
    assert broken.printed
    assert whole.findings.numbers["x"].value == 72


def test_a_missing_extra_is_an_error_with_the_line_that_installs_it(made: dict[str, Analysis]) -> None:
    with pytest.raises(StudyError, match="lifelines") as caught:
        run_analyses(study_data(), [made["lacks_a_package"]])
    assert "gistpoint[study]" in caught.value.hint


def test_progress_is_told_before_each_and_a_cancelled_run_stops(made: dict[str, Analysis]) -> None:
    token, seen = CancelToken(), []

    def tell(progress: RunProgress) -> None:
        seen.append((progress.done, progress.total, progress.step))
        token.cancel()

    with pytest.raises(CancelledError):
        run_analyses(study_data(), [made["works"], made["works"]], RunContext(token, tell))
    assert seen == [(0, 2, "1 of 2: works")]


def test_analyses_are_chosen_by_id_in_the_order_of_the_catalogue(made: dict[str, Analysis]) -> None:
    known = tuple(made.values())
    assert [one.id for one in chosen(["fails", "works"], known)] == ["works", "fails"]
    assert chosen([], known) == known
    with pytest.raises(StudyError, match="Did you mean 'works'"):
        chosen(["workz"], known)


def test_the_confirmatory_analysis_is_one_of_the_catalogue() -> None:
    assert PRIMARY in {known.id for known in analyses()}
