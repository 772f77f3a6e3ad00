"""A run of several files that is being written has changed when a file is added, and then has its steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import open_run


def put(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def openhands(folder: Path, number: int) -> Path:
    message = {
        "role": "user" if number % 2 == 0 else "assistant",
        "content": [{"type": "text", "text": "Go"}],
    }
    event = {"id": f"i{number}", "timestamp": f"2026-01-01T00:00:0{number}", "kind": "MessageEvent"}
    source = {"source": "agent" if number % 2 else "user"}
    put(folder / "events" / f"event-{number:05}-{'a' * 8}.json", {**event, **source, "llm_message": message})
    return folder


def opencode(folder: Path, number: int) -> Path:
    session = folder / "session" / "p" / "ses_1.json"
    put(session, {"id": "ses_1", "projectID": "p", "directory": "/", "version": "1", "title": "T",
                  "time": {"created": 1, "updated": 2}})  # fmt: skip
    role = "user" if number % 2 == 0 else "assistant"
    message = {"id": f"msg_{number}", "sessionID": "ses_1", "role": role, "time": {"created": number + 1}}
    put(folder / "message" / "ses_1" / f"msg_{number}.json", message)
    part = {"id": f"prt_{number}", "messageID": f"msg_{number}", "sessionID": "ses_1", "type": "text"}
    put(folder / "part" / f"msg_{number}" / f"prt_{number}.json", {**part, "text": f"Text {number}"})
    return session


def built(name: Path) -> RunDocument:
    document = open_run(name)
    document.build()
    return document


@pytest.mark.parametrize("begun", [1, 2])
@pytest.mark.parametrize("add", [openhands, opencode])
def test_a_file_that_is_added_to_a_run_changes_it(
    tmp_path: Path, add: Callable[[Path, int], Path], begun: int
) -> None:
    for number in range(begun):
        name = add(tmp_path / "run", number)
    document = built(name)
    assert (document.step_count, document.changed) == (begun, False)
    add(tmp_path / "run", begun)
    assert document.changed
    assert not document.grow()
    again = built(name)
    assert (again.step_count, again.changed) == (begun + 1, False)
