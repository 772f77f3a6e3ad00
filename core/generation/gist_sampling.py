"""Entrypoints drawn from a suite by how hard they are: a trace of each candidate, and some of every rank."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.generation.gists import Examination, NoGistError
from gistpoint.core.gist.entrypoints import Entrypoint, EntrypointError, parse_entrypoint
from gistpoint.core.gist.reference.trace import Difficulty, difficulty, read_trace

TRACED = 3
"""Candidates that are traced for each entrypoint wanted."""
_TRIED = 4
"""Tests tried for each of those, as many may fail."""
_SUITE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entrypoint, and how hard it is."""

    entrypoint: Entrypoint
    difficulty: Difficulty


def entrypoints_of(examination: Examination) -> list[Entrypoint]:
    """Return the tests of a repository's suite, the instances of a parametrised one as one entrypoint."""
    repository = examination.repository
    ids = examination.runner.tests(
        repository.tree, repository.environment, timeout_s=_SUITE_TIMEOUT_S, cancel=examination.cancel
    )
    found: dict[Entrypoint, None] = {}
    for id in ids:
        try:
            found[parse_entrypoint(f"pytest '{id.partition('[')[0]}'")] = None
        except EntrypointError:
            continue
    return list(found)


def candidates(examination: Examination, count: int, seed: int) -> Iterator[Candidate]:
    """Yield more candidates than the `count` wanted: first one of each rank, then the next of each, and so on.

    They are drawn at random by `seed`, traced, and ranked by calls, functions, files and lines covered together.
    """
    everything = entrypoints_of(examination)
    random.Random(seed).shuffle(everything)
    traced: list[Candidate] = []
    refusal: NoGistError | None = None
    sources = {path: data.decode("utf-8", "replace") for path, data in examination.repository.tree.read_all(".py")}
    for entrypoint in everything[: _TRIED * TRACED * count]:
        if len(traced) == TRACED * count:
            break
        try:
            read = read_trace(examination.trace(entrypoint))
        except NoGistError as error:
            refusal = error
            continue
        tests = {path for path in read.files if is_test_path(path)} | {entrypoint.target}
        traced.append(Candidate(entrypoint, difficulty(read, sources, tests=tests)))
    if not traced and refusal is not None:
        raise refusal
    yield from by_rank(traced, count)


def by_rank(traced: Sequence[Candidate], count: int) -> Iterator[Candidate]:
    """Yield candidates spread over all ranks: one from each of `count` parts of the ranking, then the next of each."""
    figures = [
        [getattr(one.difficulty, name) for one in traced] for name in ("calls", "functions", "files", "lines_covered")
    ]
    ranks = [{value: place for place, value in enumerate(sorted(set(values)))} for values in figures]
    totals = [sum(rank[values[n]] for rank, values in zip(ranks, figures, strict=True)) for n in range(len(traced))]
    order = [traced[n] for n in sorted(range(len(traced)), key=lambda n: totals[n])]
    parts = [order[len(order) * n // count : len(order) * (n + 1) // count] for n in range(count)]
    for place in range(max((len(part) for part in parts), default=0)):
        for part in parts:
            if place < len(part):
                yield part[place]
