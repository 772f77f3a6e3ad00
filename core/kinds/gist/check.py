"""The check and the trials of a gist task: scores of gists whose score is known beforehand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gistpoint.core.entrypoints.runs import GistTrial, TestsRun
from gistpoint.core.kinds.gist.failures import ErrorCategory
from gistpoint.core.kinds.gist.fidelity import Fidelity
from gistpoint.core.kinds.gist.judge import GistJudge, sources_of
from gistpoint.core.kinds.gist.original_test import inheriting_test
from gistpoint.core.kinds.gist.rates import ExecutionReport, ExistenceReport
from gistpoint.core.kinds.gist.reference import pasted
from gistpoint.core.kinds.gist.score import GistJudgement, GistVerdict
from gistpoint.core.kinds.gist.trace import read_trace
from gistpoint.core.kinds.kind import ScoredText, Trial, TrialSubject
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext
from gistpoint.core.tasks.leaks import CheckFinding, leaks_of
from gistpoint.core.text import visible_line
from gistpoint.core.trees import SourceTree

_LOOK = """
import importlib.util, sys
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name)
    except Exception as error:
        found = repr(error)
    if found is not None:
        print(name, getattr(found, "origin", found) or list(found.submodule_search_locations))
print("looked for", len(sys.argv) - 1)
"""
_LOOKED = "looked for {}\n"
_MOST = 500
PASTED_LEAST = 99.0
"""The minimum line existence, in percent, of the original's own modules pasted into one file."""


def gist_findings(judge: GistJudge, run: RunContext) -> Iterator[CheckFinding]:
    """Yield the finding of each check of a gist task as it is made.

    Raises `InfrastructureError` if the isolation failed, and `CancelledError` when cancelled.
    """
    tree = SourceTree.open(judge.task.tree_path)
    found = list(leaks_of(tree, ()))
    yield CheckFinding(
        "tree", not found, "; ".join(found[:5]) or f"{len(tree.members)} files, no history and no bytecode"
    )
    probes = _Probes(judge, run)
    # Gists that must fail come first, then those that must score well.
    yield probes.empty()
    yield probes.importing()
    if judge.task.environment.image is not None:
        yield probes.absent()
    yield probes.pasted(sources_of(tree))
    yield probes.reference()


class _Probes:
    """The checks of a task with gists whose score is known beforehand."""

    def __init__(self, judge: GistJudge, run: RunContext) -> None:
        self._judge = judge
        self._run = run

    def _judged(self, name: str, gist: str) -> GistJudgement:
        self._run.step(f"checking that {name}")
        judgement = self._judge.judge(gist, run=self._run.quiet)
        self._run.check()
        return judgement

    def empty(self) -> CheckFinding:
        """Return the finding on whether a missing gist is reported as `file_creation`."""
        name = "a missing gist scores 0"
        error = self._judged(name, "").score.error
        if error is None:
            return CheckFinding(name, False, "it is scored as faithful")
        return CheckFinding(name, error.category is ErrorCategory.FILE_CREATION, error.category)

    def importing(self) -> CheckFinding:
        """Return the finding on whether a gist that imports the codebase fails at the refused import."""
        answer = self._judge.answer
        test = inheriting_test(answer.test) if answer.test else ""
        names = "\n".join(f"import {name}" for name in answer.owned)
        name = "the codebase can't be imported"
        judgement = self._judged(name, f"{names}\n\n\n{test}")
        seen = judgement.trial.run.isolation.refused_imports if judgement.trial else ()
        if not seen:
            return CheckFinding(name, False, "nothing was refused")
        error = judgement.score.error
        right = error is not None and error.category is ErrorCategory.IMPORT_ERROR
        return CheckFinding(name, right, f"refused: {', '.join(seen)}")

    def absent(self) -> CheckFinding:
        """Return the finding on whether the image has a copy of the codebase, without the import blocker."""
        name = "the image contains no copy of the codebase"
        owned = self._judge.answer.owned
        self._run.step(f"checking that {name}")
        command = shlex.join(["python", "-c", _LOOK, *owned])
        environment = self._judge.task.environment
        timeout_s = self._judge.answer.timeout_s
        output = self._judge.runner.run_command(
            command, environment, execution=True, timeout_s=timeout_s, cancel=self._run.cancel
        )
        if output.text == _LOOKED.format(len(owned)):
            return CheckFinding(name, True, f"none of {', '.join(owned)} is found")
        seen = ", ".join(line for line in output.text.splitlines() if not line.startswith("looked for"))
        return CheckFinding(name, False, visible_line(seen or "the search was not finished")[:_MOST])

    def pasted(self, sources: dict[str, str]) -> CheckFinding:
        """Return the finding on whether executed modules pasted into one file count as existing code."""
        name = "pasted modules exist"
        answer = self._judge.answer
        score = self._judged(name, pasted(sources, read_trace(answer.trace), answer.owned)).score
        rate = score.existence.rate if score.existence else None
        figure = f"existence {rate:.1f}" if rate is not None else "no figure"
        error = f", {score.error.category} {score.error.kind}".rstrip() if score.error else ""
        right = rate is not None and rate >= PASTED_LEAST
        return CheckFinding(name, right, f"{figure}, fidelity {score.execution_fidelity}{error}")

    def reference(self) -> CheckFinding:
        """Return the finding on whether the reference gist, if there is one, is faithful and not vacuous."""
        name = "reference gist is faithful"
        reference = self._judge.answer.reference
        if reference is None:
            return CheckFinding(
                name, True, "there is none: `gistpoint gist reference` looks for one", reduced=True
            )
        if not reference.faithful:
            return CheckFinding(name, True, f"none was found: {reference.reason}", reduced=True)
        score = self._judged(name, reference.text).score
        figures = f"execution {_rate(score.execution)}, existence {_rate(score.existence)}"
        vacuous = ", and vacuous" if score.flags.vacuous else ""
        return CheckFinding(name, score.execution_fidelity == 1 and not vacuous, figures + vacuous)


def _rate(report: ExecutionReport | ExistenceReport | None) -> str:
    if report is None or report.rate is None:
        return "unknown"
    return f"{report.rate:.1f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTrial(Trial):
    """One run of a gist task; the trial is solved if the run matches the record made with the task.

    `odd` are the tests that differ or, for a command that is not a test, the properties that differ.
    """

    verdict: GistVerdict | None = None
    """The score of the gist; None for the original."""


def score_trial(
    judge: GistJudge,
    subject: TrialSubject,
    text: str,
    *,
    run: RunContext = UNATTENDED,
) -> ScoreTrial:
    """Return a trial of a gist, which is scored like a hand-in. Raises `CancelledError` when cancelled."""
    verdict = judge.verdict(text, thorough=True, run=run)
    run.check()
    score = verdict.score
    fidelity = Fidelity(())
    execution = None
    existence = None
    if score is not None:
        fidelity = score.fidelity or fidelity
        execution = score.execution.rate if score.execution is not None else None
        existence = score.existence.rate if score.existence is not None else None
    return ScoreTrial(
        subject=subject,
        status=RunStatus.FINISHED if score is not None else verdict.status,
        backend=judge.runner.backend,
        solved=verdict.solved,
        score=float(verdict.solved),
        passing=fidelity.passed,
        failing=fidelity.instances - fidelity.passed,
        odd=fidelity.differing,
        seconds=verdict.seconds,
        reason=verdict.reason,
        scored=ScoredText(text, execution, existence),
        verdict=verdict,
    )


def original_trial(judge: GistJudge, *, cancel: CancelToken = NEVER) -> ScoreTrial:
    """Return a trial of the original: its command is run again, and compared with the record.

    Raises `CancelledError` when cancelled.
    """
    tree = SourceTree.open(judge.task.tree_path)
    run = judge.runner.run_original(
        tree, judge.task.environment, judge.entrypoint, timeout_s=judge.answer.timeout_s, cancel=cancel
    )
    cancel.check()
    fidelity = judge.fidelity(GistTrial(run.run, run.seconds, places=run.places))
    count = len(run.run.tests) if isinstance(run.run, TestsRun) else 0
    return ScoreTrial(
        subject=TrialSubject.ORIGINAL,
        status=run.run.status,
        backend=judge.runner.backend,
        solved=fidelity.value == 1,
        score=float(fidelity.value == 1),
        passing=fidelity.passed,
        failing=max(0, count - fidelity.passed),
        odd=fidelity.differing,
        seconds=run.seconds,
        reason=run.reason,
    )
