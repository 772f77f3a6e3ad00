"""The isolation of this machine as a value that travels to workers: each makes its own runner from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.cancel import CancelToken
from gistpoint.core.generation.intake import Intake
from gistpoint.core.generation.proof import corrupted_tree
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.ports import Prober, ProbeFailure, ProbeReport, RunRequest
from gistpoint.core.tasks.model import Target
from gistpoint.sandbox.candidates.recording import SuiteTestMapper
from gistpoint.sandbox.environments import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner


@dataclass(frozen=True, slots=True)
class SandboxBench:
    """Implements `gistpoint.core.generation.campaign.bench.Bench`."""

    backend: str
    """Name of the backend, as `choose` takes it."""
    consented: bool
    """Whether the user agreed to run without isolation."""
    cache: Path

    def runner(self) -> SuiteRunner:
        """Return what runs whole suites. Raises `SandboxUnavailableError`."""
        return SuiteRunner(choose(self.backend, consented=self.consented), EnvironmentStore(self.cache))

    def mapper(self) -> SuiteTestMapper:
        """Return what records which tests enter which functions."""
        return SuiteTestMapper(choose(self.backend, consented=self.consented), EnvironmentStore(self.cache))

    def prober(self, intake: Intake) -> Prober:
        """Return what decides candidates of this library."""
        return SelectProber(intake, self.runner())


class SelectProber:
    def __init__(self, intake: Intake, runner: SuiteRunner) -> None:
        self.intake = intake
        self.runner = runner

    def decide(
        self,
        targets: tuple[Target, ...],
        select: tuple[str, ...] = (),
        *,
        stop_after: int | None = None,
        cancel: CancelToken | None = None,
    ) -> ProbeReport:
        intake = self.intake
        report = self.runner.run(
            RunRequest(
                corrupted_tree(intake.repository.tree, targets),
                intake.repository.environment,
                intake.timeout_s,
                select=select,
            ),
            cancel=cancel,
        )
        if report.status is not RunStatus.FINISHED:
            return ProbeReport(report.status, seconds=report.seconds, how="fresh", reason=report.reason)
        names = tuple(target.qualname.rpartition(".")[2] for target in targets)
        failed = {
            r.id: ProbeFailure(
                r.message, "AssertionError" in r.message or "E   assert" in r.message,
                any(f"in {name}\n" in r.message for name in names),
            )
            for r in report.results.values() if r.id in select and r.outcome is not Outcome.PASSED
        }
        return ProbeReport(RunStatus.FINISHED, failed, len(report.results), report.seconds, "fresh")

    def close(self) -> None:
        return
