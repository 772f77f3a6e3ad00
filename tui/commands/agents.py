"""`gistpoint agent`: runs of a model on tasks, carried out, resumed, listed, shown, stopped and watched."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from gistpoint import __version__
from gistpoint.core.agents.settings import SYSTEM_PROMPTS, AgentSettings, TokenPrice
from gistpoint.core.agents.static import StaticRefusedError
from gistpoint.core.attempts.identity import Role
from gistpoint.core.chat import Sampling
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.registry import kind_with_settings
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.readable import stamp
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.text import plural, visible
from gistpoint.sessions.agentruns.figures import AttemptFigures, FiguresOfRun, figures_of, shown
from gistpoint.sessions.agentruns.runner import GRACE_S, AgentPorts, AgentRunner
from gistpoint.sessions.agentruns.store import AgentJob, AgentRun, AgentRunStore, JobStatus, RunSettings, job_of
from gistpoint.sessions.tasks import read_set
from gistpoint.tui.agent_progress import JobLines, JobTable
from gistpoint.tui.agent_running import AgentSolver, FirstRequest, agent_ports, first_request, solver_named
from gistpoint.tui.commands.arguments import TASK_HELP, add_isolation, counted, isolation_of, natural, positive, share
from gistpoint.tui.commands.attempts import attempt_store
from gistpoint.tui.commands.command import DONE, INTERRUPTED, NEGATIVE, Handler
from gistpoint.tui.commands.output import (
    for_output,
    print_json,
    print_records,
    print_table,
    print_text,
    require_terminal,
    write_whole,
)
from gistpoint.tui.commands.solve import read_gist_settings
from gistpoint.tui.object_graph import build_services
from gistpoint.tui.services import Services
from gistpoint.tui.tables import Column

if TYPE_CHECKING:
    from gistpoint.core.tasks.model import Task
    from gistpoint.tui.agent_progress import JobDisplay
    from gistpoint.tui.cluster_runs import ClusterRunner

_AT_ONCE = 4
_MOST_MESSAGES = 5
"""Messages that are told under the figures, since a narrow terminal has no room for them in the table."""

RUN_HELP = "name of a run, as `gistpoint agent list` prints it"


# agent run


def run_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint agent run`."""
    parser.description = (
        "Lets a model attempt tasks with the tools, budgets and judge that a person has. The server is named by "
        "OPENAI_BASE_URL, its key by OPENAI_API_KEY, or both by [llm] of config.toml. The same command again does only "
        "what is missing. The exit code is 0 when every job has ended, 1 when some are left."
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK|SET", help=f"{TASK_HELP}, a folder or a list of tasks")
    parser.add_argument("--demo", action="store_true", help="tasks of the demo, by their names, or all of them")
    parser.add_argument("--name", metavar="RUN", help="name of the run (default: the model's, and a hash)")
    what = parser.add_argument_group("model")
    what.add_argument("--model", default="", help="its name at the server, or builtin:searcher, which needs none")
    what.add_argument("--base-url", default="", metavar="URL", help="the server, as http://localhost:8000/v1")
    what.add_argument("--temperature", type=_from_zero, metavar="T")
    what.add_argument("--top-p", type=share, metavar="P")
    what.add_argument("--seed", type=natural, metavar="S", help="of the first repeat; each further one adds 1")
    what.add_argument("--effort", metavar="low|medium|high", help="reasoning effort")
    what.add_argument("--thinking-tokens", type=counted, metavar="N", help="most tokens of reasoning in a reply")
    what.add_argument("--max-output-tokens", type=counted, metavar="N", help="most tokens of a reply")
    what.add_argument("--context", type=counted, default=128_000, metavar="N", help="tokens (default: 128000)")
    condition = parser.add_argument_group("condition")
    condition.add_argument(
        "--setting", choices=("tools", "static"), default="tools",
        help="static: the files of a gist's trace at once, no tools, one reply",
    )  # fmt: skip
    condition.add_argument(
        "--budgets", type=_budgets, metavar="16/4", help="tool uses and submissions of repairs (default: the task's)"
    )
    condition.add_argument(
        "--tools", choices=kind_with_settings().profiles, default="all",
        help="of gists: what the task offers, or beside those that look and write none, bash, or edit_and_execute",
    )  # fmt: skip
    condition.add_argument("--gist-settings", metavar="FILE", help="settings of gists, as for `gistpoint solve`")
    condition.add_argument("--attempt-tokens", type=counted, metavar="N", help="most tokens of an attempt")
    condition.add_argument("--system", choices=SYSTEM_PROMPTS, default="agent-1", help="the system prompt")
    condition.add_argument("--repeats", type=counted, default=1, metavar="K", help="attempts of each task")
    condition.add_argument(
        "--role", choices=(Role.QA.value, Role.BASELINE.value), default=Role.BASELINE.value, help="default: baseline"
    )
    _add_running(parser)
    parser.add_argument(
        "--price", type=_price, metavar="IN/OUT[/CACHED]", help="US dollars per million tokens, sent, received, cached"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the jobs and the first request; send nothing")
    return run


def _add_running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--at-once", type=counted, metavar="N", help="attempts at once (default: 4; on a cluster, one for each thread)"
    )
    parser.add_argument(
        "--tests-at-once", type=counted, metavar="M", help="test runs at once on a machine (default: one for each core)"
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="make the attempts on the Dask cluster with this scheduler instead"
    )
    parser.add_argument("--max-cost", type=positive, metavar="USD", help="most that the whole run may cost")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)


def run(options: argparse.Namespace) -> int:
    """Queue what is missing, do it, and print the figures."""
    services = build_services(isolation_of(options))
    tasks = _tasks(options, services)
    solver = solver_named(services.locations.config, os.environ, options.model, options.base_url)
    settings = _settings(options, solver)
    jobs = [job_of(task.id, settings, repeat) for task in tasks for repeat in range(1, options.repeats + 1)]
    if options.dry_run:
        return _dry_run(services, tasks, jobs, settings, json=options.json)
    name = options.name or _default_name(settings)
    now = services.clock.utc_ms()
    _require_price(options.max_cost, settings)
    ports = agent_ports(services, solver, settings, tests_at_once=_tests_at_once(options))
    found = AgentRunStore(services.locations.runs).open_or_create(name, settings, now, __version__)
    with found.held():
        found.add(jobs, now)
    return _carry_out(options, found, ports)


def resume_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint agent resume`."""
    parser.description = "Does what is missing of a run, with the settings that it began with."
    parser.add_argument("name", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--base-url", default="", metavar="URL", help="the server, if the settings name another")
    _add_running(parser)
    return resume


def resume(options: argparse.Namespace) -> int:
    """Go on with a run."""
    services = build_services(isolation_of(options))
    found = AgentRunStore(services.locations.runs).open(options.name)
    settings = found.settings
    solver = solver_named(services.locations.config, os.environ, settings.model, options.base_url)
    if solver.host != settings.host:
        raise UserError(
            f"The run {found.name} was begun with a model at another server: {settings.host or 'none'}.",
            hint="Name that one with --base-url, or begin another run: the same name may be another model elsewhere.",
        )
    _require_price(options.max_cost, settings)
    return _carry_out(options, found, agent_ports(services, solver, settings, tests_at_once=_tests_at_once(options)))


def _carry_out(options: argparse.Namespace, found: AgentRun, ports: AgentPorts) -> int:
    if options.max_cost is not None:
        found.limit_cost(options.max_cost)
    if not options.json:
        print(f"run {found.name}: {len(found.left)} of {plural(len(found.jobs), 'job')} to do", flush=True)
    display = JobTable(found) if sys.stdout.isatty() and not options.json else JobLines(found, quiet=options.json)
    runner = _on_cluster(options, found, ports, display) if options.cluster else _here(options, found, ports, display)
    if runner.stopped_by:
        print(f"gistpoint: {visible(runner.stopped_by)}", file=sys.stderr)
    _print_figures(found, figures_of(found, ports.attempts), json=options.json)
    if found.left and not options.json:
        print(f"`gistpoint agent resume {found.name}` goes on.")
    if runner.interrupted:
        return INTERRUPTED
    return NEGATIVE if found.left else DONE


def _here(options: argparse.Namespace, found: AgentRun, ports: AgentPorts, display: JobDisplay) -> AgentRunner:
    runner = AgentRunner(
        found,
        ports,
        at_once=options.at_once or _AT_ONCE,
        max_cost_usd=found.document.max_cost_usd,
        on_job=display.changed,
    )
    with display:
        runner.work(tick=lambda: display.draw(runner.states))
    return runner


def _on_cluster(options: argparse.Namespace, found: AgentRun, ports: AgentPorts, display: JobDisplay) -> ClusterRunner:
    from gistpoint.tui.cluster_runs import ClusterRunner, crew_at, work_tools

    tools = work_tools(options, base_url=options.base_url, tests_at_once=options.tests_at_once or 0)
    with display, crew_at(options.cluster, display.tell) as crew:
        crew.most = options.at_once
        runner = ClusterRunner(
            found, ports, crew, tools, max_cost_usd=found.document.max_cost_usd, on_job=display.changed
        )
        runner.work(tick=lambda: display.draw(runner.states, crew.sent))
    return runner


def _tasks(options: argparse.Namespace, services: Services) -> list[Task]:
    if options.demo:
        from gistpoint.core.demo.tasks import demo_task, unpack_demo

        place = services.locations.demo
        return [demo_task(name, place) for name in options.tasks] or [task for _, task in unpack_demo(place)]
    if not options.tasks:
        raise UserError("No task is named.", hint="Name tasks or sets (`gistpoint task list`), or give --demo.")
    found = read_set(options.tasks, services.tasks)
    for problem in found.problems:
        print(f"gistpoint: left out: {visible(problem)}", file=sys.stderr)
    return list(found.tasks)


def _settings(options: argparse.Namespace, solver: AgentSolver) -> RunSettings:
    sampling = Sampling(
        temperature=options.temperature,
        top_p=options.top_p,
        seed=options.seed,
        max_output_tokens=options.max_output_tokens,
        reasoning_effort=options.effort,
        thinking_tokens=options.thinking_tokens,
    )
    agent = AgentSettings(
        setting=options.setting,
        system=options.system,
        context_tokens=options.context,
        attempt_tokens=options.attempt_tokens,
        sampling=sampling,
        price=options.price or solver.price,
    )
    budgets = options.budgets
    return RunSettings(
        model=solver.name,
        host=solver.host,
        agent=agent,
        role=options.role,
        tool_uses=None if budgets is None else budgets.tool_uses,
        submissions=None if budgets is None else budgets.submissions,
        gist=kind_with_settings().in_profile(
            options.tools, read_gist_settings(options.gist_settings) if options.gist_settings else None
        ),
    )


def _default_name(settings: RunSettings) -> str:
    """Return a name that the same settings always have, so that the same command goes on with the same run."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", settings.model).strip("-._") or "model"
    return f"{words[:60]}-{settings.digest[:8]}"


def _require_price(max_cost: float | None, settings: RunSettings) -> None:
    if max_cost is not None and settings.agent.price is None and settings.host:
        raise UserError(
            "A cost can't be bounded without a price.", hint="Give --price IN/OUT, in US dollars per million tokens."
        )


def _tests_at_once(options: argparse.Namespace) -> int:
    return options.tests_at_once or len(os.sched_getaffinity(0))


def _dry_run(
    services: Services, tasks: Sequence[Task], jobs: Sequence[AgentJob], settings: RunSettings, *, json: bool
) -> int:
    """Print the jobs and the first request of the first of them."""
    requests: dict[str, FirstRequest] = {}
    for task in tasks:
        try:
            requests[task.id] = first_request(services, task, settings)
        except StaticRefusedError as error:
            print(f"gistpoint: left out: {visible(str(error))}", file=sys.stderr)
    jobs = [job for job in jobs if job.task in requests]
    if not jobs:
        raise UserError("No task is left.", hint="The static setting is for gists that fit the context.")
    first = requests[jobs[0].task]
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
    columns: tuple[Column[AgentJob], ...] = (
        Column("task", lambda job: job.task[:12]),
        Column("no", lambda job: str(job.repeat)),
        Column("prompt", lambda job: requests[job.task].sha256[:12]),
        Column("tokens", lambda job: f"about {requests[job.task].tokens:,}"),
    )
    print_records(columns, jobs)
    where = f" at {settings.host}" if settings.host else ""
    print_text(f"{plural(len(jobs), 'job')} for {settings.model}{where}. Nothing was sent.")
    return DONE


# agent list, show, stop


def list_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint agent list`."""
    parser.add_argument("--json", action="store_true", help="as JSON")
    return listing


def listing(options: argparse.Namespace) -> int:
    """Print the runs; one that can't be read has its problem as its state."""
    store = AgentRunStore(Locations.of_user().runs)
    rows = [_listed(store, name) for name in store.names()]
    if options.json:
        print_json("gistpoint.agent_runs/1", {"runs": rows})
    elif not rows:
        print("There are no runs of agents yet. `gistpoint agent run --demo --model builtin:searcher` makes one.")
    else:
        print_table([*rows[0]], [[str(value) for value in row.values()] for row in rows])
    return DONE


def _listed(store: AgentRunStore, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"run": name, "model": "", "host": "", "jobs": 0, "ended": 0, "state": "", "begun": ""}
    try:
        found = store.open(name)
    except UserError as error:
        return row | {"state": f"! {error}"}
    halted = sum(state.status is JobStatus.HALTED for state in found.jobs.values())
    state = "at work" if found.worked_on else f"{len(found.left)} left, {halted} halted" if found.left else "done"
    return row | {
        "model": found.settings.model,
        "host": found.settings.host,
        "jobs": len(found.jobs),
        "ended": len(found.jobs) - len(found.left),
        "state": state,
        "begun": stamp(found.document.created_utc_ms),
    }


def show_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint agent show`."""
    parser.add_argument("name", metavar="RUN", help=RUN_HELP)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--to", choices=("csv",), help="a table of the attempts, to standard output or to -o PATH")
    parser.add_argument("-o", "--output", metavar="PATH", help="file to write")
    return show


def show(options: argparse.Namespace) -> int:
    """Print the figures of a run."""
    found = AgentRunStore(Locations.of_user().runs).open(options.name)
    if options.output and not options.to:
        raise UserError("-o names the file of a table.", hint="Add --to csv.")
    figures = figures_of(found, attempt_store())
    if options.to:
        if options.output:
            write_whole(path_of(options.output), [line.encode() for line in figures.as_csv()])
        else:
            sys.stdout.writelines(for_output(figures.as_csv()))
        return DONE
    _print_figures(found, figures, json=options.json)
    return DONE


def _print_figures(found: AgentRun, figures: FiguresOfRun, *, json: bool) -> None:
    if json:
        settings = msgspec.to_builtins(found.settings)
        print_json("gistpoint.agent_run/1", {"run": found.name, "settings": settings, **figures.as_json()})
        return
    print_records(_ATTEMPTS, figures.attempts)
    settings = found.settings
    about = {"run": found.name, "model": f"{settings.model} {f'at {settings.host}' if settings.host else ''}".strip()}
    messages = Counter(row.message for row in figures.attempts if row.message)
    said = [["message", f"{count}: {message}"] for message, count in messages.most_common(_MOST_MESSAGES)]
    print_table(["what", "value"], [*([*row] for row in (about | dict(shown(figures.totals))).items()), *said])


def _counted(value: float | None, form: str = ",.0f") -> str:
    return "" if value is None else format(value, form)


_ATTEMPTS: tuple[Column[AttemptFigures], ...] = (
    Column("task", lambda r: r.task[:12]),
    Column("no", lambda r: str(r.repeat)),
    Column("result", lambda r: r.result or r.status),
    Column("reason", lambda r: f"{r.reason}, mixed" if r.mixed else r.reason),
    Column("calls", lambda r: _counted(r.calls)),
    Column("subm", lambda r: _counted(r.submissions)),
    Column("tokens", lambda r: _counted(r.tokens)),
    Column("cost", lambda r: _counted(r.cost_usd, ".4f")),
    Column("time", lambda r: _counted(r.wall_s, ".1f")),
    Column("attempt", lambda r: r.attempt),
    Column("message", lambda r: r.message),
)


def stop_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint agent stop`."""
    parser.add_argument("name", metavar="RUN", help=RUN_HELP)
    return stop


def stop(options: argparse.Namespace) -> int:
    """Ask the process that works on a run to stop; return 1 if none does."""
    found = AgentRunStore(Locations.of_user().runs).open(options.name)
    if not found.worked_on:
        print(f"No process works on {found.name}: {len(found.left)} of {plural(len(found.jobs), 'job')} left.")
        return NEGATIVE
    found.ask_to_stop()
    print(f"{found.name} is asked to stop. What is under way has {GRACE_S:.0f} s to finish.")
    return DONE


def watch_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint agent watch`."""
    parser.add_argument("what", metavar="RUN|ATTEMPT", help=f"{RUN_HELP}, or an attempt's id or its beginning")
    add_isolation(parser)
    return watch


def watch(options: argparse.Namespace) -> int:
    """Open the screen that draws a run, or one attempt, as it goes on."""
    from gistpoint.tui.agent_watch_app import AgentWatchApp

    locations = Locations.of_user()
    runs = AgentRunStore(locations.runs)
    run = runs.open(options.what) if options.what in runs.names() else None
    attempt = "" if run is not None else attempt_store().folder(options.what).name
    require_terminal("watch", hint="gistpoint agent show RUN prints a run.")
    services = cache(lambda: build_services(isolation_of(options)))
    app = AgentWatchApp(locations, run=run, attempt=attempt, services=services)
    code = app.run_to_exit_code()
    while app.taken:
        from gistpoint.tui.app import GistpointApp

        GistpointApp(services(), open=app.taken, alone=True).run_to_exit_code()
        app = AgentWatchApp(locations, run=run, attempt=app.taken, services=services, left=True)
        code = app.run_to_exit_code()
    return code


# Values of options


def _budgets(text: str) -> Budgets:
    uses, _, submissions = text.partition("/")
    try:
        return Budgets.of(counted(uses), counted(submissions) if submissions else None)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not tool uses and submissions, such as 16/4") from error


def _price(text: str) -> TokenPrice:
    try:
        values = [_from_zero(part) for part in text.split("/")]
        return TokenPrice(values[0], values[1], values[2] if len(values) > 2 else None)
    except (argparse.ArgumentTypeError, IndexError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a price such as 0.25/2 or 0.25/2/0.025") from error


def _from_zero(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0.0") else positive(text)
