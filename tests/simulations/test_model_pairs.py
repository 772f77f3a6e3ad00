"""Paired differences between models, by hand and against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from study_rows import attempt_row, study_data

from gistpoint.core.analysis.model_pairs import Paired, differences_of_models
from gistpoint.core.analysis.power import PowerAssumptions, PowerDesign, power_of
from gistpoint.core.study.data import StudyData


def drawn(seed: int, tasks: int = 40, libraries: int = 8, runs: int = 2) -> StudyData:
    draw = np.random.default_rng(seed)
    level, rows = draw.normal(0, 1.0, tasks), []
    for name, shift in (("a", 0.8), ("b", 0.0)):
        for task in range(tasks):
            for run in range(runs):
                solved = bool(draw.random() < 1 / (1 + np.exp(-(level[task] + shift))))
                rows.append(
                    attempt_row(task=f"t{task:02}", solved=solved, solver=name, source=f"lib{task % libraries}",
                                attempt=f"{name}-{task}-{run}")
                )  # fmt: skip
    return study_data(rows)


def shares(data: StudyData, name: str) -> np.ndarray:
    tasks = sorted({row.task for row in data.rows})
    return np.array(
        [
            np.mean([row.solved for row in data.rows if row.solver == name and row.task == task])
            for task in tasks
        ]
    )


def test_one_library_has_the_paired_interval_of_miller() -> None:
    data = drawn(1, libraries=1)
    number = differences_of_models(data).numbers["a minus b/remove"]
    one, other = shares(data, "a"), shares(data, "b")
    error = np.std(one - other, ddof=1) / 40**0.5
    assert number.value == pytest.approx(np.mean(one - other))
    assert number.high == pytest.approx(number.value + 2.02 * error, abs=0.02 * error + 1e-3)
    unpaired = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 40)
    assert number.iid == pytest.approx(
        (number.value - 1.96 * unpaired, number.value + 1.96 * unpaired), abs=1e-4
    )
    assert number.iid_label == "unpaired"
    assert (number.tasks, number.rows) == (40, 160)


def test_libraries_are_clusters() -> None:
    """Statsmodels has the sandwich estimate with few clusters' correction; the jackknife is at least as wide."""
    import statsmodels.api as sm

    data = drawn(2)
    one, other = shares(data, "a"), shares(data, "b")
    number = differences_of_models(data).numbers["a minus b/remove"]
    fit = sm.OLS(one - other, np.ones(40)).fit(cov_type="cluster", cov_kwds={"groups": np.arange(40) % 8})
    assert number.high is not None
    assert number.value is not None
    half = number.high - number.value
    assert half >= 1.96 * fit.bse[0]
    assert half == pytest.approx(2.36 * fit.bse[0], rel=0.25)


def test_the_correlation_is_pearson_s() -> None:
    data = drawn(3)
    found = differences_of_models(data).numbers["a minus b/remove/correlation"]
    assert found.value == pytest.approx(np.corrcoef(shares(data, "a"), shares(data, "b"))[0, 1])


def test_only_shared_tasks_count_and_there_must_be_three() -> None:
    rows = [attempt_row(task=f"t{n}", solved=n % 2 == 0, solver="a") for n in range(5)]
    rows += [attempt_row(task=f"t{n}", solved=True, solver="b") for n in range(3, 9)]
    found = differences_of_models(study_data(rows))
    assert not found.numbers
    assert "at least 3 tasks attempted by both, and there are 2" in found.not_estimated[0].words
    paired = Paired.of(rows[:5], rows[5:])
    assert paired.correlation is None


def test_power_with_repeats_is_that_of_miller() -> None:
    """Repeats reduce the variance within tasks alone: the half-width follows from both parts."""
    design = {"people": 8, "each": 4, "tasks": 60, "contrast": True, "with_model": True, "models": True}
    once, often = (
        power_of(PowerDesign(**design, repeats=repeats), PowerAssumptions(effect=0.2), 1, draws=60)  # type: ignore[arg-type]
        for repeats in (1, 8)
    )
    assert once.half_width is not None
    assert often.half_width is not None
    draw = np.random.default_rng(1)
    ease = draw.normal(0, 1.2, 200_000)
    one, other = (1 / (1 + np.exp(-(ease + m + draw.normal(0, 0.7, len(ease))))) for m in (0.0, 1.24))
    between, within = np.var(one - other), np.mean(one * (1 - one) + other * (1 - other))
    ratio = np.sqrt((between + within / 8) / (between + within))
    assert often.half_width / once.half_width == pytest.approx(ratio, abs=0.06)
    assert often.power is not None
    assert once.power is not None
    assert often.power > once.power
