"""Traces: a step for each reply and for each message new to the model, and tools with their calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs.traces import genai_spans, inferred_spans, langfuse, langsmith
from recorded_runs.written import answers, read_whole, written, written_lines

from gistpoint.sessions.formats.traces.otel import _value
from gistpoint.sessions.records.model import Actor, StepKind, Tokens
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import list_runs

MADE = {
    "genai": genai_spans(),
    "inferred": inferred_spans(),
    "langfuse": langfuse(),
    "langsmith": langsmith(),
}


def opened(name: str, folder: Path) -> RunDocument:
    made: Any = MADE[name]
    return written_lines(folder / name, made) if isinstance(made, list) else written(folder / name, made)


@pytest.mark.parametrize("name", MADE)
def test_each_message_is_told_once_and_tools_answer_their_calls(name: str, tmp_path: Path) -> None:
    run = opened(name, tmp_path)
    steps = [step for step in run.steps() if step.actor is not Actor.SYSTEM or step.kind is StepKind.SYSTEM]
    assert [(step.kind, step.text) for step in steps if step.actor is not Actor.AGENT] == [
        (StepKind.SYSTEM, "You fix."), (StepKind.TASK, "Fix the mean"),
    ]  # fmt: skip
    call, answer = [step for step in steps if step.actor is Actor.AGENT]
    assert (call.kind, call.calls[0].parsed, len(call.results)) == (
        StepKind.TEST,
        {"command": "pytest -q"},
        1,
    )
    assert call.results[0].text.startswith("1 failed")
    assert (answer.text, answer.calls) == ("Done", ())
    assert run.header.model == answer.model == "model-x"
    assert not [noted for step in run.steps() for noted in step.also if "Fix the mean" in noted.text]


@pytest.mark.parametrize("name", ["genai", "langfuse", "langsmith"])
def test_a_tool_that_failed_is_marked(name: str, tmp_path: Path) -> None:
    call = next(step for step in opened(name, tmp_path).steps() if step.calls)
    assert answers(call) == [("bash", "1 failed\nexit code 1", True)]
    assert (call.results[0].duration_s, call.flags) == (1.0, frozenset({"error"}))


def test_tokens_and_costs_are_those_of_the_models_own_spans(tmp_path: Path) -> None:
    headers = {name: opened(name, tmp_path).header for name in MADE}
    assert headers["genai"].tokens == Tokens(30, 10)
    assert headers["inferred"].tokens == Tokens(18, 6, 8)
    assert (headers["langfuse"].tokens, headers["langfuse"].cost) == (Tokens(29, 5), 0.5)
    assert headers["langsmith"].tokens == Tokens(29, 3)
    assert (headers["langfuse"].task, headers["langsmith"].task) == ("fixer", "fixer")
    assert headers["langsmith"].cost is None
    whole = langsmith()
    whole["patch"][-1]["total_cost"] = "0.0021"
    header = written(tmp_path / "costly", whole).header
    assert (header.cost, "cost" in header.derived) == (0.0021, False)


def test_what_surrounds_the_models_is_told_beside_them(tmp_path: Path) -> None:
    around = next(step for step in opened("genai", tmp_path).steps() if step.kind is StepKind.DELEGATE)
    assert [(noted.path, noted.text) for noted in around.also] == [("attributes.custom.note", "a note")]
    fetched = opened("langfuse", tmp_path).step(0)
    assert fetched.text == "prompt-7\nYou fix."
    assert "It is right." in [noted.text for noted in opened("langfuse", tmp_path).header.also]


def test_each_trace_of_a_file_is_a_run(tmp_path: Path) -> None:
    spans = inferred_spans()
    other = [{**span, "context": {**span["context"], "trace_id": "t2"}} for span in inferred_spans()[:2]]
    path = tmp_path / "spans"
    path.write_text("".join(json.dumps(span) + "\n" for span in [*spans, *other]), encoding="utf-8")
    assert [item.name.partition("#")[2] for item in list_runs([path])] == ["t1", "t2"]
    assert (read_whole(path, "t1").step_count, read_whole(path, "t2").step_count) == (5, 4)


def test_a_trace_with_a_long_id_is_opened_by_its_name_in_the_list(tmp_path: Path) -> None:
    long = "t" * 150
    other = [{**span, "context": {**span["context"], "trace_id": long}} for span in inferred_spans()[:2]]
    path = tmp_path / "spans"
    path.write_text(
        "".join(json.dumps(span) + "\n" for span in [*inferred_spans(), *other]), encoding="utf-8"
    )
    listed = [item.name.partition("#")[2] for item in list_runs([path])]
    assert [read_whole(path, name).step_count for name in listed] == [5, 4]


def test_a_cut_export_shows_the_spans_before_the_cut(tmp_path: Path) -> None:
    text = json.dumps(genai_spans())
    run = written(tmp_path / "cut", text[: text.index('"spanId": "d"') + 200])
    assert [step.kind for step in run.steps() if step.actor is Actor.AGENT] == [StepKind.TEST]
    assert "ends within record 3" in run.warnings[0]


@pytest.mark.parametrize(
    ("written_as", "read"),
    [
        ("-5", -5),
        ("12", 12),
        ("--5", "--5"),
        ("-", "-"),
        ("1²", "1²"),
        ("9" * 5_000, "9" * 5_000),
        (["5"], ["5"]),
    ],
)
def test_integers_of_otlp_are_numbers_if_they_can_be(written_as: Any, read: Any) -> None:
    assert _value({"intValue": written_as}) == read
