"""Success by the metrics of tasks and by the number of corruptions (Breakpoint, figures 3a and 4)."""

from __future__ import annotations

from math import exp
from random import Random
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from study_rows import World, attempt_row, declared, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.corruptions import cochran_armitage
from gistpoint.core.analysis.findings import Curve, Findings, Hexagons, Number
from gistpoint.core.analysis.firth import fit_logit
from gistpoint.core.analysis.samples import FOUND, measuring, pools
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.rows import AttemptRow


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def attempts(tasks: int, slopes: dict[str, float], seed: int = 1) -> StudyData:
    """Return attempts of two models at `tasks` tasks per mode.

    Success depends on two metrics, with the slope that `slopes` gives for each mode.
    """
    draw = Random(seed)
    rows: list[AttemptRow] = []
    metrics = {}
    for mode, slope in slopes.items():
        for place in range(tasks):
            name, z = f"{mode}-{place}", draw.gauss(0, 1)
            metrics[name] = {"code_lines": 40 + 10 * z, "harmonic_out": draw.random()}
            for solver, ability in (("model-x", 0.4), ("model-y", -0.4)):
                solved = draw.random() < 1 / (1 + exp(-(ability + slope * z)))
                rows.append(attempt_row(task=name, solved=solved, solver=solver, mode=mode))
    return study_data(rows, metrics=metrics)


def test_the_slopes_come_back_and_differ_between_modes_where_they_do() -> None:
    found = run("bp-4", attempts(120, {"remove": -1.0, "discovery": 0.0}))
    slope = found.numbers["models/remove/code_lines + harmonic_out/code_lines"]
    assert slope.value is not None
    assert slope.low is not None
    assert slope.high is not None
    assert slope.iid is not None
    assert slope.low < -1.0 < slope.high
    assert (slope.persons, slope.tasks, slope.rows) == (0, 120, 240)
    flat = found.numbers["models/discovery/code_lines/code_lines"]
    assert flat.low is not None
    assert flat.high is not None
    assert flat.low < 0 < flat.high
    crossed = found.numbers["models/code_lines x discovery"]
    assert crossed.low is not None
    assert crossed.high is not None
    assert 0 < crossed.low < 1.0 < crossed.high
    assert {table.title for table in found.tables} == {"Success against difficulty, by mode", "Metric x mode"}


def test_each_model_is_made_with_and_without_the_solvers_mean() -> None:
    data = attempts(40, {"remove": -0.7})
    made = list(run("bp-4", data).tables[0].rows)
    models = {row[1] for row in made}
    assert models == {
        "code_lines",
        "harmonic_out",
        "code_lines + harmonic_out",
        "code_lines + solver's mean",
        "harmonic_out + solver's mean",
        "code_lines + harmonic_out + solver's mean",
    }
    pool = pools(measuring(data, FOUND))[0]
    means = dict(zip(pool.solver_of, pool.solver_means, strict=True))
    assert means["model-x"] == np.mean([row.solved for row in data.rows if row.solver == "model-x"])


def test_the_map_has_the_hexagons_and_the_contours_of_the_joint_regression() -> None:
    (plot,) = run("bp-4", attempts(60, {"remove": -0.8})).plots
    hexagons = next(mark for mark in plot.marks if isinstance(mark, Hexagons))
    assert len(hexagons.z) == 120
    lines = {mark.series: mark for mark in plot.marks if isinstance(mark, Curve)}
    assert set(lines) == {"zero log odds", "75% of difficulty", "95% of difficulty"}
    assert np.mean(lines["95% of difficulty"].x) > np.mean(lines["75% of difficulty"].x)


def test_too_few_outcomes_are_said_and_nothing_is_estimated() -> None:
    rows, _ = World(people=8, tasks=16, per_person=2, cap=300).rows(1)
    metrics = {row.task: {"code_lines": 1.0 * n, "harmonic_out": n % 3} for n, row in enumerate(rows)}
    thin = run("bp-4", study_data(rows, metrics=metrics))
    assert not thin.numbers
    assert not thin.tables
    assert not thin.plots
    assert [one.short for one in thin.not_estimated] == ["attempts not solved"]


def test_separated_outcomes_have_the_penalty_and_say_so() -> None:
    rows = [attempt_row(task=f"t{n}", solved=n < 12, solver="model-x") for n in range(24)]
    metrics = {f"t{n}": {"code_lines": float(n), "harmonic_out": float(n * n % 7)} for n in range(24)}
    found = run("bp-4", study_data(rows, metrics=metrics))
    slope = found.numbers["models/remove/code_lines/code_lines"]
    assert slope.value is not None
    assert -10 < slope.value < 0
    assert "Firth" in slope.note
    assert found.tables[0].rows[0][6:9] == (pytest.approx(found.tables[0].rows[0][6]), None, None)


def corrupted(people: int, by_count: dict[int, float], seed: int = 1) -> StudyData:
    """Return attempts at discovery tasks with k corruptions, five tasks each.

    `by_count` gives the rate of solved ones for each k.
    """
    draw = Random(seed)
    rows, tasks = [], {}
    for k, chance in by_count.items():
        for place in range(5):
            name = f"k{k}-{place}"
            tasks[name] = StudyTask(id=name, mode="discovery", source="railway", corruptions=k)
            for person in range(people):
                solved = draw.random() < chance
                rows.append(
                    attempt_row(
                        f"P{person}",
                        name,
                        solved,
                        mode="discovery",
                        condition_key=f"32/8/{'discovery-1' if k == 1 else 'several-1'}",
                        found=1.0 if solved or place < 3 else 0.5,
                    )
                )
    return study_data(rows, tasks=tasks)


def test_success_by_number_of_corruptions_takes_both_templates_together() -> None:
    found = run("bp-3a", corrupted(8, {1: 0.8, 2: 0.5, 4: 0.1}))
    rates = [found.numbers[f"people, alone (16/4)/{k}"].value for k in (1, 2, 4)]
    assert all(rate is not None for rate in rates)
    assert rates == sorted(rates, key=lambda rate: -(rate or 0))
    slope = found.numbers["people, alone (16/4)/slope"]
    assert slope.value is not None
    assert slope.value < -0.5
    assert slope.high is not None
    assert slope.high < 0
    assert "discovery-1" in found.notes[0]
    assert "several-1" in found.notes[0]
    by_k = {row[1]: row for row in found.tables[0].rows}
    solved, by_tests, all_found, both = by_k[4][3:]
    assert isinstance(solved, Number)
    assert isinstance(by_tests, Number)
    assert by_tests.value == solved.value  # the simulated passes were not asked about
    assert isinstance(all_found, Number)
    assert isinstance(both, Number)
    assert solved.value == both.value
    assert (all_found.value or 0) >= 0.6


def test_unlike_budgets_are_not_taken_together() -> None:
    data = corrupted(8, {1: 0.8, 2: 0.5})
    rows = [attempt_row("X", "k2-0", False, mode="discovery", tool_use_budget=32, submission_budget=8)]
    found = run("bp-3a", StudyData(data.study, data.ledger, data.tasks, (*data.rows, *rows)))
    assert {"/".join(key.split("/")[:2]) for key in found.numbers} == {"people, alone (16/4)"}


def test_one_number_of_corruptions_is_no_figure() -> None:
    assert run("bp-3a", corrupted(4, {1: 0.5})).empty


def test_the_trend_is_that_of_statsmodels() -> None:
    counts = [(1, 18, 20), (2, 11, 20), (3, 9, 20), (4, 1, 15)]
    table = sm.stats.Table(np.array([[s, n - s] for _, s, n in counts]))
    theirs: Any = table.test_ordinal_association(
        row_scores=np.array([1, 2, 3, 4]), col_scores=np.array([1, 0])
    )
    # statsmodels fixes both margins, so its variance has N - 1 where Armitage's has N.
    scale = (75 / 74) ** 0.5
    assert cochran_armitage(counts) == pytest.approx(theirs.zscore * scale, rel=1e-9)
    assert cochran_armitage([(1, 5, 5), (2, 5, 5)]) == 0


def test_the_slope_on_corruptions_is_recovered() -> None:
    """The slope -0.6 is estimated from 20,000 attempts within two standard errors."""
    draw = np.random.default_rng(4)
    k = draw.integers(1, 5, 20_000)
    solved = draw.random(20_000) < 1 / (1 + np.exp(-(1.0 - 0.6 * k)))
    made = fit_logit(np.column_stack([np.ones(20_000), k]).astype(float), solved.astype(float))
    assert made is not None
    assert abs(made.coefficients[1] + 0.6) < 2 * made.standard_errors[1]


def test_people_are_pooled_with_people_of_the_same_condition_alone() -> None:
    rows = [
        attempt_row("A", "t1"),
        attempt_row("A", "t2", condition="assisted"),
        attempt_row(task="t1", solver="x"),
    ]
    rows += [attempt_row(task="t1", solver="y")]
    data = study_data(rows, study=declared())
    assert [(pool.label, len(pool.rows)) for pool in pools(measuring(data, FOUND))] == [
        ("people, alone", 1),
        ("people, assisted", 1),
        ("models", 2),
    ]


def test_discovery_of_several_corruptions_is_a_mode_of_its_own() -> None:
    data = corrupted(2, {1: 0.5, 3: 0.5})
    assert [(group.mode, len(group.tasks)) for group in measuring(data, FOUND)] == [
        ("discovery", 5),
        ("several", 5),
    ]
