"""The demo's recorded attempt of a model, stored as a run that other commands can open (decision 151)."""

from __future__ import annotations

from typing import Any

import msgspec

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.decoding import decodable
from gistpoint.core.demo.tasks import recorded_by_model, unpack_demo
from gistpoint.core.errors import AttemptError
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.agentruns.jobs import JobAttempt, JobEnded, JobQueued
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore, RunSettings
from gistpoint.sessions.attempts import AttemptStore, folded_state
from gistpoint.sessions.heads import ELSEWHERE
from gistpoint.sessions.journal import journal_in

RECORDED_RUN = "recorded"
"""The name of the run with the recorded attempt."""
ABOUT = (
    "A recorded attempt of a real model at the task seats-together: Qwen2.5-Coder-1.5B-Instruct (4 bits,"
    " licence Apache-2.0), behind llama.cpp's server, with calls as text and at most 6,000 tokens. It was not"
    " chosen for its result: of five planned tries, it is the only one that had ended."
)
"""A description of the recorded run for the user."""


def recorded_attempt() -> AttemptState:
    """Return the recorded attempt. Raises `AttemptError` if its journal is damaged or has no end."""
    _, data = recorded_by_model()
    content = journal_in(data)
    state, problem = folded_state(content.events)
    fault = content.fault or problem
    if fault or not state.ended:
        raise AttemptError(f"The recorded attempt can't be read. {fault}".strip())
    return state


def open_recorded_run(locations: Locations, version: str) -> AgentRun:
    """Return the run with the recorded attempt, stored among this machine's runs if it is not there yet.

    The attempt counts as one from another machine. Raises `AttemptError` if the record is damaged or another
    attempt has its id, and `AgentRunError` if another run has its name.
    """
    _, data = recorded_by_model()
    state = recorded_attempt()
    solver: dict[str, Any] = dict(state.header.solver or {})
    for _ in unpack_demo(locations.demo):
        pass
    _adopt(locations, state.attempt_id, data, version)
    settings = RunSettings(
        model=str(solver["model"]),
        host=str(solver["host"]),
        agent=msgspec.convert(solver, decodable(AgentSettings)),
    )
    began = journal_in(data).events[0].utc_ms
    run = AgentRunStore(locations.runs).open_or_create(RECORDED_RUN, settings, began, version)
    key = str(solver["job"])
    if key not in run.jobs:
        ending = state.ending
        run.append(
            [
                JobQueued(job=key, utc_ms=began, task=state.header.task_id, repeat=int(solver["repeat"])),
                JobAttempt(job=key, utc_ms=began, attempt=state.attempt_id),
                JobEnded(job=key, utc_ms=began, reason=ending.reason if ending else ""),
            ]
        )
    return run


def _adopt(locations: Locations, attempt_id: str, data: bytes, version: str) -> None:
    """Store the journal, marked as coming from another machine, without notifying any listener."""
    if (locations.attempts / attempt_id).is_dir():
        return
    AttemptStore(locations.attempts, SystemTime(), version).adopt(attempt_id, data)
    marks = locations.attempts / ELSEWHERE
    marks.mkdir(exist_ok=True)
    (marks / attempt_id).touch()
