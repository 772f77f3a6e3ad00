"""Shows the demo's recorded attempt of a model step by step, without a model (decision 151)."""

from __future__ import annotations

import sys
import textwrap
import time

from gistpoint import __version__
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.attempts.parts import AttemptCall
from gistpoint.core.attempts.state import AttemptResult, AttemptState, attempt_result
from gistpoint.core.locations import Locations
from gistpoint.core.readable import duration
from gistpoint.core.text import plural
from gistpoint.sessions.agentruns.recorded import open_recorded_run, recorded_attempt
from gistpoint.tui.commands.demo import print_call
from gistpoint.tui.commands.output import print_text

_STEP_S = 0.4
"""The pause after each step on a terminal, in seconds: long enough to see that there are steps."""
_WORDS = "This is a recording: no model is asked, and nothing is sent."


def play_recording(locations: Locations) -> None:
    """Print the recorded attempt, and store it as a run that can be watched and reviewed.

    Raises `AttemptError` or `AgentRunError` if that run can't be stored.
    """
    run = open_recorded_run(locations, __version__)
    state = recorded_attempt()
    print_text(f"A recorded attempt of {run.settings.model}, run {run.name}. {_WORDS}\n")
    for turn in state.turns:
        _print_turn(turn, [call for call in state.calls if call.requested and call.turn == turn.turn])
        if sys.stdout.isatty():
            time.sleep(_STEP_S)
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
            print_call(call.tool, call.arguments, call.text or "")
    if not calls:
        print_text("> no call")
    print_text("")


def _end(state: AttemptState) -> str:
    ending = state.ending
    reason = f"{ending.reason}: {ending.code}" if ending and ending.code else ending.reason if ending else ""
    result = "Solved" if attempt_result(state) is AttemptResult.SOLVED else "Not solved"
    return (
        f"{result} ({reason}), after {plural(len(state.turns), 'turn')}, {plural(len(state.calls), 'call')},"
        f" {plural(len(state.submissions), 'submission')} and {plural(state.spent.usage.tokens, 'token')} in"
        f" {duration(state.clock.active)}."
    )
