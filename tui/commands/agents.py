"""`gistpoint agent run` and `resume`: have a model attempt tasks, and complete a run."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from gistpoint.core.agents.scaffolds import Scaffold, command_of
from gistpoint.core.agents.settings import TokenPrice
from gistpoint.core.agents.solvers import SEARCHER
from gistpoint.core.attempts.identity import Role
from gistpoint.core.errors import NoModelError
from gistpoint.core.kinds.registry import kind_with_settings
from gistpoint.core.locations import Locations
from gistpoint.core.requests import Count, IsolationChoice, Positive, Request
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.text import plural, visible
from gistpoint.object_graph import build_services, build_worker_services
from gistpoint.sessions.agentruns.beginning import (
    AgentCondition,
    AgentModel,
    AgentPace,
    BeginAgentRun,
    PlannedRun,
    begin_run,
    first_requests,
    plan_run,
    resume_run,
)
from gistpoint.sessions.agentruns.figures import figures_of
from gistpoint.sessions.agentruns.jobs import AgentJob
from gistpoint.sessions.agentruns.runner import AgentPorts, AgentRunner
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore
from gistpoint.sessions.services import Services
from gistpoint.tui.commands.agent_progress import JobLines, JobTable
from gistpoint.tui.commands.agent_reading import RUN_NAME, print_figures
from gistpoint.tui.commands.arguments import ISOLATION, JSON, TASK_HELP
from gistpoint.tui.commands.command import DONE, INTERRUPTED, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option, reader_of
from gistpoint.tui.commands.output import (
    print_json,
    print_records,
    print_text,
)
from gistpoint.tui.commands.stores import task_titles
from gistpoint.tui.tables import Column

if TYPE_CHECKING:
    from gistpoint.sessions.agentruns.cluster_runs import ClusterRunner
    from gistpoint.tui.commands.agent_progress import JobDisplay

_AT_ONCE = 4

# agent run


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryOutRun(Request):
    """A request to carry out a run.

    With `json`, its figures are printed as JSON, and its progress is not shown.
    """

    pace: AgentPace
    json: bool = False
    isolation: IsolationChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRunRequest(Request):
    """A request to start a run; with `dry_run`, its jobs and its first request are only printed."""

    begin: BeginAgentRun
    carry: CarryOutRun
    price: TokenPrice | None = None
    dry_run: bool = False


def run(request: AgentRunRequest) -> int:
    """Plan a run, carry it out, and print its figures; with `dry_run`, only print what it would do.

    If a run of the demo's tasks names no model and none is configured, a recorded run is played, and the
    built-in solver attempts the tasks. Return 0, 1 if jobs are left, or 130 after Ctrl+C.
    """
    planned_name, runs = (
        None if request.dry_run else request.begin.name,
        AgentRunStore(Locations.of_user().runs),
    )
    with ExitStack() as starting:
        starting.enter_context(runs.starting(planned_name))
        services = build_services(request.carry.isolation)
        try:
            plan = plan_run(
                services,
                request.begin,
                request.price,
                _print_left_out,
                costs_limited=request.carry.pace.max_cost is not None,
            )
        except NoModelError:
            if not _asks_for_the_recording(request):
                raise
            return _play_and_search(services.locations, request)
        if request.dry_run and plan.scaffold is not None:
            return _dry_run_of(plan.scaffold, plan, json=request.carry.json)
        if request.dry_run:
            return _dry_run(services, plan, json=request.carry.json)
        found, ports = begin_run(services, plan, request.carry.pace)
        if planned_name is None:
            starting.enter_context(runs.starting(found.name))
        return _carry_out(request.carry, found, ports, request.begin.model.base_url)


def _play_and_search(locations: Locations, request: AgentRunRequest) -> int:
    """Play the recorded run of a model, and let the built-in solver attempt the demo's tasks."""
    from gistpoint.tui.commands.demo import play_recording

    play_recording(locations)
    searcher = replace(request.begin, model=AgentModel(model=SEARCHER))
    print(f"The built-in solver {SEARCHER} attempts the tasks of the demo now, without a model.\n")
    return run(replace(request, begin=searcher))


def _asks_for_the_recording(request: AgentRunRequest) -> bool:
    """Return whether a request is for the demo and sets no model, condition, dry run or JSON output."""
    begin = request.begin
    has_settings = begin.model != AgentModel() or begin.condition != AgentCondition()
    has_own_output = request.dry_run or request.carry.json
    return begin.demo and not has_settings and not has_own_output


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAgentRun(Request):
    """A request to resume a run."""

    name: str
    base_url: str = ""
    carry: CarryOutRun


def resume(request: ResumeAgentRun) -> int:
    """Resume a run, and print its figures. Return 1 if jobs are left, 130 after Ctrl+C."""
    runs = AgentRunStore(Locations.of_user().runs)
    with runs.starting(request.name if request.name in runs.names() else None):
        services = build_services(request.carry.isolation)
        found, ports = resume_run(services, request.name, request.base_url, request.carry.pace)
        return _carry_out(request.carry, found, ports, request.base_url)


def _print_left_out(problem: str) -> None:
    print(f"gistpoint: left out: {visible(problem)}", file=sys.stderr)


def _carry_out(request: CarryOutRun, found: AgentRun, ports: AgentPorts, base_url: str) -> int:
    if request.pace.max_cost is not None:
        with found.held():  # fails if another process works on the run, whose limit must not change
            found.limit_cost(request.pace.max_cost)
    if not request.json:
        print(f"run {found.name}: {len(found.left)} of {plural(len(found.jobs), 'job')} to do", flush=True)
    display = (
        JobTable(found, task_titles())
        if sys.stdout.isatty() and not request.json
        else JobLines(found, task_titles(), quiet=request.json)
    )
    runner: AgentRunner | ClusterRunner
    if address := request.pace.cluster:
        runner = _on_cluster(request, address, found, ports, display, base_url)
    else:
        runner = _run_here(request.pace, found, ports, display)
    if runner.stopped_by:
        print(f"gistpoint: {visible(runner.stopped_by)}", file=sys.stderr)
    print_figures(found, figures_of(found, ports.attempts), json=request.json)
    if found.left and not request.json:
        print(
            f"`gistpoint agent resume {found.name}` continues. `gistpoint agent settle {found.name}` decides."
        )
    if runner.interrupted:
        return INTERRUPTED
    return NEGATIVE if found.left else DONE


def _run_here(pace: AgentPace, found: AgentRun, ports: AgentPorts, display: JobDisplay) -> AgentRunner:
    if ports.scaffold is not None:
        from gistpoint.tui.mcp.sockets import serving_socket

        ports = replace(ports, serve_tools=serving_socket)
    runner = AgentRunner(
        found,
        ports,
        at_once=pace.at_once or _AT_ONCE,
        max_cost_usd=found.document.max_cost_usd,
        on_job=display.changed,
    )
    with display:
        runner.work(tick=lambda: display.draw(runner.states))
    return runner


def _on_cluster(
    request: CarryOutRun, address: str, found: AgentRun, ports: AgentPorts, display: JobDisplay, base_url: str
) -> ClusterRunner:
    from gistpoint.sandbox.cluster import worker_pool_at
    from gistpoint.sessions.agentruns.cluster_runs import ClusterRunner, work_tools

    tools = work_tools(request.isolation, base_url=base_url, tests_at_once=request.pace.tests_at_once or 0)
    with display, worker_pool_at(address, display.report) as workers:
        workers.most = request.pace.at_once
        runner = ClusterRunner(
            found,
            ports,
            workers,
            tools,
            build_worker_services,
            max_cost_usd=found.document.max_cost_usd,
            on_job=display.changed,
        )
        runner.work(tick=lambda: display.draw(runner.states, workers.sent))
    return runner


def _dry_run(services: Services, plan: PlannedRun, *, json: bool) -> int:
    """Print the jobs of a run, and the first request of its first job."""
    requests = first_requests(services, plan, _print_left_out)
    jobs = [job for job in plan.jobs if job.task in requests]
    first, settings = requests[jobs[0].task], plan.settings
    if json:
        rows = [
            {
                "task": job.task,
                "repeat": job.repeat,
                "job": job.key,
                "prompt_sha256": requests[job.task].sha256,
                "estimated_tokens": requests[job.task].tokens,
            }
            for job in jobs
        ]
        messages = [{"role": message.role, "content": message.content} for message in first.messages]
        values = {"settings": msgspec.to_builtins(settings), "jobs": rows}
        print_json("gistpoint.agent_dry_run/1", {**values, "messages": messages, "tools": [*first.tools]})
        return DONE
    for message in first.messages:
        print_text(f"--- {message.role}\n{message.content}\n")
    print_text(f"--- tools\n{', '.join(str(tool['name']) for tool in first.tools) or 'none'}\n")
    titled = task_titles()
    columns: tuple[Column[AgentJob], ...] = (
        Column("task", lambda job: titled(job.task)),
        Column("no", lambda job: str(job.repeat)),
        Column("prompt", lambda job: requests[job.task].sha256[:12]),
        Column("tokens", lambda job: f"about {requests[job.task].tokens:,}"),
    )
    print_records(columns, jobs)
    where = f" at {settings.host}" if settings.host else ""
    print_text(f"{plural(len(jobs), 'job')} for {settings.model_and_api}{where}. Nothing was sent.")
    return DONE


def _dry_run_of(scaffold: Scaffold, plan: PlannedRun, *, json: bool) -> int:
    """Print the jobs of a run with a scaffold, and the command that it starts for each of them."""
    command, settings = command_of(scaffold), plan.settings
    if json:
        jobs = [{"task": job.task, "repeat": job.repeat, "job": job.key} for job in plan.jobs]
        values = {"settings": msgspec.to_builtins(settings), "jobs": jobs, "command": command}
        print_json("gistpoint.agent_dry_run/1", values)
        return DONE
    name = f"{scaffold.identity.name} {scaffold.identity.version}"
    print_text(f"--- {name}\n{shlex.join(command) if command else 'It starts no program.'}\n")
    titled = task_titles()
    columns: tuple[Column[AgentJob], ...] = (
        Column("task", lambda job: titled(job.task)),
        Column("no", lambda job: str(job.repeat)),
    )
    print_records(columns, plan.jobs)
    where = f" at {settings.host}" if settings.host else ""
    print_text(f"{plural(len(plan.jobs), 'job')} for {name} with {settings.model_and_api}{where}.")
    print_text("It decides itself what it sends to the model. Nothing was sent or started.")
    return DONE


_count: Callable[[str], int] = reader_of(Count)
_positive: Callable[[str], float] = reader_of(Positive)


def _budgets(text: str) -> Budgets:
    uses, _, submissions = text.partition("/")
    try:
        return Budgets.of(_count(uses), _count(submissions) if submissions else None)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of tool uses and one of submissions, such as 16/4"
        ) from error


def _price(text: str) -> TokenPrice:
    try:
        sent, received, *more = [_from_zero(part) for part in text.split("/")]
        if len(more) > 2:
            raise ValueError
        cached = more[0] if more else None
        return TokenPrice(sent, received, cached, more[1] if len(more) == 2 else UNSET)
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a price such as 0.25/2, 0.25/2/0.025 or 3/15/0.3/3.75"
        ) from error


def _from_zero(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0.0") else _positive(text)


_CARRY = OptionTable(
    {
        "pace": OptionTable(
            {
                "at_once": option(
                    "attempts at once (default: 4; on a cluster, one running and one waiting for each"
                    " thread)",
                    metavar="N",
                ),
                "tests_at_once": option(
                    "test runs at once on a machine (default: one for each core)", metavar="M"
                ),
                "cluster": option(
                    "make the attempts on the Dask cluster with this scheduler instead", metavar="ADDRESS"
                ),
                "max_cost": option("the maximum cost of the whole run", metavar="USD"),
                "requests_per_minute": option("the maximum number of requests in any minute", metavar="N"),
                "tokens_per_minute": option(
                    "the maximum number of tokens in any minute, sent and received", metavar="N"
                ),
                "no_stream": option("request whole replies, for servers that send calls in pieces wrongly"),
            }
        ),
        "json": JSON,
        "isolation": ISOLATION,
    }
)
_MODEL = OptionTable(
    {
        "model": option("name of the model on the server, or builtin:searcher"),
        "base_url": option("the server, such as http://localhost:8000/v1", metavar="URL"),
        "api": option(
            "the server's API: OpenAI's, which most servers support, or the vendor's own (default: openai, or"
            " api in config.toml)"
        ),
        "temperature": option(metavar="T", read=_from_zero),
        "top_p": option(metavar="P"),
        "seed": option("the seed of the first repeat; each further one adds 1", metavar="S"),
        "effort": option("reasoning effort", metavar="low|medium|high"),
        "thinking_tokens": option("the maximum number of reasoning tokens in a reply", metavar="N"),
        "max_output_tokens": option("the maximum number of tokens in a reply", metavar="N"),
        "context": option("the server's context in tokens (default: {default})", metavar="N"),
        "scaffold": option(
            "have this other project's agent work with the model, such as mini-swe-agent", metavar="NAME"
        ),
    },
    title="model",
)
_CONDITION = OptionTable(
    {
        "setting": option("static: all files of a gist's trace at once, no tools, one reply"),
        "budgets": option(
            "tool uses and submissions for repairs (default: the task's own)", metavar="16/4", read=_budgets
        ),
        "tools": option(
            "tools for gists: all that the task offers, or only those that read and write, alone (browse)"
            " or with bash or edit_and_execute",
            choices=kind_with_settings().profiles,
        ),
        "gist_settings": option("settings for gists, as for `gistpoint solve`", metavar="FILE"),
        "attempt_tokens": option("the maximum number of tokens in an attempt", metavar="N"),
        "calls": option("text: the model writes its calls as text, for servers that don't read them"),
        "system": option("the system prompt"),
        "repeats": option("how many times each task is attempted", metavar="K"),
        "role": option("default: {default}", choices=(Role.QA.value, Role.BASELINE.value)),
    },
    title="condition",
)
RUN = CliCommand(
    AgentRunRequest,
    run,
    {
        "begin": OptionTable(
            {
                "tasks": argument("TASK|SET", f"{TASK_HELP}, a folder or a list of tasks"),
                "demo": option(
                    "tasks of the demo, named or all; without a model, a recorded attempt and"
                    " builtin:searcher"
                ),
                "name": option("name of the run (default: the model's name and a hash)", metavar="RUN"),
                "model": _MODEL,
                "condition": _CONDITION,
            }
        ),
        "carry": _CARRY,
        "price": option(
            "US dollars per million tokens: sent, received, read from a cache, written to it",
            metavar="IN/OUT[/CACHED[/WRITTEN]]",
            read=_price,
        ),
        "dry_run": option("show the jobs and the first request, or the scaffold's command; send nothing"),
    },
    about=(
        "Has a model attempt tasks with the tools, budgets and judge that a person gets. OPENAI_BASE_URL and"
        " OPENAI_API_KEY (with --api, the vendor's variables) or [llm] in config.toml set the server and its"
        " key. Repeating the command makes missing attempts. The exit code is 1 if some are left."
    ),
)
RESUME = CliCommand(
    ResumeAgentRun,
    resume,
    {
        "name": RUN_NAME,
        "base_url": option("the server, if it is not the one in the settings", metavar="URL"),
        "carry": _CARRY,
    },
    about="Makes the attempts that are missing from a run, with its original settings.",
)
