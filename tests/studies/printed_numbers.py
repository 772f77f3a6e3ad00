"""Prints the recomputable numbers of the two papers: as printed, as recomputed, and why they differ.

    PYTHONPATH=src:tests OPENBLAS_NUM_THREADS=1 uv run python tests/studies/printed_numbers.py [--data FOLDER]

They are recomputed from other printed numbers by closed forms, and, with `--data`, from the public Breakpoint
data set: FOLDER contains its `remove-data.json` and `discovery-data.json` (Hugging Face, uzpg/breakpoint).
Without it, a note replaces those rows' numbers. Exit code 1 if a row that should agree does not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean

from gistpoint.core.analysis.correlations import pearson, pearson_p
from gistpoint.core.analysis.firth import mcfadden, null_from_fit
from gistpoint.core.analysis.gist_difficulty import hard_subset
from gistpoint.core.analysis.intervals import clopper_pearson
from gistpoint.core.analysis.regression import likelihood_ratio_p
from gistpoint.core.analysis.solved_tasks import pairs_implied
from gistpoint.core.analysis.task_means import exact_mcnemar
from gistpoint.core.estimates import wilson
from gistpoint.core.generation.breakpoint.records import BreakpointRecord, read_records

AGREES = "agrees"
WRONG = ("differs by more", "does not sum", "p is not", "the three fits do not")
"""The beginnings of reasons without an explanation."""
NOT_HERE = "not computed: the data set is not here (give --data)"


@dataclass(frozen=True)
class PrintedNumber:
    """One number of a paper."""

    where: str
    what: str
    printed: str
    ours: str
    why: str
    """Why the numbers differ, or `agrees`; never empty."""


# Breakpoint

FITS: Mapping[str, tuple[float, float, int]] = {
    "code lines": (4163.1, 0.216, 2),
    "harmonic": (4340.9, 0.183, 2),
    "both": (4141.4, 0.221, 3),
}
"""The AIC, McFadden's R2 and the number of parameters of each fit."""
CORRELATIONS: Mapping[tuple[str, str], float] = {
    ("code_line_count", "cyclomatic"): 0.751,
    ("cyclomatic", "halstead_volume"): 0.887,
    ("cyclomatic", "halstead_difficulty"): 0.767,
    ("harmonic", "distance_discount"): 0.726,
    ("degree", "in_degree"): 0.897,
}
CLOSE = 0.05
"""The maximum difference of a correlation on 767 of 930 tasks."""


def breakpoint_closed_forms() -> Iterator[PrintedNumber]:
    """Yield the numbers that follow from other numbers of the Breakpoint paper."""
    nulls = [null_from_fit(*fit) for fit in FITS.values()]
    null = fmean(nulls)
    for name, (aic, r_squared, parameters) in FITS.items():
        ours = mcfadden(parameters - aic / 2, null)
        same = abs(ours - r_squared) < 0.0006
        yield PrintedNumber(
            "Breakpoint 4.1.2",
            f"McFadden R2, {name}",
            f"{r_squared:.3f}",
            f"{ours:.4f}",
            f"{AGREES}: from AIC {aic} and the null log-likelihood {null:.1f} that the three fits share"
            if same
            else "the three fits do not share a null log-likelihood",
        )
    spread = max(nulls) - min(nulls)
    told = ", ".join(f"{value:.1f}" for value in nulls)
    yield PrintedNumber(
        "Breakpoint 4.1.2",
        "null log-likelihood",
        "not printed",
        told,
        f"{AGREES} within {spread:.1f}, the rounding of R2: all fits are of one set of rows",
    )
    for term, other in (("harmonic", "code lines"), ("code lines", "harmonic")):
        ratio = FITS[other][0] - FITS["both"][0] + 2
        p = likelihood_ratio_p(ratio)
        yield PrintedNumber(
            "Breakpoint 4.1.2",
            f"p of {term} beside the other",
            "< 1e-4 (Wald)",
            f"LR {ratio:.1f}, z {sqrt(ratio):.2f}, p {p:.1e}",
            f"{AGREES}; as if a task's attempts by several models were independent"
            if p < 1e-4
            else "p is not small",
        )
    for term, share, ratio in (("code lines", 0.55, 201.5), ("harmonic", 0.20, 23.7)):
        b = log(1 - share)
        yield PrintedNumber(
            "Breakpoint 4.1.2",
            f"change of the odds, {term}",
            f"-{share:.0%}",
            f"b {b:.3f}, se {-b / sqrt(ratio):.3f}, exp(b) - 1 {exp(b) - 1:.2f}",
            f"{AGREES}; the standard error is that which the LR implies and is not printed",
        )
    yield PrintedNumber(
        "Breakpoint 4.2.2",
        "solved tasks behind p .019 and r .21",
        "not printed",
        f"N {pairs_implied(0.019, 0.21):.0f}",
        "if r is z / sqrt(N); the published code computes Cohen's d, so what r is can't be known",
    )
    low, high = clopper_pearson(8, 8)
    yield PrintedNumber(
        "Breakpoint 4.4",
        "solved by people",
        "8 of 8, no interval",
        f"{low:.3f} to {high:.0f} (Wilson {wilson(8, 8)[0]:.3f})",
        "eight tasks by the authors: at least 63 % if attempts are independent; of how many persons is not said",
    )
    bounds = ", ".join(f"{clopper_pearson(0, n)[1]:.3f} of {n}" for n in (10, 20, 50))
    yield PrintedNumber(
        "Breakpoint 4.1.1",
        "solved with 4 corruptions",
        "0 %",
        f"at most {bounds}",
        "the number of tasks is not printed; 'unable to solve any' is compatible with these rates",
    )


def breakpoint_data(folder: Path | None) -> Iterator[PrintedNumber]:
    """Yield the numbers that can be computed from the public data set, or notes if its files are missing."""
    names = ("remove-data.json", "discovery-data.json")
    files = [folder / name for name in names] if folder else []
    here = [path for path in files if path.is_file()]
    records = [
        item
        for path in here
        for item in read_records(path.read_bytes())
        if isinstance(item, BreakpointRecord)
    ]
    yield PrintedNumber(
        "Breakpoint 1",
        "tasks",
        "930",
        str(len(records)) if here else NOT_HERE,
        "the public files hold 767 records (498 removals, 269 corruptions): 163 fewer than the paper's set",
    )
    for (one, other), printed in CORRELATIONS.items():
        values = [(a, b) for r in records if None not in (a := metric(r, one), b := metric(r, other))]
        r = pearson([a for a, _ in values], [b for _, b in values]) if len(values) > 1 else None
        near = r is not None and abs(r - printed) <= CLOSE
        yield PrintedNumber(
            "Breakpoint C.3",
            f"r of {one} and {other}",
            f"{printed:.3f}",
            NOT_HERE if r is None else f"{r:.3f} on {len(values)}",
            "767 of the paper's 930 tasks are public: closeness is expected, not equality"
            if r is None or near
            else f"differs by more than {CLOSE}",
        )


def metric(record: BreakpointRecord, name: str) -> float | None:
    """Return a metric of a record's function or of its place in the call graph; None if it is missing."""
    centrality = record.metrics.get("centrality")
    found = record.metrics.get(name, centrality.get(name) if isinstance(centrality, dict) else None)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


# Gistify

TABLE_1: Mapping[str, tuple[float, float, float, float]] = {
    "mini-SWE-agent, GPT-5-mini": (17.1, 24.0, 44.9, 61.2),
    "mini-SWE-agent, GPT-5": (51.0, 54.0, 56.8, 83.1),
    "mini-SWE-agent, Claude-3.7": (38.7, 43.3, 66.0, 69.2),
    "mini-SWE-agent, Claude-4": (54.0, 55.3, 67.0, 75.7),
    "SWE-agent, GPT-5-mini": (30.9, 45.3, 47.9, 74.8),
    "SWE-agent, GPT-5": (30.7, 46.0, 48.3, 81.7),
    "SWE-agent, Claude-3.7": (40.7, 46.0, 66.8, 69.9),
    "SWE-agent, Claude-4": (56.7, 57.3, 66.3, 72.9),
    "Copilot, GPT-5-mini": (58.0, 55.3, 62.4, 77.8),
    "Copilot, GPT-5": (58.7, 60.7, 66.9, 81.4),
    "Copilot, Claude-3.7": (43.3, 56.0, 63.0, 74.4),
    "Copilot, Claude-4": (58.7, 61.3, 69.6, 80.3),
}
"""Fidelity without and with execution, line existence and line execution."""
TABLE_2: Mapping[str, tuple[tuple[float, int], ...]] = {
    "GPT-5-mini": ((2.1, 2), (11.3, 11), (76.3, 72), (10.3, 10)),
    "GPT-5": ((5.2, 4), (10.4, 8), (77.9, 60), (6.5, 5)),
    "Claude-Sonnet-3.7": ((20.0, 10), (20.0, 10), (2.0, 1), (58.0, 29)),
    "Claude-Sonnet-4": ((32.5, 13), (10.0, 4), (7.5, 3), (50.0, 20)),
}
"""The percentages and counts of the errors: import, file creation, missing test, run."""
TABLE_3: Mapping[str, tuple[float, float]] = {
    "base": (42.0, 14.6),
    "prompted tracing": (48.0, 0.0),
    "prompted reading": (50.0, 3.9),
    "RepoGraph": (52.0, 6.0),
    "tracing tool": (56.0, 0.0),
    "bash": (52.0, 16.0),
    "edit and execute": (56.0, 10.0),
}
"""The fidelity, and the share that reached the limit of steps, over 50 tests."""
TABLE_7: Mapping[str, tuple[float, float, float, float]] = {
    "GPT-5-mini": (71.9, 9.8, 1.7, 16.6),
    "GPT-5": (72.4, 8.3, 3.3, 16.1),
    "Claude-Sonnet-3.7": (67.5, 10.1, 4.5, 17.9),
    "Claude-Sonnet-4": (74.6, 2.1, 11.8, 11.5),
}
ERRORS = ("import", "file creation", "missing test", "run")


def part_of(printed: float, whole: int) -> int | None:
    """Return the count whose percentage of `whole` has this printed form; None if there is none."""
    count = round(printed * whole / 100)
    return count if round(100 * count / whole, 1) == printed else None


def wholes(printed: float, most: int, least: int = 2) -> list[int]:
    """Return the numbers of tests of which a percentage can be a part, from `most` down to `least`."""
    return [whole for whole in range(most, least - 1, -1) if part_of(printed, whole) is not None]


def gistify_closed_forms() -> Iterator[PrintedNumber]:
    """Yield the numbers that follow from other numbers of the Gistify paper."""
    for name, (without, with_, _, _) in TABLE_1.items():
        for setting, printed in (("without", without), ("with", with_)):
            count = part_of(printed, 150)
            yield PrintedNumber(
                "Gistify table 1",
                f"fidelity {setting} execution, {name}",
                f"{printed:.1f}",
                f"{count} of 150 = {100 * count / 150:.1f}" if count is not None else "no count of 150",
                f"{AGREES} with six repositories of 25 tests; the text says five"
                if count is not None
                else f"not a part of 150; of the most tests it can be: {', '.join(map(str, wholes(printed, 150)[:3]))}",
            )
    of_125 = sum(part_of(value, 125) is not None for row in TABLE_1.values() for value in row[:2])
    yield PrintedNumber(
        "Gistify 3.1",
        "tests in the main experiment",
        "25 for each of 5 repositories",
        f"{of_125} of 24 fidelities can be parts of 125, 21 of 150",
        "table 1 is of six repositories, as table 4 lists",
    )
    yield from _table_1_claims()
    for model, cells in TABLE_2.items():
        # The total with which most percentages of the row fit their counts; the smallest if several fit as many.
        total = max(
            range(1, 201), key=lambda n, row=cells: (sum(round(100 * c / n, 1) == p for p, c in row), -n)
        )
        for error, (printed, count) in zip(ERRORS, cells, strict=True):
            share = round(100 * count / total, 1)
            yield PrintedNumber(
                "Gistify table 2",
                f"{error}, {model}",
                f"{printed:.1f} ({count})",
                f"{share:.1f} of {total}",
                AGREES
                if share == printed
                else f"{printed} % of {total} are {part_of(printed, total)}, and with {count} the row sums to "
                f"{sum(c for _, c in cells)}: the count is a slip",
            )
    for name, (faithful, limit) in TABLE_3.items():
        for what, printed in (("fidelity", faithful), ("limit of steps reached", limit)):
            count = part_of(printed, 50)
            others = sorted(wholes(printed, 55, 45), key=lambda n: abs(n - 50))[:2]
            near = ", ".join(f"{part_of(printed, n)} of {n}" for n in others)
            yield PrintedNumber(
                "Gistify table 3",
                f"{what}, {name}",
                f"{printed:.1f}",
                f"{count} of 50" if count is not None else "no count of 50",
                AGREES if count is not None else f"not a part of the 50 tests; it can be {near}",
            )
    yield from _subset()
    p = pearson_p(0.76, 10)
    yield PrintedNumber(
        "Gistify 3.4",
        "p of r .76 of test score and fidelity",
        "0.01",
        f"{p:.4f} for n = 10; {pearson_p(0.76, 50):.0e} for n = 50",
        f"{AGREES} with ten pairs: it is a correlation of means, not of tests",
    )
    for model, row in TABLE_7.items():
        total = sum(row)
        yield PrintedNumber(
            "Gistify table 7",
            f"sum of the kinds of calls, {model}",
            "100 (implied)",
            f"{total:.1f}",
            AGREES if abs(total - 100) < 0.15 else "does not sum to 100",
        )


def _table_1_claims() -> Iterator[PrintedNumber]:
    gains = [row[1] - row[0] for row in TABLE_1.values()]
    up, down = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    yield PrintedNumber(
        "Gistify 1, 3.2",
        "gain by execution tools",
        "small but consistent",
        f"{up} up, {down} down, mean {fmean(gains):+.1f} points, sign test p {exact_mcnemar(up, down):.3f}",
        f"{AGREES}; Copilot with GPT-5-mini loses",
    )
    claude = [row for name, row in TABLE_1.items() if "Claude" in name]
    gpt = [row for name, row in TABLE_1.items() if "GPT" in name]
    for place, metric_name, printed in (
        (2, "line existence", "GPT higher"),
        (3, "line execution", "Claude higher"),
    ):
        ours = fmean(row[place] for row in gpt), fmean(row[place] for row in claude)
        higher = "GPT" if ours[0] > ours[1] else "Claude"
        yield PrintedNumber(
            "Gistify 3.2",
            f"family with more {metric_name}, 'in general'",
            printed,
            f"GPT {ours[0]:.1f}, Claude {ours[1]:.1f}",
            AGREES if printed.startswith(higher) else "the sentence has the two families the wrong way round",
        )


def _subset() -> Iterator[PrintedNumber]:
    places = {f"t{n:03}": float(n) for n in range(125)}
    turned = {task: -value for task, value in places.items()}
    one, other = hard_subset(places, turned)
    yield PrintedNumber(
        "Gistify 4.2",
        "tasks of the hard subset",
        "57 = 30 + 28 + 6",
        f"30 + 28 + 6 = {30 + 28 + 6}; two lists of 30 have at most {len(one | other)}",
        "one of the three counts is wrong: 57 needs an overlap of 3, and 64 can't be",
    )


def printed_numbers(folder: Path | None = None) -> list[PrintedNumber]:
    """Return all rows."""
    return [*breakpoint_closed_forms(), *breakpoint_data(folder), *gistify_closed_forms()]


def main() -> int:
    """Print the table; return 1 if a row that should agree does not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder of the public Breakpoint data set")
    rows = printed_numbers(parser.parse_args().data)
    headings = ("paper", "number", "printed", "ours", "why")
    cells = [headings, *((row.where, row.what, row.printed, row.ours, row.why) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    for row in cells:
        print(
            "  ".join(text.ljust(width) for text, width in zip(row[:4], widths, strict=True)),
            row[4],
            sep="  ",
        )
    agree = sum(row.why.startswith(AGREES) for row in rows)
    missing = sum(row.ours == NOT_HERE for row in rows)
    rest = len(rows) - agree - missing
    print(f"\n{len(rows)} numbers: {agree} agree, {rest} differ or are not printed, {missing} not here")
    return int(any(row.why.startswith(WRONG) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
