"""`gistpoint gist new`, `reference` and `score`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.lines import physical_lines
from gistpoint.core.kinds.gist.model import (
    is_gist,
)
from gistpoint.core.kinds.gist.rates import ExecutionReport, ExistenceReport
from gistpoint.core.kinds.gist.reference_judge import reference_of
from gistpoint.core.kinds.gist.references import ReferenceMaker
from gistpoint.core.kinds.gist.score import (
    GistJudgement,
    GistScore,
    LineEvidence,
    evidence_rows,
    line_evidence,
    score_record,
)
from gistpoint.core.locations import Locations
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.text import visible_line
from gistpoint.object_graph import build_entrypoint_runner
from gistpoint.sessions.services import is_our_demo
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.commands.arguments import TASK_HELP, add_isolation, isolation_of, positive
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import for_output, print_json, print_table
from gistpoint.tui.commands.progress import long_work

if TYPE_CHECKING:
    pass


def reference_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint gist reference`."""
    parser.description = (
        "Extracts what the trace reached, inlines it into one file, and reduces it while the score holds. "
        "Written beside the task's answer. Exit code 1 if no faithful one was found. Ctrl-C stops it."
    )
    parser.add_argument("task", metavar="TASK", help=TASK_HELP)
    parser.add_argument("--seconds", type=positive, default=120.0, metavar="S", help="for reducing it (default: 120)")
    parser.add_argument("--print", dest="show", action="store_true", help="print the gist")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)
    return reference


def reference(options: argparse.Namespace) -> int:
    """Make the reference gist of a task and write it into the answer."""
    task, answer, judge = _judge(options)
    with long_work(quiet=getattr(options, "json", False), kept="Nothing was written.") as work:
        runs = 0

        def tell(query: int, lines: int) -> None:
            nonlocal runs
            runs = query
            work.progress.detail(f"run {query}: {lines} lines")

        work.progress.stage(f"reference gist of {task.short_id}")
        found = reference_of(
            judge, lambda given: ReferenceMaker(given, time.monotonic, options.seconds, tell, work.cancel)
        )
    write_task(task, replace(answer, of_kind=replace(judge.answer, reference=found)))
    values = {key: value for key, value in asdict(found).items() if key != "text"}
    if options.json:
        text = {"text": found.text} if options.show else {}
        print_json("gistpoint.gist-reference/1", {"id": task.id, "runs": runs, **values, **text})
    else:
        if options.show:
            sys.stdout.writelines(for_output(found.text.splitlines(keepends=True)))
        rates = f"execution {found.line_execution or 0:.1f}, existence {found.line_existence or 0:.1f}"
        told = f"faithful, {rates}" if found.faithful else f"not faithful: {found.reason}"
        summary = f"{task.short_id}: {told} ({runs} runs, {found.seconds:.0f} s)"
        print(visible_line(summary), file=sys.stderr if options.show else sys.stdout)
    return DONE if found.faithful else NEGATIVE


def score_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint gist score`."""
    parser.description = "Every figure with what speaks for it. Exit code 1 if the gist is not faithful."
    parser.add_argument("task", metavar="TASK", help=TASK_HELP)
    parser.add_argument("file", metavar="FILE", help="the gist")
    parser.add_argument("--lines", action="store_true", help="the evidence for every line")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)
    return score


def score(options: argparse.Namespace) -> int:
    """Score a gist and print every figure with its evidence."""
    task, _, judge = _judge(options)
    try:
        gist = Path(options.file).read_text("utf-8")
    except OSError as error:
        raise UserError(f"{options.file} can't be read: {error.strerror}.", hint="Name the file of a gist.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{options.file} is not UTF-8 text.", hint="A gist is a Python file in UTF-8.") from error
    with long_work(quiet=getattr(options, "json", False), kept="Nothing was scored.") as work:
        judgement = judge.judge(gist, run=RunContext(work.cancel, lambda at: work.progress.stage(at.phase)))
    lines = line_evidence(judgement.score, judgement.spliced)
    if options.json:
        record = {**score_record(judgement.score), "flips": judgement.flips, "lines": evidence_rows(lines)}
        print_json("gistpoint.gist-score/1", {"id": task.id, "backend": judge.runner.backend.name, **record})
    else:
        print_score(judgement)
        if options.lines:
            print_evidence(lines, gist)
    return DONE if judgement.score.execution_fidelity else NEGATIVE


def _judge(options: argparse.Namespace) -> tuple[Task, Answer, GistJudge]:
    locations = Locations.of_user()
    task = TaskStore(locations.tasks, demo=locations.demo).find(options.task)
    if not is_gist(task):
        raise UserError(f"The task {task.short_id} is not a gist.", hint="`gistpoint gist list` shows which are.")
    answer = read_answer(task)
    imaged = task.environment.image is not None
    runner = build_entrypoint_runner(isolation_of(options), demo=is_our_demo(task, locations), image=imaged)
    return task, answer, GistJudge(task, gist_answer(answer), runner)


_MOST = 20


def print_score(judgement: GistJudgement) -> None:
    """Print every figure in a table, each with the evidence for or against it."""
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
    """Return the figures that are printed beside a rate."""
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
