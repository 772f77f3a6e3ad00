"""The score of a gist: every metric with its evidence by line, its record, and its wording."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import UNSET

from gistpoint.core.attempts.events import SubmissionRun, SubmissionScored
from gistpoint.core.entrypoints.runs import CommandRun, GistTrial, Isolation, Operand, TestsRun
from gistpoint.core.kinds.beginning import charged_message, given_back_words, is_given_back
from gistpoint.core.kinds.gist.failures import ErrorCategory, GistError, gist_error, owned_imports
from gistpoint.core.kinds.gist.fidelity import Difference, Fidelity, compare
from gistpoint.core.kinds.gist.flags import (
    Flags,
    Habits,
    equal_to_all,
    main_guard_added,
    mocked,
    moved_under_guard,
)
from gistpoint.core.kinds.gist.grounded import baked_in, invented_operand
from gistpoint.core.kinds.gist.original_test import (
    GistTest,
    SplicedGist,
    TestScore,
    blocks_of_tests,
    missing_name,
    score_tests,
)
from gistpoint.core.kinds.gist.rates import (
    ExecutionReport,
    ExistenceReason,
    ExistenceReport,
    OriginalLine,
    Originals,
    Share,
    existence_of,
    line_execution,
)
from gistpoint.core.outcomes import FREE, BackendRecord, RunStatus
from gistpoint.core.text import bounded


@dataclass(frozen=True, slots=True)
class GistScore:
    """All metrics of one gist; None for metrics that do not apply or could not be measured."""

    fidelity: Fidelity | None
    self_contained: bool
    existence: ExistenceReport | None
    execution: ExecutionReport | None
    """The line execution; None unless the file ran."""
    test: TestScore | None
    error: GistError | None
    flags: Flags
    instance: str = ""
    """The instance of the test that the brief named, if it named only one."""

    @property
    def execution_fidelity(self) -> int:
        """1 if the run matches the original's and nothing of the codebase was imported, else 0."""
        faithful = self.fidelity is not None and self.fidelity.value == 1
        return int(faithful and self.error is None)

    @property
    def instance_fidelity(self) -> int | None:
        """1 if the instance named by the brief behaves as on the original, else 0; None if none is named.

        If `execution_fidelity` is 0, a 1 here shows that the gist fits only the named parameter (A.5).
        """
        if not self.instance:
            return None
        can_be_faithful = self.error is None or self.error.category is ErrorCategory.PYTEST_RUNTIME
        if self.fidelity is None or not can_be_faithful:
            return 0
        return int({"", self.instance}.isdisjoint(one.test for one in self.fidelity.differences))


@dataclass(frozen=True, slots=True)
class GistRun:
    """A run of the text that was scored, with the runs of the original it is compared with.

    `text` is the gist with the original test in it (the gist itself for a program); `executed` are the
    physical lines of `unfolded(text)` that ran; `places` are the paths of each run, the gist's last;
    `vacuous` is the result of the probe. `seen` contains the observations of all runs of the text, `habits`
    those of the original, and `used` the names by which the test refers to modules of the codebase.
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
    operands: Sequence[Operand] | None = ()
    """The classes that the test uses; None if they could not be observed."""


def score_gist(
    gist: str,
    made: GistRun | None,
    originals: Originals,
    owned: Collection[str],
    test: GistTest | None = None,
) -> GistScore:
    """Return the score of `gist` as handed in.

    `made` is None if nothing could be run: the gist is empty, does not compile, or contains no test.
    """
    qualname = test.qualname if test else ""
    missing = missing_name(gist, test) if test else ""
    overlap = score_tests(test, gist, owned) if test else None
    text = made.text if made else gist
    existence = existence_of(text, originals, qualname)
    run = None
    fidelity = None
    execution = None
    contained = False
    if made is not None:
        run = made.run
        fidelity = compare(made.originals, run, made.places, made.compared_files)
        # A gist that swallows the refusal of an import is not self-contained either (decision 15).
        contained = run.file_ran and run.isolation.clean and not owned_imports(gist, owned)
    if made is not None and made.run.file_ran:
        execution = line_execution(text, made.executed, test=qualname)
    if test is not None:
        blocks = blocks_of_tests(text, test)
        existence = existence and replace(existence, test_blocks=blocks)
        execution = execution and replace(execution, test_blocks=blocks)
    return GistScore(
        fidelity=fidelity,
        self_contained=contained,
        existence=existence,
        execution=execution,
        test=overlap,
        error=gist_error(gist, missing, owned, run, fidelity),
        flags=_flags_of(gist, owned, test, overlap, made, originals, existence, execution),
    )


def _flags_of(
    gist: str,
    owned: Collection[str],
    test: GistTest | None,
    overlap: TestScore | None,
    made: GistRun | None,
    originals: Originals,
    existence: ExistenceReport | None,
    execution: ExecutionReport | None,
) -> Flags:
    flags = Flags()
    if made is not None and existence is not None:
        seen = made.seen or (made.run.isolation,)
        flags = Flags(
            mocked=mocked(made.text, seen, made.habits, made.used, owned, existence, execution),
            equal_to_all=equal_to_all(seen, existence),
            invented_operand=invented_operand(made.text, made.operands, existence),
            vacuous=made.vacuous,
            baked_in=baked_in(existence, execution, originals),
        )
    if test is None or overlap is None:
        return flags
    return replace(
        flags,
        main_guard_added=all(main_guard_added(gist, one.source) for one in test.each),
        test_moved_under_guard=_moved_under_guard(gist, test),
        test_changed=overlap.changed,
    )


# The evidence by line


@dataclass(frozen=True, slots=True)
class LineEvidence:
    """The evidence for one logical line of a gist outside of its test, which the original test replaces."""

    first: int
    last: int
    """The last physical line; `first` and `last` are lines of the gist, 1-based and inclusive."""
    ran: bool | None
    """Whether the line ran; None if the line is not executable, or if the gist did not run."""
    existence: ExistenceReason
    original: OriginalLine | None = None
    """The line that this line was matched with, or the block in which it was searched for."""

    @property
    def exists(self) -> bool:
        """Whether the line counts as existing."""
        return self.existence.exists


def _moved_under_guard(gist: str, test: GistTest) -> bool:
    """Return whether a test that its own file defines was moved under a main guard.

    False if the gist or the test can't be parsed.
    """
    defined = [one for one in test.each if not one.defined_as and not one.doctest]
    try:
        return any(moved_under_guard(gist, one.source, one.qualname) for one in defined)
    except (SyntaxError, ValueError):
        return False


def line_evidence(score: GistScore, spliced: SplicedGist | None) -> tuple[LineEvidence, ...]:
    """Return the evidence for the lines of a gist, in order; empty if the gist does not parse.

    `spliced` is the text that was scored, if it is not the gist itself; lines of its original tests are left
    out.
    """
    if score.existence is None:
        return ()
    origin = spliced.origin if spliced is not None else None
    lines = score.existence.lines
    ran: list[bool | None] = [None] * len(lines)
    if score.execution is not None:
        ran = [one.ran if one.counts else None for one in score.execution.lines]
    found = []
    for one, did in zip(lines, ran, strict=True):
        first = _line_of_gist(origin, one.line.first)
        last = _line_of_gist(origin, one.line.last)
        # Lines of the original test do not occur in the gist as handed in.
        if first and last:
            found.append(LineEvidence(first, last, did, one.reason, one.original))
    return tuple(found)


def _line_of_gist(origin: Sequence[int | None] | None, line: int) -> int | None:
    """Return the line of the gist from which a line of the scored text was taken; None if there is none."""
    if origin is None:
        return line
    if line > len(origin):
        return None
    return origin[line - 1]


# The verdict on a gist


@dataclass(frozen=True, slots=True)
class GistJudgement:
    """A score with the run from which it was computed.

    `spliced` maps lines of the text that ran to lines of the gist as handed in; `spliced` and `trial` are
    None if nothing could be run. `flips` is True if the text was faithful in only one of two comparable runs.
    """

    score: GistScore
    spliced: SplicedGist | None = None
    trial: GistTrial | None = None
    flips: bool = False


@dataclass(frozen=True, slots=True)
class GistVerdict:
    """The score of a gist, or the reason why there is none."""

    text: str
    status: RunStatus
    score: GistScore | None = None
    reason: str = ""
    lines: tuple[LineEvidence, ...] = ()
    """The evidence by line of `text`."""
    seconds: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether the verdict counts as a hand-in; False if the harness or the isolation failed."""
        return self.status not in FREE

    @property
    def solved(self) -> bool:
        """Whether the gist is faithful."""
        return self.score is not None and self.score.execution_fidelity == 1


def settled_verdict(verdict: GistVerdict, given_back: int) -> GistVerdict:
    """Return the verdict on a hand-in after `given_back` earlier ones of the attempt were given back.

    If the harness failed and the hand-in is not given back too, it counts as crashed, and is not faithful.
    """
    if verdict.status is not RunStatus.HARNESS_FAILED:
        return verdict
    if is_given_back(verdict.status, given_back):
        return replace(verdict, reason=given_back_words(verdict.reason, given_back))
    # The fourth hand-in counts: otherwise a solver who can end runs could try for free (decision 121).
    reason = charged_message(verdict.reason)
    error = GistError(ErrorCategory.PYTEST_RUNTIME, evidence=reason)
    score = GistScore(None, False, None, None, None, error, Flags())
    return replace(verdict, status=RunStatus.CRASHED, reason=reason, score=score)


# The record of a score

_DIFFERENCES_RECORDED = 10
_CHARACTERS_RECORDED = 2_000


def score_record(score: GistScore) -> dict[str, Any]:
    """Return a score as JSON data; rates are 0-100, or None if they do not apply or were not measured.

    `paper` in a rate contains the figures if lines are counted as in the paper. Records without `paper` were
    made before identical lines counted once: all of their figures are counted as in the paper. Only the first
    `_DIFFERENCES_RECORDED` differences are included, and their values are cut.
    """
    fidelity = score.fidelity or Fidelity(())
    return {
        "execution_fidelity": score.execution_fidelity,
        "self_contained": score.self_contained,
        "passed": fidelity.passed,
        "instances": fidelity.instances,
        "line_execution": _execution_record(score.execution),
        "line_existence": _existence_record(score.existence),
        "test": _test_record(score.test),
        "error": _error_record(score.error),
        **_instance_record(score),
        "flags": {name: getattr(score.flags, name) for name in score.flags.__slots__},
        "differences": [
            {"test": one.test, "what": one.what, "expected": _cut(one.expected), "found": _cut(one.found)}
            for one in fidelity.differences[:_DIFFERENCES_RECORDED]
        ],
    }


def _instance_record(score: GistScore) -> dict[str, Any]:
    """Return the outcome of the instance that the brief named; empty if the brief named all."""
    if not score.instance:
        return {}
    return {"instance": {"name": score.instance, "fidelity": score.instance_fidelity}}


def _cut(text: str) -> str:
    return bounded(text, _CHARACTERS_RECORDED)


def _rate_record(
    report: ExecutionReport | ExistenceReport, part: str, whole: str, **counted: int
) -> dict[str, Any]:
    """Return a rate with its numbers of lines under the names `part` and `whole`."""

    def figures(share: Share, without_test: Share) -> dict[str, Any]:
        return {
            "rate": share.rate,
            "rate_without_test": without_test.rate,
            part: share.part,
            whole: share.whole,
        }

    paper = figures(report.paper, report.paper_without_test)
    return {**figures(report.distinct, report.distinct_without_test), **counted, "paper": paper}


def _execution_record(report: ExecutionReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    return _rate_record(report, "executed", "executable")


def _existence_record(report: ExistenceReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    return _rate_record(report, "existing", "lines", glue=len(report.glue))


def _test_record(test: TestScore | None) -> dict[str, float] | None:
    if test is None:
        return None
    return {"recall": test.recall, "precision": test.precision, "f1": test.f1}


def _error_record(error: GistError | None) -> dict[str, str] | None:
    if error is None:
        return None
    return {
        "category": error.category.value,
        "kind": error.kind.value,
        "evidence": _cut(error.evidence),
    }


def evidence_rows(lines: Iterable[LineEvidence]) -> list[list[Any]]:
    """Return evidence as journal rows: the first line, the last line, `ran` and the reason's name.

    If the original line or block is known, the row continues with its path, block and line.
    """
    rows = []
    for line in lines:
        row: list[Any] = [line.first, line.last, line.ran, line.existence.name]
        if line.original:
            row += [line.original.path, line.original.block, line.original.line]
        rows.append(row)
    return rows


def read_evidence(rows: Iterable[Sequence[Any]]) -> tuple[LineEvidence, ...]:
    """Return the evidence in rows that `evidence_rows` wrote; rows of another shape are skipped."""
    found = []
    for row in rows:
        if len(row) not in (4, 7) or row[3] not in ExistenceReason.__members__:
            continue
        original = None
        if len(row) == 7:
            original = OriginalLine(str(row[4]), str(row[5]), int(row[6]))
        found.append(LineEvidence(int(row[0]), int(row[1]), row[2], ExistenceReason[row[3]], original))
    return tuple(found)


def gist_run(call_id: str, verdict: GistVerdict, backend: BackendRecord) -> SubmissionRun:
    """Return the event that records the run of a hand-in."""
    found = verdict.score.fidelity if verdict.score else None
    fidelity = found or Fidelity(())
    different = {one.test for one in fidelity.differences} - {""}
    return SubmissionRun(
        call_id,
        verdict.status.value,
        verdict.reason,
        counts=verdict.counts,
        passed=fidelity.passed,
        failing=tuple(sorted(different)),
        seconds=round(verdict.seconds, 3),
        backend=backend,
    )


def gist_metrics(verdict: GistVerdict) -> dict[str, Any]:
    """Return a score for the journal, with the evidence by line; empty if there is none."""
    if verdict.score is None:
        return {}
    return {**score_record(verdict.score), "lines": evidence_rows(verdict.lines)}


def gist_scored(call_id: str, verdict: GistVerdict, *, trial: bool) -> SubmissionScored:
    """Return the event of a score; `trial` is true if it was requested before the hand-in."""
    return SubmissionScored(
        call_id,
        float(verdict.solved),
        verdict.solved,
        gist=gist_metrics(verdict),
        trial=True if trial else UNSET,
        text=verdict.text if trial else UNSET,
    )


# The wording of a score

_DIFFERENCES_SHOWN = 3
_CHARACTERS_SHOWN = 1_000
_NOTHING_TO_NOTE = (ErrorCategory.FILE_CREATION, ErrorCategory.MISSING_TEST)
_FLAGS = {
    "main_guard_added": "a main guard was added",
    "test_moved_under_guard": "the test was moved under a guard",
    "test_changed": "the test was changed",
    "vacuous": "the test does not notice when the gist's code is replaced",
}


def score_text(verdict: GistVerdict) -> str:
    """Return the score of a gist in words, or the reason why the gist has no score."""
    if verdict.score is None:
        cost = "" if verdict.counts else " It costs nothing."
        word = "was cancelled" if verdict.status is RunStatus.CANCELLED else "failed for no fault of the gist"
        return f"The scoring {word}. {verdict.reason}".rstrip() + cost
    return "\n".join(_score_lines(verdict.score))


def _score_lines(score: GistScore) -> list[str]:
    faithful = (
        "it does what the original does"
        if score.execution_fidelity
        else "it does not do what the original does"
    )
    lines = [f"Execution fidelity {score.execution_fidelity}: {faithful}."]
    lines.append(f"Self-contained: {'yes' if score.self_contained else 'no'}.")
    if score.fidelity is not None and score.fidelity.instances:
        lines.append(f"Tests passed: {score.fidelity.passed} of {score.fidelity.instances}.")
    if score.instance:
        alike = "does" if score.instance_fidelity else "does not do"
        lines.append(
            f"The instance that the brief names, {score.instance}, {alike} what it does on the original."
        )
    lines += _rate_lines(score)
    if score.test is not None:
        lines.append(f"Test score {_rate_text(score.test.recall)}, F1 {_rate_text(score.test.f1)}.")
    if score.error is not None:
        kind = f", {score.error.kind}" if score.error.kind else ""
        lines.append(f"Error: {score.error.category}{kind}. {score.error.evidence}".rstrip())
    if score.error is None or score.error.category not in _NOTHING_TO_NOTE:
        lines += [f"Note: {text}." for text in _flag_texts(score.flags)]
    if score.fidelity is not None:
        lines += map(_difference_text, score.fidelity.differences[:_DIFFERENCES_SHOWN])
    return lines


def _rate_line(name: str, report: ExecutionReport | ExistenceReport, of: str) -> str:
    return f"{name} {_rate_text(report.rate)}: {of}; without the test {_rate_text(report.rate_without_test)}."


def _rate_lines(score: GistScore) -> Iterator[str]:
    execution = score.execution
    if execution is not None:
        of = f"{execution.executed} of {execution.executable} executable lines"
        yield _rate_line("Line execution", execution, of)
    existence = score.existence
    if existence is not None and existence.lines:
        glue = len(existence.glue)
        of = f"{existence.existing} of {existence.counted} lines, {glue} of the others glue"
        yield _rate_line("Line existence", existence, of)


def _difference_text(one: Difference) -> str:
    where = f" of {one.test}" if one.test else ""
    expected = bounded(one.expected, _CHARACTERS_SHOWN).rstrip()
    found = bounded(one.found, _CHARACTERS_SHOWN).rstrip()
    return f"\nThe {one.what}{where} differs. On the original:\n{expected}\nOn the gist:\n{found}"


def _flag_texts(flags: Flags) -> list[str]:
    """Return the flags in words, fakes first."""
    found = []
    if flags.mocked:
        found.append(f"it makes a fake of the codebase ({flags.mocked})")
    if flags.invented_operand:
        invented = flags.invented_operand
        found.append(f"the test uses an object of a class that the codebase does not have ({invented})")
    if flags.equal_to_all:
        found.append(f"it has something that equals whatever it is compared with ({flags.equal_to_all})")
    if flags.baked_in:
        found.append(f"a line that the codebase does not have contains a new value ({flags.baked_in})")
    return found + [text for name, text in _FLAGS.items() if getattr(flags, name)]


def _rate_text(rate: float | None) -> str:
    if rate is None:
        return "none"
    return f"{rate:.1f}"
