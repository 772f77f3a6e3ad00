"""The score of a gist: every metric in one value, each with its evidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gistpoint.core.kinds.gist.execution import ExecutionReport, line_execution
from gistpoint.core.kinds.gist.existence import ExistenceReport, Originals, line_existence
from gistpoint.core.kinds.gist.failures import GistError, gist_error, owned_imports
from gistpoint.core.kinds.gist.fakes import Habits, equal_to_all, mocked
from gistpoint.core.kinds.gist.fidelity import Fidelity, compare_commands, compare_tests
from gistpoint.core.kinds.gist.flags import main_guard_added, moved_under_guard
from gistpoint.core.kinds.gist.original_test import TestScore, score_test
from gistpoint.core.kinds.gist.runs import CommandRun, Isolation, TestsRun
from gistpoint.core.text import bounded


@dataclass(frozen=True, slots=True)
class Flags:
    """What a reader of the score must know."""

    mocked: str = ""
    """What the gist puts in the place of the codebase, in a few words; empty if there is nothing."""
    equal_to_all: str = ""
    """What of the gist equals whatever it is compared with; empty if there is nothing."""
    main_guard_added: bool = False
    test_moved_under_guard: bool = False
    test_changed: bool = False
    vacuous: bool | None = None
    """None where the vacuity probe was not run, or could not say."""


@dataclass(frozen=True, slots=True)
class GistScore:
    """All metrics of one gist; what does not apply, or could not be measured, is None."""

    fidelity: Fidelity | None
    self_contained: bool
    existence: ExistenceReport | None
    execution: ExecutionReport | None
    """Only where the file ran."""
    test: TestScore | None
    error: GistError | None
    flags: Flags

    @property
    def execution_fidelity(self) -> int:
        """1 where the run is like the original's and needed nothing of the codebase, else 0."""
        faithful = self.fidelity is not None and self.fidelity.value == 1
        return int(faithful and self.error is None)


@dataclass(frozen=True, slots=True)
class GistTest:
    """A pytest entrypoint: the test's qualified name, and the source of the file that has it."""

    qualname: str
    source: str


@dataclass(frozen=True, slots=True)
class GistRun:
    """A run of the text that was scored, with the runs of the original it is compared with.

    `text` is the gist with the original test spliced in (the gist itself for a command); `executed` are the physical
    lines of `unfolded(text)` that ran; `places` are the paths of each run, the gist's last; `vacuous` is the probe's
    answer. `seen` is what all runs of the text showed, `habits` what the original does of that, and `used` are the
    names under which the test reaches modules of the codebase.
    """

    text: str
    run: TestsRun | CommandRun
    originals: Sequence[TestsRun | CommandRun]
    executed: frozenset[int] = frozenset()
    places: Sequence[Mapping[str, str]] = ()
    compared_files: Sequence[str] = ()
    vacuous: bool | None = None
    seen: Sequence[Isolation] = ()
    habits: Habits = field(default_factory=Habits)
    used: Collection[str] = ()


def score_gist(
    gist: str, made: GistRun | None, originals: Originals, owned: Collection[str], test: GistTest | None = None
) -> GistScore:
    """Score `gist` as handed in; `made` is None where nothing could be run (no gist, or no test in it)."""
    qualname = test.qualname if test else ""
    fidelity = _fidelity(made) if made else None
    run = made.run if made else None
    error = gist_error(gist, qualname, owned, run, fidelity)
    text = made.text if made else gist
    overlap = score_test(test.source, gist, test.qualname, owned) if test else None
    existence = existence_of(text, originals, qualname)
    execution = line_execution(text, made.executed, test=qualname) if made and made.run.file_ran else None
    contained = run is not None and run.file_ran and run.isolation.clean and not owned_imports(gist, owned)
    return GistScore(
        fidelity=fidelity,
        self_contained=contained,
        existence=existence,
        execution=execution,
        test=overlap,
        error=error,
        flags=_flags(gist, owned, test, overlap, made, existence, execution),
    )


def _fidelity(made: GistRun) -> Fidelity:
    if isinstance(made.run, TestsRun):
        tests = [run for run in made.originals if isinstance(run, TestsRun)]
        return compare_tests(tests, made.run, made.places)
    commands = [run for run in made.originals if isinstance(run, CommandRun)]
    return compare_commands(commands, made.run, made.places, made.compared_files)


def existence_of(text: str, originals: Originals, test: str) -> ExistenceReport | None:
    """Return which lines of a text exist; None for one that does not parse."""
    try:
        return line_existence(text, originals, test=test)
    except (SyntaxError, ValueError):
        return None


def _flags(
    gist: str,
    owned: Collection[str],
    test: GistTest | None,
    overlap: TestScore | None,
    made: GistRun | None,
    existence: ExistenceReport | None,
    execution: ExecutionReport | None,
) -> Flags:
    flags = Flags()
    if made is not None and existence is not None:
        seen = made.seen or (made.run.isolation,)
        flags = Flags(
            mocked=mocked(made.text, seen, made.habits, made.used, owned, existence, execution),
            equal_to_all=equal_to_all(seen, existence),
            vacuous=made.vacuous,
        )
    if test is None or overlap is None:
        return flags
    try:
        moved = moved_under_guard(gist, test.source, test.qualname)
    except (SyntaxError, ValueError):
        moved = False
    guarded = main_guard_added(gist, test.source)
    return replace(flags, main_guard_added=guarded, test_moved_under_guard=moved, test_changed=overlap.changed)


_DIFFERENCES, _CHARACTERS = 10, 2_000


def score_record(score: GistScore) -> dict[str, Any]:
    """Return a score fit for JSON; rates are 0-100, and None where they do not apply or could not be measured.

    `paper` in a rate holds the figures as the paper counts lines. A record without it was written before lines alike
    counted once: all of its figures are the paper's.
    """
    fidelity, test, error = score.fidelity, score.test, score.error
    return {
        "execution_fidelity": score.execution_fidelity,
        "self_contained": score.self_contained,
        "passed": fidelity.passed if fidelity else 0,
        "instances": fidelity.instances if fidelity else 0,
        "line_execution": _execution(score.execution) if score.execution else None,
        "line_existence": _existence(score.existence) if score.existence else None,
        "test": {"recall": test.recall, "precision": test.precision, "f1": test.f1} if test else None,
        "error": {"category": error.category.value, "kind": error.kind.value, "evidence": _cut(error.evidence)}
        if error
        else None,
        "flags": {name: getattr(score.flags, name) for name in score.flags.__slots__},
        "differences": [
            {"test": one.test, "what": one.what, "expected": _cut(one.expected), "found": _cut(one.found)}
            for one in (fidelity.differences[:_DIFFERENCES] if fidelity else ())
        ],
    }


def _cut(text: str) -> str:
    return bounded(text, _CHARACTERS)


def _execution(report: ExecutionReport) -> dict[str, Any]:
    counted = {"executed": report.executed, "executable": report.executable}
    paper = {"executed": report.paper.part, "executable": report.paper.whole}
    return {**_rates(report), **counted, "paper": {**_paper(report), **paper}}


def _existence(report: ExistenceReport) -> dict[str, Any]:
    counted = {"existing": report.existing, "lines": report.counted, "glue": len(report.glue)}
    paper = {"existing": report.paper.part, "lines": report.paper.whole}
    return {**_rates(report), **counted, "paper": {**_paper(report), **paper}}


def _rates(report: ExecutionReport | ExistenceReport) -> dict[str, Any]:
    return {"rate": report.rate, "rate_without_test": report.rate_without_test}


def _paper(report: ExecutionReport | ExistenceReport) -> dict[str, Any]:
    return {"rate": report.paper.rate, "rate_without_test": report.paper_without_test.rate}
