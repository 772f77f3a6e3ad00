"""`gistpoint rescore`: judge the results of other harnesses with gistpoint's own judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gistpoint.core.kinds.titles import author_title
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import plural, visible_line
from gistpoint.object_graph import build_services
from gistpoint.sessions.rescoring import RescoredResult, RescoreResults, Rescoring, figure
from gistpoint.tui.commands.arguments import ISOLATION, JSON
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_records, print_text
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.tables import Column

_COLUMNS: tuple[Column[RescoredResult], ...] = (
    Column("task", lambda row: row.task.short_id),
    Column("title", lambda row: author_title(row.task)),
    Column("harness", lambda row: row.returned.harness),
    Column("run", lambda row: visible_line(row.returned.run)[:40]),
    Column("theirs", lambda row: figure(row.returned.solved, row.returned.score)),
    Column("ours", lambda row: figure(row.result.solved, row.result.score) if row.result else "-"),
    Column("", lambda row: row.noted),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreRequest(Request):
    """A request to judge the results of another harness again."""

    results: RescoreResults
    json: bool = False
    isolation: IsolationChoice


def rescore(request: RescoreRequest) -> int:
    """Judge all results, record the outcomes, and print them. Return 1 if any differs from the harness's."""
    found = Rescoring(build_services(request.isolation), request.results)
    with long_work(quiet=request.json, kept="The results judged so far are kept.", asks_token=False) as work:
        work.progress.stage("judging results")

        def begin(number: int, total: int, task: Task) -> None:
            work.progress.count(number, total, task.short_id)

        found.judge(begin)
    if request.json:
        rows = [_json(row) for row in found.rows]
        left_out = [{"name": one.name, "why": one.why} for one in found.left_out]
        print_json(
            "gistpoint.external-results/1",
            {
                "results": rows,
                "unknown": len(left_out),
                "left_out": left_out,
                "problems": list(found.problems),
            },
        )
    else:
        print_records(_COLUMNS, found.rows)
        print(_summary(found))
        for line in _not_judged(found):
            print_text(line)
    return NEGATIVE if any(row.differs for row in found.rows) else DONE


def _summary(found: Rescoring) -> str:
    """Return a line with the numbers of solved tasks and, if tasks have no result, a line that names them."""
    judged = [row.result for row in found.rows if row.result is not None]
    solved_elsewhere = [row.returned.solved for row in found.rows if row.returned.solved is not None]
    line = f"Solved: {sum(one.solved for one in judged)} of {len(judged)} by gistpoint's judge"
    if suspicious := sum(one.solved and bool(one.suspicious) for one in judged):
        line += f" ({suspicious} suspicious)"
    if solved_elsewhere:
        line += f", {sum(solved_elsewhere)} of {len(solved_elsewhere)} by the harness's"
    there = {row.task.id for row in found.rows}
    missing = ", ".join(task.short_id for task in found.tasks if task.id not in there)
    return f"{line}.\nWithout a result: {missing}." if missing else f"{line}."


def _not_judged(found: Rescoring) -> Iterator[str]:
    """Yield a line for each reason why results were not judged, with their names, and for each problem."""
    names: dict[str, list[str]] = {}
    for one in found.left_out:
        names.setdefault(one.why, []).append(visible_line(one.name)[:200])
    for why, same in names.items():
        yield f"Not judged: {plural(len(same), 'entry', 'entries')}, {visible_line(why)}: {', '.join(same)}."
    for problem in found.problems:
        yield f"Not read: {visible_line(problem)}"


def _json(row: RescoredResult) -> dict[str, Any]:
    import msgspec

    result = None if row.result is None else msgspec.to_builtins(row.result)
    returned = row.returned
    returned_score = {"solved": returned.solved, "score": returned.score}
    head = {"task": row.task.id, "harness": returned.harness, "run": returned.run, "theirs": returned_score}
    return {**head, "ours": result, "comparison": row.words}


RESCORE = CliCommand(
    RescoreRequest,
    rescore,
    {
        "results": OptionTable(
            {
                "path": argument("PATH", "a Harbor job, a log of Inspect, or SWE-bench predictions"),
                "tasks": option("the exported tasks", metavar="SET", together=True),
                "reviewer": option("a pseudonym (default: the login)", metavar="NAME"),
            }
        ),
        "json": JSON,
        "isolation": ISOLATION,
    },
    about=(
        "Reads the changes that solvers made in another harness, puts them into the repository, and"
        " runs gistpoint's own judge. The results are kept in your own file, never as attempts."
        " The exit code is 1 if a figure differs."
    ),
)
