"""The control sample: specimens of what was tried, on the whole suite, compared with what the probe said."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.campaign.trial import Desk
from gistpoint.core.generation.campaign.verdicts import Specimen, Verdict
from gistpoint.core.generation.intake import LOOK
from gistpoint.core.generation.proof import corrupted_tree
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.ports import RunRequest


def sample(verdicts: Iterable[Verdict], count: int, seed: int) -> list[Verdict]:
    """Return up to `count` verdicts with a specimen, kept and dropped alike, as the seed decides."""
    fit = sorted((verdict for verdict in verdicts if verdict.specimen is not None), key=lambda verdict: verdict.key)
    random.Random(f"control {seed}").shuffle(fit)
    return fit[:count]


def compare(desk: Desk, specimen: Specimen) -> dict[str, Any]:
    """Run the whole suite on a specimen; return whether both say the same, and in which ids they differ.

    Where the probe stopped at the number of failing tests that it needed, those must fail here as well, as far as the
    suite comes: it says nothing of the tests behind them, one of which may hang. Else the failing tests must be the
    same ones, and a run that hangs must hang in both.
    """
    intake = desk.library.intake
    request = RunRequest(
        corrupted_tree(intake.repository.tree, specimen.targets),
        intake.repository.environment,
        intake.timeout_s,
        deselect=intake.flaky,
        expected=intake.collected,
        writable=intake.writable,
    )
    report = desk.runner.run(request, cancel=desk.cancel)
    desk.cancel.check()
    if report.status is RunStatus.INFRASTRUCTURE:
        raise InfrastructureError(f"The suite could not be run for the control. {report.reason}", hint=LOOK)
    finished = report.status is RunStatus.FINISHED
    failing = intake.passed - report.passed if finished else frozenset()
    probed = frozenset(specimen.failed)
    if specimen.cut_short and not finished:
        agrees = not any(report.results[id].outcome is Outcome.PASSED for id in probed & report.results.keys())
    elif specimen.status != RunStatus.FINISHED or not finished:
        agrees = specimen.status == report.status
    elif specimen.cut_short:
        agrees = probed <= failing
    else:
        agrees = probed == failing
    return {
        "agrees": agrees,
        "status": report.status.value,
        "probe": specimen.status,
        "only_probe": sorted(probed - failing) if finished else [],
        "only_suite": sorted(failing - probed) if finished and not specimen.cut_short else [],
        "targets": [target.name for target in specimen.targets],
        "seconds": round(report.seconds, 3),
    }


def agreement(comparisons: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the share of comparisons that agree; None for no comparison."""
    if not comparisons:
        return None
    return sum(bool(comparison["agrees"]) for comparison in comparisons) / len(comparisons)
