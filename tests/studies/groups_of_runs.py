"""Compares the facts derived from runs with those planted in them, by format.

Usage: python tests/studies/groups_of_runs.py [--runs N] [--seed N] [--wrong N]

For causes, it prints the precision and recall of pairs: of two runs in one found group, and of two runs with
one planted cause. For every other fact, it prints how many runs have it, and the precision and recall.
`--wrong` also prints up to that many runs for each fact that was derived wrongly.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from math import comb
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from planted_runs import WRITERS, Planted, plant

from gistpoint.sessions.runs.digest import Happening, RunDigest, digest_of
from gistpoint.sessions.runs.opening import open_run

Pair = tuple[Planted, RunDigest]
FACTS: dict[str, tuple[Callable[[Planted], object], Callable[[RunDigest], object]]] = {
    "an error": (lambda run: bool(run.cause), lambda digest: bool(digest.cause)),
    "edited": (lambda run: run.edited, lambda digest: digest.has(Happening.EDITED)),
    "tested": (lambda run: run.tested, lambda digest: digest.has(Happening.TESTED)),
    "looped": (lambda run: run.looped, lambda digest: digest.has(Happening.LOOPED)),
    "gave up": (lambda run: run.gave_up, lambda digest: digest.has(Happening.GAVE_UP)),
    "out of budget": (lambda run: run.out_of_budget, lambda digest: digest.has(Happening.OUT_OF_BUDGET)),
    "tests failed": (lambda run: bool(run.failing), lambda digest: digest.has(Happening.FAILED_TESTS)),
}


def pairs_of(pairs: Sequence[Pair]) -> tuple[float, float, int, int]:
    """Return precision and recall of pairs of runs with an error, and the numbers of found and true groups."""
    failed = [pair for pair in pairs if pair[0].cause or pair[1].cause]
    found = Counter(digest.cause or f"none {run.number}" for run, digest in failed)
    true = Counter(run.cause or f"none {run.number}" for run, _ in failed)
    both = Counter((digest.cause or f"none {run.number}", run.cause) for run, digest in failed)
    together = sum(comb(count, 2) for count in both.values())
    in_found, in_true = (sum(comb(n, 2) for n in counts.values()) for counts in (found, true))
    causes = {run.cause for run, _ in failed} - {""}
    return together / max(1, in_found), together / max(1, in_true), len(found), len(causes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--wrong", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = plant(Path(folder), given.runs, given.seed)
        pairs = [(run, digest_of(open_run(str(run.path)))) for run in runs]
    for name in ("all", *WRITERS):
        of_format = [pair for pair in pairs if name in ("all", pair[0].format)]
        precision, recall, found, true = pairs_of(of_format)
        print(f"{name}: {len(of_format)} runs, {true} causes in {found} groups,", end=" ")
        print(f"pairs: precision {precision:.3f}, recall {recall:.3f}")
        for fact, (is_true, is_found) in FACTS.items():
            truth = [bool(is_true(run)) for run, _ in of_format]
            said = [bool(is_found(digest)) for _, digest in of_format]
            hits = sum(one and other for one, other in zip(truth, said, strict=True))
            print(f"  {fact:14} {sum(truth):4} true, precision {hits / max(1, sum(said)):.3f}", end="")
            print(f", recall {hits / max(1, sum(truth)):.3f}")
        same = sum(tuple(sorted(run.failing)) == digest.failing for run, digest in of_format if run.tested)
        tested = sum(run.tested for run, _ in of_format)
        answers = sum(run.answer == digest.answer for run, digest in of_format)
        print(f"  failing tests as planted in {same} of {tested} runs with tests, answers in {answers}")
    for fact, (is_true, is_found) in FACTS.items():
        wrong = [pair for pair in pairs if bool(is_true(pair[0])) is not bool(is_found(pair[1]))]
        for run, digest in wrong[: given.wrong]:
            print(
                f"{fact}: {run.number} {run.format} {run.cause!r} {digest.cause!r} {run.final!r} {digest.happened}"
            )
    shown = [pair for pair in pairs if pair[0].answer != pair[1].answer][: given.wrong]
    for run, digest in shown:
        print(f"answer: {run.number} {run.format} planted {run.answer}, found {digest.answer}")


if __name__ == "__main__":
    main()
