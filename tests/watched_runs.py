"""A run at one moment, as passed to the screen that watches runs, without a process or files."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from msgspec import structs

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.clock import Clock, ClockActivity
from gistpoint.core.attempts.parts import AttemptCall, Ending
from gistpoint.core.attempts.results import AttemptResult
from gistpoint.core.chat import Sampling, Usage
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.sessions.agentruns.figures import job_figures
from gistpoint.sessions.agentruns.following import FollowedJob
from gistpoint.sessions.agentruns.jobs import AgentJob, JobState, JobStatus
from gistpoint.sessions.agentruns.shown_attempts import NOT_BEGUN, PassedTests, ShownAttempt
from gistpoint.sessions.agentruns.store import RunSettings

BEGAN_MS, NOW_MS, MONO_MS = 1_790_000_000_000, 1_790_000_872_000, 5_000_000
TITLES = ("Seat a party together", "Tickets that cost too much", "Trains missed and trains early")
"""The titles of the tasks `0`, `1` and `2`."""
MESSAGE = "localhost:8080 answered 400: the schema of the tool \x1b[31mread_file\x1b[0m is not supported."


def title_of(task: str) -> str:
    """Return the title of a task of the run."""
    return TITLES[int(task)]


def attempt(
    turns: int,
    *,
    tests: PassedTests | None = None,
    ending: Ending | None = None,
    call: AttemptCall | None = None,
    result: AttemptResult = AttemptResult.NOT_SOLVED,
    **about: Any,
) -> ShownAttempt:
    """Return an attempt after a number of turns, each with one call."""
    seconds = 11 * turns + 7
    return ShownAttempt(
        begun=True,
        budgets=Budgets.of(16, 4),
        remaining=Remaining(16 - turns, 4 - (tests is not None)),
        turns=turns,
        calls=turns,
        last=call or AttemptCall("c", turns, "submit_attempt", {"func_code": "def f(): ..."}),
        usage=Usage(1_900 * turns + 60 * turns * turns, 210 * turns, cost_usd=0.0007 * turns),
        submissions=int(tests is not None),
        tests=tests,
        status="finished" if tests is not None else "",
        ending=ending,
        result=result,
        clock=Clock(
            thinking=seconds * 1000, running=ClockActivity.THINKING, mono_ms=MONO_MS, utc_ms=NOW_MS - 1000
        ),
        **about,
    )


READS = AttemptCall(
    "c", 6, "read_function", {"function_name": "Network.reach", "file_path": "sporvei/network.py"}
)
SEARCHES = AttemptCall("c", 3, "search_code", {"pattern": "def quote_party"})
PASSES = attempt(5, tests=PassedTests(168, 168), ending=Ending("solved"), result=AttemptResult.SOLVED)
SHOWN: Sequence[tuple[JobStatus, ShownAttempt, str]] = (
    (JobStatus.ENDED, PASSES, ""),
    (JobStatus.ENDED, attempt(14, tests=PassedTests(153, 168), ending=Ending("calls_exhausted")), ""),
    (JobStatus.ENDED, attempt(3, call=SEARCHES, ending=Ending("gave_up", "no_tool_call")), ""),
    (JobStatus.HALTED, attempt(2, call=SEARCHES), "request_rejected"),
    (JobStatus.BEGUN, attempt(9, tests=PassedTests(161, 168), call=READS), ""),
    (JobStatus.BEGUN, attempt(6, pending=True), ""),
    (JobStatus.BEGUN, attempt(4, call=SEARCHES, paused=True, waits=True), ""),
    *[(JobStatus.QUEUED, NOT_BEGUN, "")] * 5,
)  # fmt: skip


def watched_run() -> Any:
    """Return a follower of the run: an object with `run` and `poll`, like `RunFollower`."""
    followed = []
    for number, (status, shown, problem) in enumerate(SHOWN):
        job = AgentJob(str(number), str(number % 3), 1 + number // 3)
        name = f"01m8k7eb365mr55x2wg{number:x}" if shown.begun else ""
        state = JobState(job, status, name, problem, MESSAGE if problem else "")
        result = "" if shown.ending is None else shown.result.value
        reason = (
            "" if shown.ending is None else ": ".join(filter(None, [shown.ending.reason, shown.ending.code]))
        )
        figures = structs.replace(
            job_figures(state),
            result=result,
            reason=reason or problem,
            calls=shown.calls,
            submissions=shown.submissions,
            prompt_tokens=shown.usage.prompt_tokens,
            completion_tokens=shown.usage.completion_tokens,
            cost_usd=shown.usage.cost_usd,
        )
        followed.append(FollowedJob(state, shown, figures, shown.ending is not None))
    settings = RunSettings(
        model="qwen2.5-coder-32b",
        host="localhost:8080",
        agent=AgentSettings(sampling=Sampling(temperature=0.0)),
        tool_uses=16,
        submissions=4,
    )
    document = SimpleNamespace(created_utc_ms=BEGAN_MS)
    run = SimpleNamespace(name="night", settings=settings, document=document, worked_on=True)
    return SimpleNamespace(run=run, poll=lambda: followed)
