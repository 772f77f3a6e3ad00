"""`gistpoint gist reference` and `score`: make the reference gist of a task, and score a gist."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.making import store_reference
from gistpoint.core.kinds.gist.rates import ExecutionReport, ExistenceReport
from gistpoint.core.kinds.gist.score import (
    GistJudgement,
    GistScore,
    LineEvidence,
    evidence_rows,
    line_evidence,
    score_record,
)
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.requests import IsolationChoice, Positive, Request
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.model import Answer
from gistpoint.core.text import plural, visible_line
from gistpoint.object_graph import build_entrypoint_runner
from gistpoint.sessions.services import is_our_demo
from gistpoint.tui.commands.arguments import ISOLATION, JSON, TASK
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.gist_listing import find_gist, reference_record
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import for_output, print_json, print_table
from gistpoint.tui.commands.progress import long_work


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRequest(Request):
    """A request to make the reference gist of a task, and to reduce it for up to `seconds`."""

    task: str
    seconds: Positive = 120.0
    show: bool = False
    json: bool = False
    isolation: IsolationChoice = field(default_factory=IsolationChoice)


def reference(request: ReferenceRequest) -> int:
    """Make the reference gist of a task, and store it with the answer unless a better one is stored.

    Return 1 if the stored gist is not faithful.
    """
    answer, judge = _opened(request.task, request.isolation)
    with long_work(quiet=request.json, kept="Nothing was written.") as work:
        runs = 0

        def on_query(query: int, lines: int) -> None:
            nonlocal runs
            runs = query
            work.progress.detail(f"run {query}: {plural(lines, 'line')}")

        work.progress.stage(f"reference gist of {judge.task.short_id}")
        found = store_reference(judge, answer, request.seconds, on_query, work.run)
    if request.json:
        values = {"id": judge.task.id, "runs": runs, **(reference_record(found) or {})}
        print_json("gistpoint.gist-reference/1", {**values, **({"text": found.text} if request.show else {})})
    else:
        if request.show:
            sys.stdout.writelines(for_output(io.StringIO(found.text)))
        rates = f"execution {found.line_execution or 0:.1f}, existence {found.line_existence or 0:.1f}"
        outcome = f"faithful, {rates}" if found.faithful else f"not faithful: {found.reason}"
        summary = f"{judge.task.short_id}: {outcome} ({plural(runs, 'run')}, {found.seconds:.0f} s)"
        print(visible_line(summary), file=sys.stderr if request.show else sys.stdout)
    return DONE if found.faithful else NEGATIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGist(Request):
    """A request to score a file as a gist of a task."""

    task: str
    file: str
    lines: bool = False
    json: bool = False
    isolation: IsolationChoice = field(default_factory=IsolationChoice)


def score(request: ScoreGist) -> int:
    """Score a gist, and print each figure with its evidence. Return 1 if the gist is not faithful.

    Raises `UserError` if the file can't be read as UTF-8 text.
    """
    _, judge = _opened(request.task, request.isolation)
    try:
        gist = path_of(request.file).read_text("utf-8")
    except OSError as error:
        raise UserError(
            f"{request.file} can't be read: {error.strerror}.", hint="Name the file of a gist."
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{request.file} is not UTF-8 text.", hint="A gist is a Python file in UTF-8."
        ) from error
    with long_work(quiet=request.json, kept="Nothing was scored.") as work:
        judgement = judge.judge(gist, run=RunContext(work.cancel, lambda at: work.progress.stage(at.phase)))
    lines = line_evidence(judgement.score, judgement.spliced)
    if request.json:
        record = {**score_record(judgement.score), "flips": judgement.flips, "lines": evidence_rows(lines)}
        print_json(
            "gistpoint.gist-score/1", {"id": judge.task.id, "backend": judge.runner.backend.name, **record}
        )
    else:
        print_score(judgement)
        if request.lines:
            print_evidence(lines, gist)
    return DONE if judgement.score.execution_fidelity else NEGATIVE


def _opened(name: str, isolation: IsolationChoice) -> tuple[Answer, GistJudge]:
    """Return the answer of a gist task, and the judge, which contains the task."""
    locations = Locations.of_user()
    task = find_gist(name)
    answer = read_answer(task)
    imaged = task.environment.image is not None
    runner = build_entrypoint_runner(isolation, demo=is_our_demo(task, locations), image=imaged)
    return answer, GistJudge(task, gist_answer(answer), runner)


_MOST = 20


def print_score(judgement: GistJudgement) -> None:
    """Print a table of all figures, with the evidence for each."""
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
        rows.append(
            ["error", category, score.error.evidence.splitlines()[0][:300] if score.error.evidence else ""]
        )
    flags = {name: getattr(score.flags, name) for name in score.flags.__slots__}
    rows += [["flag", name, note if isinstance(note, str) else ""] for name, note in flags.items() if note]
    if score.flags.vacuous is None and score.execution_fidelity:
        rows.append(["vacuity", "unknown", "no function of the gist could be changed"])
    print_table(["figure", "value", "evidence"], rows)


def _fidelity(judgement: GistJudgement) -> str:
    fidelity = judgement.score.fidelity
    if fidelity is None:
        return "nothing was run"
    if judgement.flips:
        return "two runs of the same text had different results"
    if not fidelity.differences:
        return "like the original in everything that is compared"
    first = fidelity.differences[0]
    where = f"{first.test}: " if first.test else ""
    words = f"{where}{first.what} was {first.found[:120]!r}, expected {first.expected[:120]!r}"
    reason = judgement.trial.reason if judgement.trial else ""
    return f"{words} ({plural(len(fidelity.differences), 'difference')}) {reason}".rstrip()


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
        words = f"{score.fidelity.passed} of {score.fidelity.instances} instances"
        rows.append(["pass rate", f"{score.fidelity.pass_rate:.1f}", words])
    if score.instance:
        rows.append(
            ["its parameter", str(score.instance_fidelity), f"{score.instance}, which the brief names"]
        )
    execution, existence = score.execution, score.existence
    if execution is not None and execution.rate is not None:
        idle = [str(one.line.first) for one in execution.lines if one.counts and not one.ran]
        words = f"{execution.executed} of {execution.executable} lines; {_other_rates(execution)}"
        rows.append(["line execution", f"{execution.rate:.1f}", words + _some("; never ran: ", idle)])
    if existence is not None and existence.rate is not None:
        rows.append(["line existence", f"{existence.rate:.1f}", _existence(existence)])
    return rows


def _existence(report: ExistenceReport) -> str:
    missing = [str(one.line.first) for one in report.lines if not one.exists]
    words = f"{report.existing} of {report.counted} lines; {_other_rates(report)}; glue {len(report.glue)}"
    return words + _some("; not found: ", missing)


def _other_rates(report: ExecutionReport | ExistenceReport) -> str:
    """Return, in words, the rate without the test and the rate as the paper counts lines."""
    without = "-" if report.rate_without_test is None else f"{report.rate_without_test:.1f}"
    return f"without the test {without}; as the paper counts lines {report.paper.rate or 0:.1f}"


def _some(head: str, numbers: list[str]) -> str:
    more = f" and {len(numbers) - _MOST} more" if len(numbers) > _MOST else ""
    return f"{head}{', '.join(numbers[:_MOST])}{more}" if numbers else ""


def print_evidence(lines: Iterable[LineEvidence], gist: str) -> None:
    """Print for each logical line of a gist whether it ran, and where the original contains it."""
    text = physical_lines(gist)
    rows = []
    for one in lines:
        ran = {True: "ran", False: "idle", None: ""}[one.ran]
        original = f"{one.original.path}:{one.original.line}" if one.original else ""
        rows.append(
            [str(one.first), ran, one.existence.name.lower(), original, text[one.first - 1].strip()[:60]]
        )
    print_table(["line", "execution", "existence", "original", "text"], rows)


REFERENCE = CliCommand(
    ReferenceRequest,
    reference,
    {
        "task": TASK,
        "seconds": option("time for reducing the gist (default: {default})", metavar="S"),
        "show": option("print the gist", "--print"),
        "json": JSON,
        "isolation": ISOLATION,
    },
    about="Extracts the code that the trace reached, inlines it into one file, and reduces it as long as"
    " the score stays the same. The result is written next to the task's answer. The exit code is 1"
    " if no faithful gist was found. Ctrl+C stops the search.",
)
SCORE = CliCommand(
    ScoreGist,
    score,
    {
        "task": TASK,
        "file": argument("FILE", "the gist"),
        "lines": option("print the evidence for every line"),
        "json": JSON,
        "isolation": ISOLATION,
    },
    about="Prints every figure with its evidence. The exit code is 1 if the gist is not faithful.",
)
