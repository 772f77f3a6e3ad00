"""The prediction-powered prevalence against numpy and closed forms, and its coverage with scripted judges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from studies.prevalence_coverage import Cell, drawn, halved, simulated

from gistpoint.core.analysis.prevalence import (
    LEAST_LABELLED_TASKS,
    JudgedRun,
    counts_by_task,
    prevalence,
    prevalence_of,
)
from gistpoint.core.estimates import cohen_kappa

RUNS = [
    JudgedRun(
        f"task {number % 8}",
        number % 3 == 0,
        (number % 3 == 0) ^ (number % 11 == 0) if number % 4 == 1 else None,
        again=number % 3 == 0 if number % 8 == 1 else None,
    )
    for number in range(120)
]


def random_runs(seed: int) -> list[JudgedRun]:
    """Return runs with labels on a random part, on which the judge's share differs from the other runs'."""
    draw = np.random.default_rng(seed)
    truth = draw.random(200) < 0.3
    wrong, labelled = draw.random(200) < 0.2, draw.random(200) < 0.15 + 0.2 * truth
    return [
        JudgedRun(
            f"task {number % 20}",
            bool(truth[number] ^ wrong[number]),
            bool(truth[number]) if labelled[number] else None,
        )
        for number in range(200)
    ]


def second_witness(runs: list[JudgedRun]) -> float:
    """Return the estimate by the formula of PPI++ for a mean, from arrays of runs instead of counts."""
    mine = [run for run in runs if run.label is not None]
    label = np.array([run.label for run in mine], dtype=float)
    judge = np.array([run.judged for run in mine], dtype=float)
    rest = np.array([run.judged for run in runs if run.label is None], dtype=float)
    spread = np.var(np.concatenate([judge, rest]), ddof=1)
    weight = np.cov(label, judge, ddof=0)[0, 1] / ((1 + len(label) / len(rest)) * spread)
    weight = np.clip(weight, 0, 1)
    return float((label - weight * judge).mean() + weight * rest.mean())


@pytest.mark.parametrize("seed", range(20))
def test_the_estimate_is_that_of_a_second_implementation(seed: int) -> None:
    runs = random_runs(seed)
    assert prevalence(runs).value == pytest.approx(second_witness(runs), rel=1e-12)
    assert 0 < prevalence(runs).weight < 1
    assert prevalence(runs).value != pytest.approx(prevalence(runs, alone=True).value, rel=1e-3)


def test_without_the_judge_it_is_the_share_of_labels() -> None:
    labels = [run.label for run in RUNS if run.label is not None]
    assert prevalence(RUNS, alone=True).value == pytest.approx(sum(labels) / len(labels))
    assert prevalence(RUNS, alone=True).weight == 0


def test_a_judge_that_finds_the_label_everywhere_has_no_weight() -> None:
    """The judge finds the label everywhere, so only the person's labels are informative."""
    blind = [JudgedRun(run.task, True, run.label) for run in RUNS]
    labels = [run.label for run in RUNS if run.label is not None]
    found = prevalence(blind)
    assert found.value == pytest.approx(sum(labels) / len(labels))
    assert (found.judged, found.weight, found.squared_correlation) == (120, 0, None)


def test_labels_on_all_runs_need_no_judge() -> None:
    whole = [JudgedRun(f"task {number % 9}", number % 2 == 0, number % 3 == 0) for number in range(60)]
    assert prevalence(whole).value == pytest.approx(1 / 3)


def test_agreement_is_counted_over_the_labels() -> None:
    found = prevalence(RUNS)
    mine = [run for run in RUNS if run.label is not None]
    assert found.kappa == cohen_kappa((run.judged, run.label) for run in mine)
    twice = [run for run in RUNS if run.again is not None]
    assert found.read_again == len(twice) == 15
    assert found.kappa_again == cohen_kappa((run.label, run.again) for run in twice)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([JudgedRun(f"t{n}", True) for n in range(50)], "no labels"),
        (
            [JudgedRun(f"t{n % 4}", n % 2 == 0, n % 2 == 0 if n < 40 else None) for n in range(80)],
            f"labels in 4 tasks, and {LEAST_LABELLED_TASKS} tasks are needed",
        ),
        (
            [JudgedRun(f"t{n}", n % 10 == 0, n % 10 == 0 if n < 40 else None) for n in range(200)],
            "among 40 labels, 4.0 runs with the label are expected, and 5 are needed",
        ),
        (
            [JudgedRun(f"t{n}", n % 10 > 0, n % 10 > 0 if n < 40 else None) for n in range(200)],
            "among 40 labels, 4.0 runs without the label are expected, and 5 are needed",
        ),
    ],
)
def test_too_few_labels_give_no_interval(runs: list[JudgedRun], words: str) -> None:
    found = prevalence(runs)
    assert (found.low, found.high, found.too_few) == (None, None, words)


def test_labels_that_would_give_an_interval_are_counted() -> None:
    runs = [JudgedRun(f"t{n}", n % 10 == 0, n % 10 == 0 if n < 40 else None) for n in range(200)]
    assert prevalence(runs).more_labels == 10
    unread = [JudgedRun(f"t{n}", n % 10 == 0) for n in range(200)]
    assert prevalence(unread).more_labels == 50  # by the judge's share
    never = [JudgedRun(f"t{n}", False) for n in range(200)]
    assert prevalence(never).more_labels is None
    enough = [JudgedRun(f"t{n}", n % 10 == 0, n % 10 == 0 if n < 50 else None) for n in range(200)]
    assert prevalence(enough).too_few == ""


def test_a_judge_that_agreed_by_chance_is_not_held_for_perfect() -> None:
    """20 labels, all equal to the judge's, on 2,000 runs: the variance of the difference is unobserved."""
    counts = np.array([[1.0, n % 2, n % 2, n % 2, 99.0, 49.0 + n % 2] for n in range(20)])
    found = prevalence_of(counts)
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.15


def test_the_interval_is_symmetric_in_the_log_odds() -> None:
    found = prevalence_of(drawn(Cell("forty", 60, 0.3, 0.8, 0.2), np.random.default_rng(1)))
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    low, middle, high = (math.log(share / (1 - share)) for share in (found.low, found.value, found.high))
    assert middle - low == pytest.approx(high - middle)


def test_counts_are_those_of_the_tasks() -> None:
    assert counts_by_task(RUNS).sum() > 0
    assert len(counts_by_task(RUNS)) == 8
    assert counts_by_task(RUNS)[:, [0, 4]].sum() == 120
    assert counts_by_task([]).shape == (0, 6)
    assert prevalence([]).too_few == "no labels"


@pytest.mark.parametrize(
    "cell",
    [Cell("forty", 60, 0.1, 0.8, 0.2), Cell("six", 30, 0.3, 0.6, 0.2), Cell("hundred", 20, 0.3, 0.95, 0.0)],
)
def test_intervals_hold_the_truth(cell: Cell) -> None:
    found = simulated(cell, 300)
    assert found.covered > 0.92 - 3 * math.sqrt(0.08 * 0.92 / 150)
    assert found.too_few < 0.55


def test_a_good_judge_narrows_the_interval() -> None:
    assert simulated(Cell("forty", 60, 0.3, 0.95, 0.0), 100).width < 0.8
    assert simulated(Cell("forty", 60, 0.3, 0.95, 0.0), 100).shortfall == ""


def test_the_labels_said_to_halve_the_interval_halve_it() -> None:
    found = halved(Cell("hundred", 30, 0.3, 0.75, 0.0), 60)
    assert found is not None
    assert 0.4 < found[1] < 0.6
    assert halved(Cell("six", 30, 0.3, 0.75, 0.2), 60) is None
