"""Chooses entrypoints from a suite, across all difficulties or only the hardest."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.entrypoints.command import Entrypoint, EntrypointError, parse_entrypoint
from gistpoint.core.kinds.gist.intake import Examination, NoGistError
from gistpoint.core.kinds.gist.judge import sources_of
from gistpoint.core.kinds.gist.trace import Difficulty, difficulty
from gistpoint.core.metrics.bars import hard_subset
from gistpoint.core.running import RunProgress

TRACED = 3
"""The number of candidates per requested entrypoint that are traced before the first is chosen."""
_SUITE_TIMEOUT_S = 120.0

OnRefusal = Callable[[Entrypoint, NoGistError], None]


@dataclass(frozen=True, slots=True)
class EntrypointCandidate:
    """An entrypoint with its difficulty."""

    entrypoint: Entrypoint
    difficulty: Difficulty


def entrypoints_of(examination: Examination) -> list[Entrypoint]:
    """Return the tests of a repository's suite; all instances of a test are one entrypoint.

    Tests whose ids can't be written as a command are left out. Raises `InfrastructureError` if the tests
    could not be collected.
    """
    repository = examination.repository
    ids = examination.runner.tests(
        repository.tree, repository.environment, timeout_s=_SUITE_TIMEOUT_S, cancel=examination.run.cancel
    )
    found: dict[Entrypoint, None] = {}
    for id in ids:
        try:
            found[parse_entrypoint(f"pytest '{id.partition('[')[0]}'")] = None
        except EntrypointError:
            continue
    return list(found)


def candidates(
    examination: Examination, count: int, seed: int, refused: OnRefusal = lambda entrypoint, refusal: None
) -> Iterator[EntrypointCandidate]:
    """Yield the tests of a suite in a random order given by `seed`, until none is left.

    The first `TRACED` times `count` are traced and ranked by calls, functions, files and covered lines
    together. The first `count` yielded tests are one from each of `count` parts of this ranking; then the
    next from each part follow. The untraced tests come last, in their random order. `refused` is called for
    each test that can't be traced. Raises `InfrastructureError` if the tests could not be collected.
    """
    drawn = _traced(examination, _drawn(examination, seed), refused, TRACED * count)
    yield from by_rank(list(islice(drawn, TRACED * count)), count)
    yield from drawn


def hardest(
    examination: Examination, most: int, seed: int, refused: OnRefusal, *, among: int = 0
) -> Generator[EntrypointCandidate, bool | None, None]:
    """Yield the `most` tests with the most calls, and the `most` with the most files (Gistify, section 4.2).

    Either all tests of the suite are traced, or only `among` of them, chosen by `seed`. If a test turns out
    to be unusable after it was yielded, send True: the next hardest test takes its place. `refused` is called
    for each test that can't be traced. Raises `InfrastructureError` if the tests could not be collected.
    """
    drawn = _drawn(examination, seed)[: among or None]
    pool = {one.entrypoint.text: one for one in _traced(examination, drawn, refused, len(drawn))}
    done: set[str] = set()
    while waiting := _hard(list(pool.values()), most) - done:
        chosen = max(waiting, key=lambda text: (pool[text].difficulty.calls, text))
        done.add(chosen)
        if (yield pool[chosen]):
            del pool[chosen]


def _hard(pool: Sequence[EntrypointCandidate], most: int) -> set[str]:
    by_calls = {one.entrypoint.text: float(one.difficulty.calls) for one in pool}
    by_files = {one.entrypoint.text: float(one.difficulty.files) for one in pool}
    return set.union(*hard_subset(by_calls, by_files, most))


def _drawn(examination: Examination, seed: int) -> list[Entrypoint]:
    everything = entrypoints_of(examination)
    random.Random(seed).shuffle(everything)
    return everything


def _traced(
    examination: Examination, entrypoints: Sequence[Entrypoint], refused: OnRefusal, wanted: int
) -> Iterator[EntrypointCandidate]:
    sources = sources_of(examination.repository.tree)
    done = 0
    for number, entrypoint in enumerate(entrypoints):
        total = min(wanted, done + len(entrypoints) - number)
        # Entrypoints beyond the requested number are drawn one by one, so there is no total to report.
        done_and_total = (done, total) if done < total else (0, 0)
        examination.run.progress(RunProgress(entrypoint.text, *done_and_total, step="tracing tests"))
        try:
            read = examination.trace(entrypoint)
        except NoGistError as refusal:
            refused(entrypoint, refusal)
            continue
        done += 1
        tests = {path for path in read.files if is_test_path(path)} | {entrypoint.target}
        yield EntrypointCandidate(entrypoint, difficulty(read, sources, tests=tests))


def by_rank(traced: Sequence[EntrypointCandidate], count: int) -> Iterator[EntrypointCandidate]:
    """Yield one candidate from each of `count` parts of the ranking, then the next from each, and so on."""
    totals = [0] * len(traced)
    for name in ("calls", "functions", "files", "lines_covered"):
        values = [getattr(one.difficulty, name) for one in traced]
        ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
        totals = [total + ranks[value] for total, value in zip(totals, values, strict=True)]
    order = [traced[n] for n in sorted(range(len(traced)), key=totals.__getitem__)]
    parts = [order[len(order) * n // count : len(order) * (n + 1) // count] for n in range(count)]
    for one_of_each in zip_longest(*parts):
        yield from (one for one in one_of_each if one is not None)
