"""Facts about a run in the members next to its conversation, in rows of benchmarks and data sets."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.sessions.records.building import verdict_of
from gistpoint.sessions.records.model import Json, Run
from gistpoint.sessions.records.values import as_dict, as_float, as_str, first

TASKS = ("instance_id", "task_id", "task")
IDS = ("id", "session_id", "sessionId", "conversation_id", "traj_id", "trajectory_id")
PATCHES = ("patch", "generated_patch", "model_patch", "git_patch", "output_patch")
_SOLVED = ("resolved", "target", "is_resolved", "success", "verified")
_TYPE, _OF_THE_EVENT = "type", "success"
HEADER = (
    "model",
    "model_name",
    "run_id",
    "reward",
    "exit_status",
    "exit_reason",
    "test_result",
    "problem_statement",
    _TYPE,
    *_SOLVED,
    *TASKS,
    *IDS,
    *PATCHES,
)
"""The members that a header is made from."""


def row_header(format: str, version: str, members: Mapping[str, Json], id: str = "") -> Run:
    """Return the header of a conversation from the members next to it.

    A run counts as solved if its verdict is true or the number 1, or, without a verdict, if its reward is
    at least 1. The verdict is marked as derived unless it is recorded as a boolean.
    """
    result = as_dict(members.get("test_result"))
    reward = as_float(members.get("reward"))
    verdict: Json = _verdict_in(members)
    if verdict is None:
        verdict = as_dict(result.get("report")).get("resolved")
    solved = None if reward is None else reward >= 1
    # Some data sets write 1 and 0 instead of booleans.
    if isinstance(verdict, bool | int):
        solved = verdict == 1
    is_derived = solved is not None and not isinstance(verdict, bool)
    derived = {"verdict"} if is_derived else set[str]()
    model = as_str(first(members, "model", "model_name"))
    # Rows of OpenHands' runs name the model only at the beginning of the run's name.
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


def _verdict_in(members: Mapping[str, Json]) -> bool | int | None:
    """Return the verdict of the row's own members; None if it has none."""
    for key in _SOLVED:
        value = members.get(key)
        is_of_the_event = key == _OF_THE_EVENT and _is_event(members)
        if isinstance(value, bool | int) and not is_of_the_event:
            return value
    return None


def _is_event(members: Mapping[str, Json]) -> bool:
    """Return whether a row is an event of a program, with a type such as `agent.end`.

    The success of an event means that the program ended without an error, not that a task was solved.
    """
    return "." in as_str(members.get(_TYPE))


def _model_in(name: str) -> str:
    """Return the model with which an OpenHands run's name begins, as in `gpt-4o_maxiter_50_N_v2.1`.

    It is empty if there is none.
    """
    model, mark, _ = name.partition("_maxiter_")
    return model if mark else ""
