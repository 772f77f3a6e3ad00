"""How the score of a gist is printed, with its evidence."""

from __future__ import annotations

from collections.abc import Iterable

from gistpoint.core.kinds.gist.evidence import LineEvidence
from gistpoint.core.kinds.gist.execution import ExecutionReport
from gistpoint.core.kinds.gist.existence import ExistenceReport
from gistpoint.core.kinds.gist.judge import GistJudgement
from gistpoint.core.kinds.gist.lines import physical_lines
from gistpoint.core.kinds.gist.score import GistScore
from gistpoint.tui.commands.output import print_table

_MOST = 20


def print_score(judgement: GistJudgement) -> None:
    """Print every figure in a table, each with what speaks for it or against it."""
    score = judgement.score
    rows = [
        ["execution fidelity", str(score.execution_fidelity), _fidelity(judgement)],
        ["self-contained", "yes" if score.self_contained else "no", _containment(judgement)],
        *_rates(score),
    ]
    if score.test is not None:
        rows.append(["test score", f"{score.test.recall:.1f}", f"F1 {score.test.f1:.1f}"])
    if score.error is not None:
        category = f"{score.error.category} {score.error.kind}".rstrip()
        rows.append(["error", category, score.error.evidence.splitlines()[0][:300] if score.error.evidence else ""])
    flags = {name: getattr(score.flags, name) for name in score.flags.__slots__}
    rows += [["flag", name, told if isinstance(told, str) else ""] for name, told in flags.items() if told]
    if score.flags.vacuous is None and score.execution_fidelity:
        rows.append(["vacuity", "unknown", "no function of the gist could be changed"])
    print_table(["figure", "value", "evidence"], rows)


def _fidelity(judgement: GistJudgement) -> str:
    fidelity = judgement.score.fidelity
    if fidelity is None:
        return "nothing was run"
    if judgement.flips:
        return "two runs of the same text came out differently"
    if not fidelity.differences:
        return "like the original in all that is compared"
    first = fidelity.differences[0]
    where = f"{first.test}: " if first.test else ""
    told = f"{where}{first.what} was {first.found[:120]!r}, expected {first.expected[:120]!r}"
    reason = judgement.trial.reason if judgement.trial else ""
    return f"{told} ({len(fidelity.differences)} differences) {reason}".rstrip()


def _containment(judgement: GistJudgement) -> str:
    if judgement.trial is None:
        return ""
    isolation = judgement.trial.run.isolation
    parts = {
        "imports refused": isolation.refused_imports,
        "files refused": isolation.original_reads,
        "network refused": isolation.network,
    }
    return "; ".join(f"{name}: {', '.join(found)}" for name, found in parts.items() if found)


def _rates(score: GistScore) -> list[list[str]]:
    rows: list[list[str]] = []
    if score.fidelity is not None and score.fidelity.pass_rate is not None:
        told = f"{score.fidelity.passed} of {score.fidelity.instances} instances"
        rows.append(["pass rate", f"{score.fidelity.pass_rate:.1f}", told])
    execution, existence = score.execution, score.existence
    if execution is not None and execution.rate is not None:
        idle = [str(one.line.first) for one in execution.lines if one.counts and not one.ran]
        told = f"{execution.executed} of {execution.executable} lines; {_beside(execution)}"
        rows.append(["line execution", f"{execution.rate:.1f}", told + _some("; never ran: ", idle)])
    if existence is not None and existence.rate is not None:
        rows.append(["line existence", f"{existence.rate:.1f}", _existence(existence)])
    return rows


def _existence(report: ExistenceReport) -> str:
    missing = [str(one.line.first) for one in report.lines if not one.exists]
    told = f"{report.existing} of {report.counted} lines; {_beside(report)}; glue {len(report.glue)}"
    return told + _some("; not found: ", missing)


def _beside(report: ExecutionReport | ExistenceReport) -> str:
    """Return the figures that stand beside a rate."""
    without = "-" if report.rate_without_test is None else f"{report.rate_without_test:.1f}"
    return f"without the test {without}; as the paper counts lines {report.paper.rate or 0:.1f}"


def _some(head: str, numbers: list[str]) -> str:
    more = f" and {len(numbers) - _MOST} more" if len(numbers) > _MOST else ""
    return f"{head}{', '.join(numbers[:_MOST])}{more}" if numbers else ""


def print_evidence(lines: Iterable[LineEvidence], gist: str) -> None:
    """Print for each logical line of a gist whether it ran, whether it exists, and where."""
    text = physical_lines(gist)
    rows = []
    for one in lines:
        ran = {True: "ran", False: "idle", None: ""}[one.ran]
        original = f"{one.original.path}:{one.original.line}" if one.original else ""
        rows.append([str(one.first), ran, one.existence.name.lower(), original, text[one.first - 1].strip()[:60]])
    print_table(["line", "execution", "existence", "original", "text"], rows)
