"""Writes a small file of every format of recorded runs, in the layouts of their tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorded_runs import tables
from recorded_runs.assistants import assistant_files
from recorded_runs.coding_agents import agent_files
from recorded_runs.dialogues import (
    DIFF,
    atif,
    bare_list,
    breakpoint_results,
    chat,
    debug_gym,
    history_only,
    mini_v1,
    mini_v2,
    response_items,
    swe_agent,
)
from recorded_runs.events import claude_session, journal, openhands_output, openhands_v0, openhands_v1
from recorded_runs.inspect_logs import inspect_archive, inspect_chunked, inspect_header, inspect_sample
from recorded_runs.traces import trace_files
from recorded_runs.trials import trial_files_made

__all__ = ["DIFF", "Made", "make_all"]


@dataclass(frozen=True)
class Made:
    """A file with direct counts of its raw records and its steps, by run id, or under "" for the only run."""

    path: Path
    format: str
    records: dict[str, int]
    steps: dict[str, int]


def _write(path: Path, value: Any, indent: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=indent), encoding="utf-8")
    return path


def _lines(path: Path, values: list[Any], end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(value) for value in values) + end, encoding="utf-8")
    return path


def make_all(folder: Path) -> list[Made]:
    """Write files of every format below `folder`, and return them with their counts."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Made] = []

    def add(
        path: Path, format: str, records: int | dict[str, int], steps: int | dict[str, int] | None = None
    ) -> None:
        known = records if isinstance(records, dict) else {"": records}
        step_counts = known if steps is None else steps if isinstance(steps, dict) else {"": steps}
        made.append(Made(path, format, known, step_counts))

    for era in ("0.5", "0.7", "1.0", "1.1"):
        add(_write(folder / f"a-{era}", swe_agent(era), 2), "swe-agent", 4)
    add(_write(folder / "a-compact", swe_agent("1.1")), "swe-agent", 4)
    tries = [swe_agent("1.1", 2), swe_agent("1.1", 4)]
    counts = {"": 4, "attempt-1": 2, "attempt-2": 4}
    add(_write(folder / "a-retried", {"attempts": tries, **tries[1]}, 2), "swe-agent", counts)
    add(_write(folder / "a-retried-compact", {"attempts": tries, **tries[1]}), "swe-agent", counts)
    add(_write(folder / "a-history", history_only(), 2), "swe-agent", 4, 3)
    add(_write(folder / "b-1", mini_v1(), 2), "mini-swe-agent", 8, 5)
    add(_write(folder / "b-2", mini_v2(), 2), "mini-swe-agent", 10, 7)
    add(_write(folder / "b-compact", mini_v2()), "mini-swe-agent", 10, 7)
    add(_write(folder / "b-list", bare_list(), 2), "mini-swe-agent", 4, 3)
    for version in ("1.0", "1.5", "1.8"):
        add(_write(folder / f"c-{version}", atif(version), 2), "atif", 3)
    add(_write(folder / "c-1.7", atif("1.7"), 2), "atif", {"": 3, "sub-1": 3})
    add(_write(folder / "d-0", openhands_v0(), 2), "openhands", 5, 4)
    add(_write(folder / "d-0-compact", openhands_v0()), "openhands", 5, 4)
    add(_lines(folder / "d-1", openhands_v1()), "openhands", 9, 5)
    add(
        _lines(folder / "d-out", openhands_output()),
        "openhands",
        {"a/b#1": 5, "two": 9, "pairs": 2},
        {"a/b#1": 4, "two": 5, "pairs": 2},
    )
    for number, event in enumerate(openhands_v1()):
        _write(folder / "d-folder" / "events" / f"event-{number:05}-{number}abc.json", event)
    add(folder / "d-folder", "openhands", 9, 5)
    samples = {"1_epoch_1": 8, "2_epoch_1": 8}
    turns = {"1_epoch_1": 7, "2_epoch_1": 7}
    add(inspect_archive(folder / "e-deflate"), "inspect", samples, turns)
    add(inspect_archive(folder / "e-zstd", zstd=True), "inspect", samples, turns)
    add(inspect_archive(folder / "e-running", finished=False), "inspect", samples, turns)
    add(inspect_chunked(folder / "e-chunked"), "inspect", {"1_epoch_1": 8}, {"1_epoch_1": 7})
    whole = {**inspect_header(), "samples": [inspect_sample(1), inspect_sample(2)]}
    add(_write(folder / "e-json", whole, 2), "inspect", samples, turns)
    add(_lines(folder / "f-session", claude_session()), "claude-code", 10, 6)
    side = {
        "type": "assistant",
        "sessionId": "s1",
        "agentId": "d0f",
        "isSidechain": True,
        "uuid": "z",
        "parentUuid": None,
        "message": {"id": "m9", "role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    }
    add(_lines(folder / "agent-d0f.jsonl", [side]), "claude-code", 1)
    add(_write(folder / "g-object", {"messages": chat()}), "chat", 5, 4)
    add(_write(folder / "g-array", chat(), 4), "chat", 5, 4)
    add(_lines(folder / "g-lines", chat()), "chat", 5, 4)
    add(_write(folder / "g-items", response_items(), 2), "chat", 12, 5)
    add(_write(folder / "g-listed", {"object": "list", "data": response_items()[::-1]}), "chat", 12, 5)
    runs = [{"messages": chat(), "id": "one"}, {"messages": chat(False)}]
    add(_lines(folder / "g-runs", runs), "chat", {"one": 5, "2": 5}, {"one": 4, "2": 4})
    trials = [tables.tau_trial(3), tables.tau_trial(3, 1, 1.0), tables.tau_trial(4)]
    counted, turned = (dict.fromkeys(("3", "3_trial_1", "4"), count) for count in (6, 5))
    add(_write(folder / "t-1", trials, 2), "tau-bench", counted, turned)
    counted, turned = (dict.fromkeys(("phone", "phone_trial_1"), count) for count in (7, 5))
    add(_write(folder / "t-2", tables.tau2_results()), "tau-bench", counted, turned)
    add(_write(folder / "t-voice", tables.tau2_ticks(), 2), "tau-bench", 9, 4)
    add(_lines(folder / "h-results", breakpoint_results()), "breakpoint", dict.fromkeys(("f", "g", "f~2"), 4))
    rows = [tables.functions(), tables.calls(), tables.functions("text", as_text=True)]
    records, turns = {"stats-1": 9, "stats-2": 8, "text": 9}, {"stats-1": 7, "stats-2": 6, "text": 7}
    add(_lines(folder / "r-lines", rows), "dataset-rows", records, turns)
    add(
        _write(folder / "r-list", [tables.fences(), tables.steps()], 2),
        "dataset-rows",
        {"stats-3": 7, "2": 2},
        {"stats-3": 5, "2": 2},
    )
    add(_lines(folder / "r-share", [tables.said(), tables.said("b")]), "dataset-rows", {"stats-5": 3, "b": 3})
    rows = [tables.named_calls(form, form) for form in ("json", "xml", "tags")]
    add(
        _lines(folder / "r-named", rows),
        "dataset-rows",
        dict.fromkeys(("json", "xml", "tags"), 4),
        dict.fromkeys(("json", "xml", "tags"), 3),
    )
    rows = [tables.agent_data(), tables.agent_data("b")]
    add(_write(folder / "r-data", rows, 2), "agent-data", {"stats-7": 8, "b": 8}, {"stats-7": 5, "b": 5})
    add(_write(folder / "i-log", debug_gym(), 2), "debug-gym", 3)
    for name, in_lines, value, format, records, steps in (
        *assistant_files(),
        *agent_files(),
        *trace_files(),
        *trial_files_made(),
    ):
        write = _lines if in_lines else _write
        add(write(folder / name, value), format, records, steps)
    add(_lines(folder / "j-journal", journal()), "gistpoint", 13, 5)
    return made
