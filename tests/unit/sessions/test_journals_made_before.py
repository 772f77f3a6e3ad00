"""The engine still writes the same lines as the journals of an earlier version in `tests/data/journals`.

Each was made by `acted_attempts`, except the model's from before events were records.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from acted_attempts import ACTS, acted

from gistpoint.core.attempts.events import (
    EVENTS,
    Corrected,
    Crashed,
    EndWithdrawn,
    OtherEvent,
    PassConfirmed,
    QuestionnaireAnswered,
    event_data,
)
from gistpoint.core.attempts.state import fold
from gistpoint.sessions.journal import JOURNAL, encode, read_journal

MADE = Path(__file__).parents[2] / "data" / "journals"


@pytest.mark.parametrize("name", ACTS)
def test_an_event_that_is_read_is_written_as_it_was(name: str, tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_bytes((MADE / f"{name}.jsonl").read_bytes())
    content = read_journal(tmp_path / JOURNAL)
    assert not content.fault
    assert [event for event in content.events if isinstance(event.data, OtherEvent)] == []
    assert b"".join(map(encode, content.events)) == (MADE / f"{name}.jsonl").read_bytes()
    assert fold(content.events).ended


@pytest.mark.parametrize("name", ACTS)
def test_the_same_acts_write_the_same_members_in_the_same_order(name: str, tmp_path: Path) -> None:
    before, now = ((MADE / f"{name}.jsonl"), acted(name, tmp_path))
    for old, new in zip(lines(before), lines(now), strict=True):
        assert extends(new, old), (old, new)


def test_every_type_that_the_engine_writes_is_among_them() -> None:
    found = {line["type"] for name in ACTS for line in lines(MADE / f"{name}.jsonl")}
    others = {
        QuestionnaireAnswered.type,
        Corrected.type,
        Crashed.type,
        PassConfirmed.type,
        EndWithdrawn.type,
    }
    assert found == EVENTS.keys() - others


def test_members_of_a_newer_version_are_ignored_and_data_that_do_not_fit_are_kept() -> None:
    known = event_data("suspect", {"function": "a.py::f", "marked": True})
    assert event_data("suspect", {"function": "a.py::f", "marked": True, "colour": "red"}) == known
    for data in ({}, {"function": 3}, {"function": None}, {"function": "f", "marked": "yes"}):
        assert event_data("suspect", data) == OtherEvent(data)
        assert event_data("suspect", data).written() == data


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def extends(new: Any, old: Any) -> bool:
    """Return whether a value has the shape of an older one; newer versions may add members."""
    if isinstance(old, dict):
        return isinstance(new, dict) and [
            name for name in new if name in old and extends(new[name], old[name])
        ] == list(old)
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(extends, new, old))
    return type(new) is type(old)
