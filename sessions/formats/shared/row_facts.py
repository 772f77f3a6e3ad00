"""What the members beside a conversation say of a run, in the rows of benchmarks and data sets."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.sessions.records.building import verdict_of
from gistpoint.sessions.records.model import Json, Run
from gistpoint.sessions.records.values import as_dict, as_float, as_str, first

TASKS = ("instance_id", "task_id", "task")
IDS = ("id", "session_id", "sessionId", "conversation_id", "traj_id", "trajectory_id")
PATCHES = ("patch", "generated_patch", "model_patch", "git_patch", "output_patch")
_SOLVED = ("resolved", "target", "is_resolved", "success", "verified")
HEADER = (
    "model",
    "model_name",
    "run_id",
    "reward",
    "exit_status",
    "exit_reason",
    "test_result",
    "problem_statement",
    *_SOLVED,
    *TASKS,
    *IDS,
    *PATCHES,
)
"""The members that a header is made from."""


def row_header(format: str, version: str, members: Mapping[str, Json], id: str = "") -> Run:
    """Return the header of a conversation from the members beside it.

    A number in place of a truth value, or a reward of at least 1, makes a run solved; such a verdict is
    derived.
    """
    result = as_dict(members.get("test_result"))
    reward = as_float(members.get("reward"))
    told = next((members[key] for key in _SOLVED if isinstance(members.get(key), bool | int)), None)
    told = as_dict(result.get("report")).get("resolved") if told is None else told
    # Some data sets write 1 and 0 in place of truth values.
    solved = told == 1 if isinstance(told, bool | int) else None if reward is None else reward >= 1
    derived = {"verdict"} if solved is not None and not isinstance(told, bool) else set[str]()
    model = as_str(first(members, "model", "model_name"))
    # The rows of OpenHands' runs name the model in the name of the run alone.
    if not model and isinstance(members.get("run_id"), str):
        model = _model_in(as_str(members["run_id"]))
        derived |= {"model"} if model else set()
    return Run(
        format,
        version,
        id=id or as_str(first(members, *IDS)),
        task=as_str(first(members, *TASKS)),
        model=model,
        verdict=verdict_of(solved),
        score=reward,
        exit_status=as_str(first(members, "exit_status", "exit_reason")),
        submission=as_str(first(result, "git_patch") or first(members, *PATCHES)),
        derived=frozenset(derived),
    )


def _model_in(name: str) -> str:
    """Return the model that the name of a run of OpenHands begins with: `gpt-4o_maxiter_50_N_v2.1`."""
    model, mark, _ = name.partition("_maxiter_")
    return model if mark else ""
