"""A run in ATIF that is written as ATIF again keeps members that the run model has no field for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory
from recorded_runs.dialogues import atif

from gistpoint.sessions.exports.atif import atif_text
from gistpoint.sessions.runs.opening import join_name, open_run
from gistpoint.sessions.runs.rendering import step_lines

IMAGE = {"type": "image", "source": {"media_type": "image/png", "path": "images/1.png"}}


def rich() -> dict[str, Any]:
    document = atif("1.7")
    document["agent"]["tool_definitions"] = [
        {"type": "function", "function": {"name": "edit", "parameters": {}}}
    ]
    document["agent"]["extra"] = {"region": "north"}
    document["notes"] = "Recorded by hand."
    document["extra"] = {"campaign": "seven"}
    document["final_metrics"]["extra"] = {"retries": 2}
    first, second, third = document["steps"]
    first["message"] = [{"type": "text", "text": "Fix."}, IMAGE]
    first["is_copied_context"] = True
    second["reasoning_effort"] = "high"
    second["metrics"]["extra"] = {"cache": "warm"}
    second["extra"] = {"turn": "second"}
    second["tool_calls"][0]["extra"] = {"shard": "a"}
    second["observation"]["results"][0]["extra"] = {"host": "b"}
    third["timestamp"] = "2026-01-02T03:04:05"
    return document


def again(tmp_path: Path, document: dict[str, Any]) -> dict[str, Any]:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    written: dict[str, Any] = json.loads("".join(atif_text(open_run(path))))
    Trajectory.model_validate(written)
    return written


def kept(one: Any, other: Any, path: str = "") -> None:
    """Require that all of one value is in another, whose objects may have more members."""
    if isinstance(one, dict):
        for key, item in one.items():
            assert key in other, f"{path}.{key}"
            kept(item, other[key], f"{path}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), path
        for number, pair in enumerate(zip(one, other, strict=True)):
            kept(*pair, f"{path}[{number}]")
    else:
        assert one == other, path


def test_all_of_a_rich_run_is_kept(tmp_path: Path) -> None:
    kept(rich(), again(tmp_path, rich()))


def test_what_was_written_twice_is_the_same(tmp_path: Path) -> None:
    once = again(tmp_path, rich())
    assert again(tmp_path, once) == once


def test_embedded_runs_stay_runs(tmp_path: Path) -> None:
    written = again(tmp_path, rich())
    path = tmp_path / "written.json"
    path.write_text(json.dumps(written), encoding="utf-8")
    inner = open_run(join_name(str(path), "sub-1"))
    inner.build()
    assert (inner.step_count, inner.header.id) == (3, "sub-1")


@pytest.mark.parametrize("stamp", ["2026-01-02T03:04:05", "2026-01-02T03:04:05.250000"])
def test_a_time_without_a_zone_stays_without_one(tmp_path: Path, stamp: str) -> None:
    document = atif("1.7")
    document["steps"][0]["timestamp"] = stamp
    assert again(tmp_path, document)["steps"][0]["timestamp"] == stamp


def test_local_times_of_openhands_stay_naive(tmp_path: Path) -> None:
    stamp = "2026-01-02T03:04:05.123456"
    events = [
        {
            "id": 0,
            "timestamp": stamp,
            "source": "user",
            "action": "message",
            "args": {"content": "Fix"},
            "message": "Fix",
        },
        {
            "id": 1,
            "timestamp": stamp,
            "source": "agent",
            "action": "run",
            "args": {"command": "ls", "thought": ""},
        },
    ]
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    document = open_run(path)
    document.build()
    assert document.step(0).naive
    assert "at 2026-01-02T03:04:05.123" in list(step_lines(document, document.step(0)))
    steps = json.loads("".join(atif_text(document)))["steps"]
    assert [step["timestamp"] for step in steps] == [stamp, stamp]


def test_a_run_without_ids_does_not_take_that_of_its_sub_agent(tmp_path: Path) -> None:
    document = atif("1.7")
    del document["session_id"]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert open_run(path).header.id == ""
    run = open_run(path)
    run.build()
    assert run.header.id == ""
    assert open_run(join_name(str(path), "sub-1")).header.id == "sub-1"
