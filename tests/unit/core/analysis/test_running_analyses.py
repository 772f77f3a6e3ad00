"""Analyses are run one by one; a failing one is reported without paths on this machine."""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random
from types import ModuleType

import msgspec
import numpy as np
import pytest
from study_rows import World, attempt_row, study_data

from gistpoint.core.analysis.catalogue import analyses
from gistpoint.core.analysis.difficulty_curves import resampled
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.horizon import Timed, bootstrap
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


def test_no_number_depends_on_the_order_of_the_rows() -> None:
    world = World(
        people=10, tasks=14, per_person=12, cap=25.0, assisted=True, metric_slope=0.5, model_rate=0.5
    )
    rows, metrics = world.rows(3)
    repeats = [attempt_row(task=row.task, solver="model-x", attempt=f"again-{row.task}", solved=place % 3 > 0)
               for place, row in enumerate(rows) if row.solver]  # fmt: skip
    data = study_data([*rows, *repeats], metrics=metrics)
    known = [one for one in analyses() if one.id != "time-mixed"]
    found = run_analyses(data, known)
    assert {"bp-5", "horizon"} <= {ran.analysis.id for ran in found if ran.findings.numbers}
    for seed in range(2):
        mixed = list(data.rows)
        Random(seed).shuffle(mixed)
        again = run_analyses(replace(data, rows=tuple(mixed)), known)
        # Text rather than values: NaN is not equal to itself.
        assert [repr(ran) for ran in again] == [repr(ran) for ran in found]


@pytest.mark.parametrize("seed", range(3))
def test_a_bootstrap_does_not_depend_on_names_or_places(seed: int) -> None:
    rows = [
        attempt_row(task=f"t{n % 10}", solver="m", attempt=f"a{n}", solved=n % 3 > 0, source=f"lib{n % 4}")
        for n in range(30)
    ]
    renamed = [msgspec.structs.replace(row, attempt=f"b{-place:03}") for place, row in enumerate(rows)]
    Random(seed).shuffle(renamed)
    minutes = {f"t{n}": 2.0 + 3 * n for n in range(10)}
    assert bootstrap(Timed.of(rows, minutes), 7, 50) == bootstrap(Timed.of(renamed, minutes), 7, 50)
    z, y = np.array([minutes[row.task] for row in rows]), np.array([float(row.solved) for row in rows])
    mixed = np.random.default_rng(seed).permutation(30)
    one, other = (resampled(z[at], y[at], 7, np.array([-1.0, 1.0])) for at in (np.arange(30), mixed))
    assert np.array_equal(one[0], other[0])
    assert one[1] == other[1]
