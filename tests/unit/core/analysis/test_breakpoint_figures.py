"""Further figures of Breakpoint: hard tasks, curves, diagnosis, budgets, submissions, tools, solved tasks."""

from __future__ import annotations

from math import exp, log, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, pearsonr
from scipy.stats import t as student
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from study_rows import attempt_row, declared, study_data

from gistpoint.core.analysis.budgets import solved_by
from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.correlations import fisher_interval, pearson, pearson_p
from gistpoint.core.analysis.diagnosis import calls_until
from gistpoint.core.analysis.difficulty_curves import resampled
from gistpoint.core.analysis.findings import Curve, Findings, Matrix, Number, Points, Violins
from gistpoint.core.analysis.firth import fit_logit
from gistpoint.core.analysis.hard_set import hard_set
from gistpoint.core.analysis.solved_tasks import cohens_d, pairs_implied, rank_test
from gistpoint.core.analysis.task_means import discordant, exact_mcnemar, holm
from gistpoint.core.analysis.tool_use import information_calls
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition, StudyTask
from gistpoint.core.study.rows import AttemptRow, CallRow, SubmissionRow


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def number(value: object) -> Number:
    assert isinstance(value, Number)
    return value


# Hard tasks


def test_the_hard_tasks_of_twenty_made_by_hand() -> None:
    """The library's functions have metrics 1 to 100; their 90th percentile is 90.1, so 91 is hard."""
    functions = tuple({"cyclomatic": float(n), "degree": float(n)} for n in range(1, 101))
    tasks = [
        StudyTask(
            id=f"t{n}", mode="remove", source="railway", metrics={"cyclomatic": 80.0 + n, "degree": 109.0 - n}
        )
        for n in range(20)
    ]
    made = hard_set(tasks, {"railway": functions}, ("cyclomatic", "degree"))
    assert made.hard == {f"t{n}" for n in range(11, 19)}
    assert len(made.rest) == 12
    elsewhere = [
        StudyTask(id="e", mode="remove", source="bridge", metrics={"cyclomatic": 99.0, "degree": 99.0})
    ]
    assert hard_set(elsewhere, {"railway": functions}, ("cyclomatic", "degree")).hard == frozenset()


def test_hard_tasks_against_the_rest_with_difference_and_ratio() -> None:
    functions = tuple({"cyclomatic": float(n), "degree": float(n)} for n in range(1, 101))
    metrics = {f"t{n}": {"cyclomatic": 95.0 if n < 5 else 20.0, "degree": 95.0} for n in range(20)}
    rows = [attempt_row(task=f"t{n}", solved=n % 5 == 0 or n >= 8, solver="model-x") for n in range(20)]
    found = run("bp-3b", study_data(rows, metrics=metrics, candidates={"railway": functions}))
    key = "model-x/remove/cyclomatic and degree"
    assert found.numbers[f"{key}/hard"].value == pytest.approx(1 / 5)
    assert found.numbers[f"{key}/rest"].value == pytest.approx(13 / 15)
    assert found.numbers[f"{key}/difference"].value == pytest.approx(1 / 5 - 13 / 15)
    assert found.numbers[f"{key}/ratio"].value == pytest.approx((1 / 5) / (13 / 15))
    assert found.notes == ("By cyclomatic and degree: 5 hard tasks, 15 others.",)
    few = study_data(rows[3:], metrics=metrics, candidates={"railway": functions})
    thin = run("bp-3b", few)
    assert not thin.numbers
    assert [(one.short, one.has) for one in thin.not_estimated] == [("hard tasks", 2)]


# Curves


def graded(
    tasks: int = 60, slope: float = -1.0, seed: int = 2, **changes: Any
) -> tuple[list[AttemptRow], dict[str, Any]]:
    draw = Random(seed)
    z = {f"t{n}": draw.gauss(0, 1) for n in range(tasks)}
    rows = [
        attempt_row(task=task, solved=draw.random() < 1 / (1 + exp(-slope * at)), solver="model-x", **changes)
        for task, at in z.items()
    ]
    return rows, {task: {"code_lines": 40 + 10 * at, "harmonic_out": draw.random()} for task, at in z.items()}


def test_a_curve_falls_with_difficulty_and_lies_in_its_band() -> None:
    rows, metrics = graded()
    found = run("bp-5", study_data(rows, metrics=metrics))
    plot = next(one for one in found.plots if one.id == "bp-5-code_lines-remove")
    *paper, curve = plot.marks
    assert isinstance(curve, Curve)
    assert list(curve.y) == sorted(curve.y, reverse=True)
    assert all(low < y < high for low, y, high in zip(curve.low, curve.y, curve.high, strict=True))
    lower, upper = (mark.y for mark in paper if isinstance(mark, Curve) and mark.dashed)
    assert all(low < high for low, high in zip(lower, upper, strict=True))


def test_resamples_are_fitted_as_one_by_one_and_those_that_do_not_settle_are_counted() -> None:
    draw = np.random.default_rng(5)
    z = np.sort(draw.normal(size=40))
    y = (draw.random(40) < 1 / (1 + np.exp(z))).astype(float)
    drawn, failed = resampled(z, y, 3, np.linspace(-3, 3, 25))
    assert len(drawn) + failed == 1000
    counts = np.random.default_rng(3).multinomial(40, np.full(40, 1 / 40), size=1000)[0]
    single = fit_logit(
        np.column_stack([np.ones(40), np.repeat(z, 1)]).repeat(counts, axis=0), y.repeat(counts)
    )
    assert single is not None
    assert single.converged
    assert drawn[0][12] == pytest.approx(single.coefficients[0], abs=1e-6)
    separated, lost = resampled(np.arange(10.0), (np.arange(10) > 4).astype(float), 1, np.linspace(-3, 3, 25))
    assert (len(separated), lost) == (0, 1000)


def test_resamples_of_equal_metrics_are_those_of_attempts_one_by_one() -> None:
    draw = np.random.default_rng(4)
    z, y = np.repeat(draw.normal(size=12), 5), (draw.random(60) < 0.4).astype(float)
    order = np.lexsort((y, z))
    z, y = z[order], y[order]
    distinct = z + 1e-13 * np.arange(60)
    places = np.linspace(-2, 2, 5)
    (grouped, lost), (single, lost_alone) = (resampled(one, y, 3, places) for one in (z, distinct))
    assert lost == lost_alone
    assert grouped == pytest.approx(single, rel=1e-9, abs=1e-9)


def budgeted(**by_budget: tuple[int, int]) -> Any:
    return declared(
        condition=tuple(Condition(id=name, tool_uses=a, submissions=b) for name, (a, b) in by_budget.items())
    )


def with_budget(condition: str, budget: tuple[int, int], solved: int, tasks: int = 20) -> list[AttemptRow]:
    return [
        attempt_row(
            task=f"t{n:02}",
            solved=n < solved,
            solver="model-x",
            condition=condition,
            condition_key=f"{budget[0]}/{budget[1]}",
            tool_use_budget=budget[0],
            submission_budget=budget[1],
        )
        for n in range(tasks)
    ]


def test_success_by_budget_is_set_against_16_and_4_within_tasks() -> None:
    study = budgeted(few=(8, 2), standard=(16, 4), many=(32, 8))
    rows = (
        with_budget("few", (8, 2), 6)
        + with_budget("standard", (16, 4), 10)
        + with_budget("many", (32, 8), 14)
    )
    found = run("bp-7", study_data(rows, study=study))
    assert [row[2] for row in found.tables[0].rows] == ["8/2", "16/4", "32/8"]
    assert found.numbers["model-x/remove/8/2 less 16/4"].value == pytest.approx(-0.2)
    assert found.numbers["model-x/remove/32/8 less 16/4"].value == pytest.approx(0.2)
    assert found.tables[0].rows[2][6] == pytest.approx(0.125)
    line = found.plots[0].marks[0]
    assert isinstance(line, Points)
    assert (line.x, line.labels) == ((8.0, 16.0, 32.0), ("8/2", "16/4", "32/8"))


def test_conditions_that_differ_in_more_than_budgets_are_not_on_one_line() -> None:
    study = declared(
        condition=(
            Condition(id="few", tool_uses=8, submissions=2),
            Condition(id="many", tool_uses=32, submissions=8, comforts_off=()),
        )
    )
    rows = with_budget("few", (8, 2), 6) + with_budget("many", (32, 8), 14)
    assert run("bp-7", study_data(rows, study=study)).empty


def test_curves_by_budget() -> None:
    study = budgeted(few=(8, 2), many=(32, 8))
    low, metrics = graded(condition="few", condition_key="8/2", tool_use_budget=8, submission_budget=2)
    high, _ = graded(seed=9, condition="many", condition_key="32/8", tool_use_budget=32, submission_budget=8)
    found = run("bp-9", study_data(low + high, study=study, metrics=metrics))
    assert {key.split("/remove")[0] for key in found.numbers} == {"model-x, 8/2", "model-x, 32/8"}


# Diagnosis


def discovery(task: str, found: float, solved: bool, person: str = "A", **changes: Any) -> AttemptRow:
    return attempt_row(person, task, solved, mode="discovery", found=found, **changes)


def test_finding_and_repairing_by_hand() -> None:
    """Six attempts: five found the function, four changed it, three solved it, which is 3 of 5 found."""
    rows = [
        discovery("t1", 1.0, True, "A", diagnosed=1.0, first_view_s=60.0, calls=calls(10, 20, 70)),
        discovery("t2", 1.0, True, "B", diagnosed=1.0, first_view_s=240.0, calls=calls(30, 100, 200, 239)),
        discovery("t3", 1.0, True, "C", diagnosed=1.0),
        discovery("t1", 1.0, False, "B", diagnosed=1.0),
        discovery("t2", 1.0, False, "C", diagnosed=0.0),
        discovery("t3", 0.0, False, "A", diagnosed=0.0),
    ]
    made = run("bp-6", study_data(rows))
    values = {key.rpartition("/")[2]: value.value for key, value in made.numbers.items()}
    assert values == pytest.approx(
        {"found": 5 / 6, "changed": 4 / 6, "solved": 3 / 6, "solved of found": 3 / 5}
    )
    view = made.tables[1].rows[0]
    assert view[:4] == ("people, discovery", "first view", 2, 6)
    assert number(view[4]).value == pytest.approx(2.0)
    assert number(view[5]).value == pytest.approx(sqrt(3 * 5) - 1)


def calls(*at: float, kind: str = "view") -> tuple[CallRow, ...]:
    return tuple(
        CallRow(number=n, tool="read_file", kind=kind, at_s=when) for n, when in enumerate(at, start=1)
    )


def test_calls_until_a_moment_leave_out_those_that_the_program_made() -> None:
    row = attempt_row(
        "A", calls=(*calls(1, 2, 3), CallRow(number=4, tool="read_file", at_s=1.5, automatic=True))
    )
    assert calls_until(row, 2.0) == 2


# Submissions


def handed_in(task: str, solves: int | None, count: int, person: str = "A", free: int = 0) -> AttemptRow:
    """Return an attempt with `count` submissions, of which number `solves` solves the task.

    They follow `free` submissions that don't count.
    """
    made = [SubmissionRow(number=n, counts=False) for n in range(1, free + 1)]
    made += [SubmissionRow(number=free + n, solved=n == solves) for n in range(1, count + 1)]
    return attempt_row(
        person, task, solves is not None, submitted=tuple(made), submissions=count, minutes=10.0 * count
    )


def test_solved_by_the_nth_submission_by_hand() -> None:
    rows = [
        handed_in("t1", 1, 1, "A"),
        handed_in("t2", 2, 2, "B", free=1),
        handed_in("t3", 2, 2, "C"),
        handed_in("t1", None, 4, "B"),
        handed_in("t2", None, 0, "C"),
    ]
    found = run("bp-8", study_data(rows))
    assert [found.numbers[f"people/remove/{n}"].value for n in (1, 2, 3, 4)] == pytest.approx(
        [0.2, 0.6, 0.6, 0.6]
    )
    assert [plot.id for plot in found.plots] == ["bp-8-remove"], (
        "three solved are too few for a curve over time"
    )
    more = [*rows, *(handed_in(f"t{n}", 1, 1, person) for n, person in ((4, "A"), (5, "B"), (6, "C")))]
    over_time = run("bp-8", study_data(more)).plots[1].marks[0]
    assert isinstance(over_time, Curve)
    assert over_time.y[-1] == pytest.approx(6 / 8)
    assert over_time.y[9] == pytest.approx(4 / 8), "after 10 of 20 minutes"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6)),
        min_size=1,
        max_size=12,
    )
)
def test_what_is_solved_by_n_is_solved_by_more(attempts: list[tuple[int, list[tuple[bool, bool]]]]) -> None:
    rows = [
        attempt_row(
            f"P{place}",
            f"t{task}",
            any(counts and solved for counts, solved in made),
            submitted=tuple(
                SubmissionRow(number=n, counts=counts, solved=solved and counts)
                for n, (counts, solved) in enumerate(made, start=1)
            ),
        )
        for place, (task, made) in enumerate(attempts)
    ]
    for row in rows:
        by = [solved_by(row, n) for n in range(8)]
        assert by == sorted(by)
        assert by[-1] == row.solved
    values = [one.value or 0.0 for one in run("bp-8", study_data(rows)).numbers.values()]
    assert values == sorted(values)


# Tools


def test_calls_for_information_and_by_tool() -> None:
    mine = (
        CallRow(number=1, tool="read_file", kind="view"),
        CallRow(number=2, tool="search_code", kind="search", refused=True),
        CallRow(number=3, tool="replace_function", kind="submit"),
        CallRow(number=4, tool="replace_function", kind="submit", automatic=True),
    )
    foreign = (
        CallRow(number=1, tool="str_replace_editor", kind="view"),
        CallRow(number=2, tool="bash_x", kind="execute"),
    )
    rows = [attempt_row(task=f"t{n}", solver="model-x", calls=mine, submissions=1) for n in range(3)]
    rows += [attempt_row(task=f"t{n}", solver="model-y", calls=foreign, submissions=2) for n in range(3)]
    data = study_data(rows)
    assert information_calls(rows[0]) == 2
    figure = run("bp-10", data)
    assert figure.numbers["model-x/remove/information"].value == 2
    assert figure.numbers["model-y/remove/submissions"].value == 2
    by_tool = run("bp-11", data)
    matrix = by_tool.plots[0].marks[0]
    assert isinstance(matrix, Matrix)
    assert matrix.columns == ("read_file", "replace_function", "search_code", "(execute)", "(view)")
    assert matrix.values == ((1.0, 1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0, 1.0))
    assert by_tool.notes[0].startswith("Columns in round brackets")


# Correlations


def test_correlations_by_hand_and_by_scipy() -> None:
    draw = np.random.default_rng(3)
    x, y = draw.normal(size=30), draw.normal(size=30)
    y += x
    theirs = pearsonr(x, y)
    ours = pearson(x, y)
    assert ours == pytest.approx(theirs.statistic)
    assert pearson_p(float(theirs.statistic), 30) == pytest.approx(theirs.pvalue)
    bounds = theirs.confidence_interval(0.95)
    assert fisher_interval(float(theirs.statistic), 30) == pytest.approx((bounds.low, bounds.high))
    assert pearson([1.0, 1.0], [1.0, 2.0]) is None


def test_gistifys_correlation_of_ten_means() -> None:
    assert pearson_p(0.76, 10) == pytest.approx(0.0107, abs=5e-5)


def test_each_metric_is_correlated_over_the_tasks_that_have_it() -> None:
    """The correlations of all metrics come from one set of refits, or several if metrics lack some tasks."""
    rows, metrics = graded(40, slope=-3.0)
    for place, values in enumerate(metrics.values()):
        values |= {"constant": 1.0, "fifths": float(place % 5)} | ({"late": 1.5 * place} if place > 2 else {})
    found = run("bp-12", study_data(rows, metrics=metrics)).numbers
    start = "model-x/remove/solved/" if "model-x/remove/solved/fifths" in found else "models/remove/solved/"
    assert f"{start}constant" not in found
    solved = {row.task: float(row.solved) for row in rows}
    for metric, count in {"fifths": 40, "late": 37}.items():
        tasks = [task for task in solved if metric in metrics[task]]

        def artanh(left_out: str = "", metric: str = metric, tasks: list[str] = tasks) -> float:
            kept = [task for task in tasks if task != left_out]
            r = pearsonr([metrics[task][metric] for task in kept], [solved[task] for task in kept])
            return float(np.arctanh(r.statistic))

        number, middle = found[f"{start}{metric}"], artanh()
        variance = (count - 1) / count * sum((artanh(task) - middle) ** 2 for task in tasks)
        half = float(student.ppf(0.975, count - 1)) * variance**0.5
        assert number.tasks == count
        assert number.value == pytest.approx(np.tanh(middle))
        assert (number.low, number.high) == pytest.approx(tuple(np.tanh([middle - half, middle + half])))


def test_metrics_correlate_with_success_and_time_over_tasks() -> None:
    rows, metrics = graded(40, slope=-3.0)
    people = [
        attempt_row(f"P{n % 4}", f"t{n}", True, minutes=exp(1 + metrics[f"t{n}"]["code_lines"] / 10))
        for n in range(40)
    ]
    found = run("bp-12", study_data(rows + people, metrics=metrics))
    success = found.numbers["models/remove/solved/code_lines"]
    assert success.value is not None
    assert success.high is not None
    assert success.high < 0
    assert found.numbers["people/remove/log minutes/code_lines"].value == pytest.approx(1.0)
    assert "people/remove/solved/code_lines" not in found.numbers, "all are solved"
    matrix = found.plots[0].marks[0]
    assert isinstance(matrix, Matrix)
    assert matrix.counts[0][0] == 40
    assert matrix.values[0][0] == pytest.approx(1.0)


def test_nine_tasks_are_too_few_for_a_correlation() -> None:
    rows, metrics = graded(9)
    found = run("bp-12", study_data(rows, metrics=metrics))
    assert not found.plots
    assert [(one.needs, one.has) for one in found.not_estimated] == [(10, 9)]


# Metrics of solved tasks


def test_the_effect_that_breakpoint_prints_implies_125_tasks() -> None:
    assert pairs_implied(0.019, 0.21) == pytest.approx(125, abs=0.5)


def test_the_rank_test_is_scipys_and_its_size_has_a_sign() -> None:
    one, other = [4.0, 6.0, 7.0, 9.0, 9.0, 12.0], [1.0, 2.0, 4.0, 5.0, 8.0]
    made, theirs = rank_test(one, other), mannwhitneyu(one, other, alternative="two-sided")
    assert made.p == theirs.pvalue
    assert made.r > 0 > rank_test(other, one).r
    assert pairs_implied(made.p, made.r) == pytest.approx(11)
    assert rank_test(one, one).p == 1


def test_cohens_d_by_hand() -> None:
    assert cohens_d([2.0, 4.0], [1.0, 1.0, 1.0]) == pytest.approx(2 / sqrt(2 / 3))
    assert cohens_d([1.0, 1.0], [1.0, 1.0]) is None


def test_holm_and_mcnemar_are_those_of_statsmodels() -> None:
    ps = [0.01, 0.04, 0.03, 0.2]
    assert holm(ps) == pytest.approx(list(multipletests(ps, method="holm")[1]))
    assert exact_mcnemar(7, 1) == pytest.approx(mcnemar([[5, 7], [1, 3]], exact=True).pvalue)
    assert exact_mcnemar(0, 0) == 1
    rows = [attempt_row(task=f"t{n}", solved=n < 3, solver="x") for n in range(5)]
    others = [attempt_row(task=f"t{n}", solved=n in (2, 3), solver="y") for n in range(4)]
    assert discordant(rows, others) == (2, 1)


def test_the_solved_tasks_of_two_solvers_are_compared_in_every_way() -> None:
    """model-x solves long and short tasks, model-y only short ones."""
    tasks = [f"t{n:02}" for n in range(24)]
    metrics = {task: {"code_lines": float(n), "harmonic_out": float(n % 5)} for n, task in enumerate(tasks)}
    rows = [attempt_row(task=task, solved=n % 3 != 0, solver="model-x") for n, task in enumerate(tasks)]
    rows += [
        attempt_row(task=task, solved=n < 12 and n % 4 != 3, solver="model-y") for n, task in enumerate(tasks)
    ]
    found = run("bp-14", study_data(rows, metrics=metrics))
    lines = found.tables[0].rows[0]
    assert lines[:5] == ("code_lines", "remove", "model-x", "model-y", "16 and 9")
    assert isinstance(lines[5], float)
    assert lines[5] < 0.02
    assert isinstance(lines[7], float)
    assert isinstance(lines[8], float)
    assert lines[7] > 0
    assert lines[8] > 0
    assert lines[9] == "10 and 3"
    slope = number(lines[11])
    assert slope.value is not None
    assert slope.value > 0
    assert isinstance(found.plots[0].panels[0].marks[0], Violins)
    assert found.numbers["model-x and model-y/remove/code_lines/p"].tasks == 24


def test_four_solved_tasks_are_too_few_to_compare() -> None:
    metrics = {f"t{n}": {"code_lines": float(n), "harmonic_out": 1.0 / (1 + n)} for n in range(12)}
    rows = [attempt_row(task=f"t{n}", solved=n < 4, solver="model-x") for n in range(12)]
    rows += [attempt_row(task=f"t{n}", solved=n < 8, solver="model-y") for n in range(12)]
    found = run("bp-14", study_data(rows, metrics=metrics))
    assert not found.tables
    assert {(one.short, one.has) for one in found.not_estimated} == {("tasks solved by model-x", 4)}


def test_the_greatest_budget_is_compared_with_the_least() -> None:
    study = budgeted(few=(8, 2), standard=(16, 4), many=(32, 8))
    rows = (
        with_budget("few", (8, 2), 6)
        + with_budget("standard", (16, 4), 10)
        + with_budget("many", (32, 8), 14)
    )
    metrics = {f"t{n:02}": {"code_lines": log(2 + n), "harmonic_out": float(n)} for n in range(20)}
    (table,) = run("bp-13", study_data(rows, study=study, metrics=metrics)).tables
    assert {row[2:4] for row in table.rows} == {("model-x, 32/8", "model-x, 8/2")}
