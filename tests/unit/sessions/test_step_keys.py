"""Labels stay at their steps even if newer readers show more steps than the reviewer saw."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from recorded_runs import make_all
from recorded_runs.inspect_logs import inspect_header

from gistpoint.sessions.annotations.keys import StepKey, key_of, place_of
from gistpoint.sessions.records.model import Actor
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import list_runs, open_run


def built(path: Path) -> RunDocument:
    document = open_run(path)
    document.build()
    return document


def inspect_log(path: Path) -> RunDocument:
    """Write and open a log with new input before both model calls; earlier only the events were steps."""
    told = [{"role": "user", "content": text} for text in ("Fix it", "Wrong", "Wrong again")]
    replies = [{"role": "assistant", "content": text} for text in ("one", "two")]
    events: list[dict[str, Any]] = [
        {"event": "span_begin", "uuid": "e0", "name": "init", "id": "s"},
        {"event": "model", "uuid": "e1", "input": told[:1], "output": {"choices": [{"message": replies[0]}]}},
        {"event": "model", "uuid": "e2", "input": [told[0], replies[0], *told[1:]],
         "output": {"choices": [{"message": replies[1]}]}},
    ]  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(inspect_header()))
        archive.writestr("samples/1_epoch_1.json", json.dumps({"id": 1, "epoch": 1, "events": events}))
    return built(path)


def test_steps_that_were_put_in_take_no_number_of_the_others(tmp_path: Path) -> None:
    document = inspect_log(tmp_path / "a")
    texts = [step.text for step in document.steps()]
    assert texts[1:] == ["Fix it", "one", "Wrong", "Wrong again", "two"]
    before = {StepKey(0, "e0"): 0, StepKey(1, "e1"): 2, StepKey(2, "e2"): 5}
    assert {key: place_of(document, key) for key in before} == before
    keys = [key_of(document, step) for step in document.steps()]
    assert [key for key in keys if not key.id.startswith("+")] == list(before)
    assert [StepKey.parse(str(key)) for key in keys] == keys
    assert [place_of(document, key) for key in keys] == list(range(6))


def test_a_step_that_was_joined_to_another_leads_there(tmp_path: Path) -> None:
    path = tmp_path / "body.json"
    use = {"type": "tool_use", "id": "t1", "name": "bash", "input": {"cmd": "ls"}}
    messages = [
        {"role": "user", "content": "q", "id": "m0"},
        {"role": "assistant", "content": [use], "id": "m1"},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}],
            "id": "m2",
        },
        {"role": "assistant", "content": "done", "id": "m3"},
    ]
    path.write_text(json.dumps({"messages": messages, "system": "You repair code."}), encoding="utf-8")
    document = built(path)
    assert [step.actor for step in document.steps()] == [Actor.SYSTEM, Actor.USER, Actor.AGENT, Actor.AGENT]
    places = [place_of(document, StepKey(index, f"m{index}")) for index in range(4)]
    assert places == [1, 2, 2, 3]


def test_records_of_a_journal_that_were_joined_keep_their_numbers(tmp_path: Path) -> None:
    path = next(one.path for one in make_all(tmp_path) if one.format == "gistpoint")
    document = built(path)
    once: list[int] = []
    known: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        event = json.loads(line)
        call = event["data"].get("call_id") if isinstance(event["data"], dict) else None
        if call and event["type"] in ("tool_call", "tool_result", "submit", "test_run", "score"):
            if call in known:
                continue
            known[call] = number
        once.append(
            sum(len(one.encode()) + 1 for one in path.read_text(encoding="utf-8").splitlines()[:number])
        )
    assert len(once) == 8
    for number, offset in enumerate(once):
        assert place_of(document, StepKey(number)) == document.stretch_covering(0, offset)[0]


def test_every_key_of_every_format_leads_back_to_its_step(tmp_path: Path) -> None:
    make_all(tmp_path)
    for found in list_runs([tmp_path]):
        document = open_run(found.name)
        document.build()
        keys = [key_of(document, step) for step in document.steps()]
        assert len(set(keys)) == len(keys)
        assert [place_of(document, key) for key in keys] == list(range(len(keys)))


def test_a_key_of_no_step_leads_nowhere(tmp_path: Path) -> None:
    document = inspect_log(tmp_path / "a")
    assert place_of(document, StepKey(1, "+nothing")) is None
