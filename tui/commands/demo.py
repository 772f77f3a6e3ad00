"""`gistpoint demo`: attempt or play a task on the library that comes with gistpoint."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gistpoint import __version__
from gistpoint.core.attempts.identity import Role
from gistpoint.core.errors import UserError
from gistpoint.core.readable import duration
from gistpoint.core.requests import IsolationChoice, Positive, Request
from gistpoint.core.text import plural
from gistpoint.object_graph import ProbedBackends, build_services
from gistpoint.tui.commands.arguments import ISOLATION, LINES
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import interactive, print_table, print_text

if TYPE_CHECKING:
    from gistpoint.core.attempts.engine import ToolResult
    from gistpoint.core.attempts.events import ModelTurn
    from gistpoint.core.attempts.parts import AttemptCall
    from gistpoint.core.attempts.state import AttemptState
    from gistpoint.core.locations import Locations
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.services import Services

_ANSWER_LINES = 12
_TURN_S = 0.4
"""The pause after each turn on a terminal, in seconds: long enough to see that there are turns."""
_NO_MODEL = "This is a recording: no model is asked, and nothing is sent."


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRequest(Request):
    """A request to open the demo, or to attempt or play one of its tasks."""

    task: str | None = None
    play: bool = False
    speed: Positive | None = None
    lines: bool = False
    isolation: IsolationChoice


def demo(request: DemoRequest) -> int:
    """Open the demo, attempt one of its tasks, or play an attempt. Return the exit code.

    If no task is named and there is no terminal, the tasks of the demo are printed. Raises `UserError` for a
    speed without an attempt to play, and for line mode without a task to attempt.
    """
    if request.lines and (request.play or not request.task):
        raise UserError("--lines needs a task to attempt.", hint="Name a task, and leave out --play.")
    if request.speed is not None and not request.play:
        raise UserError("--speed has no effect without --play.", hint="Add --play, or leave out --speed.")
    if interactive() and not request.play and not request.task:
        return _open(request.isolation)
    if request.task and not request.play:
        from gistpoint.tui.commands.solve import open_attempt

        name = request.task

        def find(services: Services) -> Task:
            from gistpoint.core.demo.tasks import demo_task

            return demo_task(name, services.locations.demo)

        def make(probed: ProbedBackends) -> Services:
            return build_services(request.isolation, role=Role.DEMO, probed=probed)

        return open_attempt(request.isolation, make, find, lines=request.lines)
    services = build_services(request.isolation, role=Role.DEMO)
    if request.play:
        return _play(services, request.task or "", 1.0 if request.speed is None else request.speed)
    from gistpoint.core.demo.tasks import unpack_demo

    entries = list(unpack_demo(services.locations.demo))
    from gistpoint.core.kinds.titles import author_title
    from gistpoint.tui.titles import mode_words

    print_table(
        ["name", "what", "mode", "failing", "id"],
        [
            [entry.name, author_title(task), mode_words(task), str(len(task.brief.failing)), task.short_id]
            for entry, task in entries
        ],
    )
    print(
        f"\nIn a terminal, `gistpoint demo {entries[0][0].name}` opens the first; `gistpoint demo --play`"
        " plays a recorded attempt."
    )
    return DONE


def _open(isolation: IsolationChoice) -> int:
    """Show the home screen, and unpack the demo's tasks once it is shown. Return the exit code."""
    from gistpoint.core.locations import Locations
    from gistpoint.tui.app import GistpointApp, ServicesMaker

    locations = Locations.of_user()

    def make() -> Services:
        from gistpoint.core.demo.tasks import unpack_demo

        for _ in unpack_demo(locations.demo):
            pass
        return build_services(isolation, role=Role.DEMO)

    return GistpointApp(ServicesMaker(locations, make)).run_to_exit_code()


def _play(services: Services, playthrough_name: str, speed: float) -> int:
    from gistpoint.core.demo.tasks import demo_task, playthrough

    name, steps = playthrough(playthrough_name)
    task = demo_task(name, services.locations.demo)
    if interactive():
        from gistpoint.tui.app import GistpointApp

        return GistpointApp(services, open=task.id, play=(steps, speed)).run_to_exit_code()
    from gistpoint.core.attempts.state import AttemptResult, attempt_result
    from gistpoint.core.demo.play import play

    opened = services.start(task, replay=True)
    try:
        backend = opened.attempt.backend
        print(
            f"Playing a recorded attempt at {name} ({task.short_id}), {speed:g} times as fast, in"
            f" {backend.name}.\n"
        )
        for step, result in play(opened.attempt, steps, time.sleep, speed=speed):
            _print_step(step, result)
        state = opened.attempt.state
    finally:
        opened.close()
    ending = state.ending.reason if state.ending else "unfinished"
    print(
        f"\n{ending}: {plural(len(state.calls), 'tool use')},"
        f" {plural(len(state.submissions), 'submission')}, ",
        end="",
    )
    print(f"{duration(state.clock.active)} at this speed")
    return DONE if attempt_result(state) is AttemptResult.SOLVED else NEGATIVE


def _print_step(step: Mapping[str, Any], result: ToolResult | None) -> None:
    if result is None:
        words = step.get("text") or step.get("function") or step.get("reason", "")
        print_text(textwrap.indent(f"{step['kind']}: {words}", "  # "))
        return
    _print_call(step["tool"], step["arguments"], result.text)


def _print_call(tool: str, arguments: Mapping[str, Any], answer: str) -> None:
    """Print a call with the code that it submits or writes, and the beginning and end of its answer."""
    from gistpoint.core.kinds.commandline import spelled

    print_text(f"> {spelled(tool, arguments)}")
    if code := arguments.get("func_code") or arguments.get("content"):
        print_text(textwrap.indent(code.rstrip(), "  + "))
    lines = answer.splitlines()
    shown = lines if len(lines) <= _ANSWER_LINES else [*lines[: _ANSWER_LINES - 2], "...", lines[-1]]
    print_text(textwrap.indent("\n".join(shown), "  "))


def play_recording(locations: Locations) -> None:
    """Print the recorded attempt, and store it as a run that can be watched and reviewed.

    Raises `AttemptError` or `AgentRunError` if that run can't be stored.
    """
    from gistpoint.sessions.agentruns.recorded import ABOUT, open_recorded_run, recorded_attempt

    run = open_recorded_run(locations, __version__)
    state = recorded_attempt()
    print_text(f"{ABOUT} {_NO_MODEL}\n")
    for turn in state.turns:
        _print_turn(turn, [call for call in state.calls if call.requested and call.turn == turn.turn])
        if sys.stdout.isatty():
            time.sleep(_TURN_S)
    print_text(f"{_end(state)}\n")
    print_text(
        f"`gistpoint agent watch {run.name}` and `gistpoint review {run.name}` open it. To let a model work,"
        " give --model NAME and, for your own server, --base-url URL.\n"
    )


def _print_turn(turn: ModelTurn, calls: list[AttemptCall]) -> None:
    usage = turn.usage
    tokens = f"{usage.prompt_tokens:,} tokens sent, {usage.completion_tokens:,} received"
    print_text(f"turn {turn.turn}, {tokens}, {turn.latency_ms / 1000:.0f} s")
    print_text(textwrap.indent(turn.content or "(no text)", "  | "))
    for call in calls:
        if call.malformed:
            print_text(f"> {call.tool or 'a call without a name'}, malformed ({call.malformed})")
            print_text(textwrap.indent(call.text or "", "  "))
        else:
            _print_call(call.tool, call.arguments, call.text or "")
    if not calls:
        print_text("> no call")
    print_text("")


def _end(state: AttemptState) -> str:
    from gistpoint.core.attempts.state import AttemptResult, attempt_result

    ending = state.ending
    reason = f"{ending.reason}: {ending.code}" if ending and ending.code else ending.reason if ending else ""
    result = "Solved" if attempt_result(state) is AttemptResult.SOLVED else "Not solved"
    return (
        f"{result} ({reason}), after {plural(len(state.turns), 'turn')}, {plural(len(state.calls), 'call')},"
        f" {plural(len(state.submissions), 'submission')} and {plural(state.spent.usage.tokens, 'token')} in"
        f" {duration(state.clock.active)}."
    )


NAMES = (
    "seats-together (remove), dear-tickets (discovery), missed-trains (discovery ×2), whole-railway (gist)"
)
"""The demo's tasks for the help, as text, because the first paint must not wait for reading them."""
DEMO = CliCommand(
    DemoRequest,
    demo,
    {
        "task": argument("TASK", f"{NAMES}, an id or a title; without it the home screen opens"),
        "play": option("play a recorded attempt"),
        "speed": option("how many times as fast as it was recorded"),
        "lines": LINES,
        "isolation": ISOLATION,
    },
)
