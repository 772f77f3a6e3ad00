"""The attempts of a run's jobs: the condition in their headers, and the assignment of attempts to jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.events import AttemptStarted, JournalEvent
from gistpoint.core.attempts.identity import MODEL, TIME_CHARACTERS, new_attempt_id
from gistpoint.sessions.agentruns.jobs import AgentJob, JobAttempt, JobOperation
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.journal import JOURNAL, first_event


def settings_of(run: AgentRun, job: AgentJob) -> AgentSettings:
    """Return the settings of a job; the seed grows by one with each repeat."""
    settings = run.settings.agent
    if settings.sampling.seed is None:
        return settings
    seed = settings.sampling.seed + job.repeat - 1
    return msgspec.structs.replace(settings, sampling=replace(settings.sampling, seed=seed))


def solver_of(run: AgentRun, job: AgentJob) -> dict[str, Any]:
    """Return the solver in the header of an attempt: the full condition, and its run and job."""
    settings, scaffold = settings_of(run, job), run.settings.scaffold
    return {
        "kind": "chat",
        **({} if scaffold is None else {"scaffold": msgspec.to_builtins(scaffold)}),
        "model": run.settings.model,
        "host": run.settings.host,
        **msgspec.to_builtins(settings),
        "settings_sha256": run.settings.digest,
        "run": run.name,
        "job": job.key,
        "repeat": job.repeat,
    }


def unrecorded_attempts(run: AgentRun, attempts: Path) -> list[JobOperation]:
    """Return operations for attempts that were begun but not recorded because their process died."""
    queued = {state.job.key: state.abandoned for state in run.left if not state.attempt}
    earliest = new_attempt_id(run.document.created_utc_ms)[:TIME_CHARACTERS]
    found: list[JobOperation] = []
    for folder in attempts.iterdir() if queued and attempts.is_dir() else ():
        if folder.name < earliest:
            continue
        solver = _solver(first_event(folder / JOURNAL))
        job = str(solver.get("job"))
        if solver.get("run") == run.name and folder.name not in queued.get(job, (folder.name,)):
            found.append(JobAttempt(job=job, attempt=folder.name))
    return found


def _solver(first: JournalEvent | None) -> Mapping[str, Any]:
    """Return the solver in the first event of a model's attempt; empty for other solvers."""
    begun = first.data if first is not None else None
    return (begun.solver or {}) if isinstance(begun, AttemptStarted) and begun.actor == MODEL else {}


def is_of_job(first: JournalEvent | None, job: AgentJob) -> bool:
    """Return whether a journal with this first event belongs to a job's attempt."""
    return _solver(first).get("job") == job.key
