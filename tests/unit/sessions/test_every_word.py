"""Each text of a raw record occurs in a step, in the header, or is named in the list of what is not shown."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_runs import Made, make_all
from recorded_runs.raw_texts import Tally, tally_file

from gistpoint.sessions.formats.registry import formats
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.parts import parts_of
from gistpoint.tui.cli import main

SAMPLES = Path(__file__).parents[4] / "shared" / "samples"
FILES = [path for path in sorted(SAMPLES.rglob("*")) if path.is_file()] if SAMPLES.is_dir() else []
NAMES = (
    "a-0.5", "a-1.1", "a-retried", "a-history", "b-1", "b-2", "b-list", "c-1.0", "c-1.7", "d-0", "d-1", "d-out",
    "d-folder", "e-deflate", "e-zstd", "e-chunked", "e-json", "f-session", "agent-d0f.jsonl", "g-object", "g-array",
    "g-lines", "g-runs", "g-list", "h-results", "i-log", "j-journal",
)  # fmt: skip
"""Files that `make_all` writes: every layout of every format."""


@cache
def reads(path: Path) -> bool:
    """Whether one of the supported formats takes a file."""
    return any(found.header is not None for found in list_runs([path]))


def told(path: Path) -> Tally:
    whole = Tally()
    for _, one in tally_file(path):
        whole.add(one)
    return whole


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    return {one.path.name: one for one in make_all(tmp_path_factory.mktemp("made"))}


@pytest.mark.parametrize("name", NAMES)
def test_no_text_of_a_layout_is_lost(made: dict[str, Made], name: str) -> None:
    found = told(made[name].path)
    assert not found.lost
    assert found.runs == len(made[name].records)
    assert found.texts > found.labels


if FILES:  # a user's checkout has none

    @pytest.mark.parametrize("path", [path for path in FILES if reads(path)], ids=lambda path: path.name)
    def test_no_text_of_a_sample_is_lost(path: Path) -> None:
        found = told(path)
        assert not found.lost
        assert found.said > 0

    @pytest.mark.parametrize("path", [path for path in FILES if not reads(path)], ids=lambda path: path.name)
    def test_a_sample_without_a_reader_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for command in ("show", "runs", "convert"):
            arguments = [command, str(path), *(["--to", "atif"] if command == "convert" else [])]
            code = main(arguments)
            error = capsys.readouterr().err
            assert code in (1, 2)
            assert "seems to be" in error if code == 1 else "is in no format that is known here" in error
            assert "Traceback" not in error

    @pytest.mark.parametrize("path", [path for path in FILES if reads(path)], ids=lambda path: path.name)
    def test_a_sample_that_is_taken_has_steps_that_are_known(path: Path) -> None:
        for found in list_runs([path]):
            document = open_run(found.name)
            document.build()
            unknown = sum("unknown" in step.flags for step in document.steps())
            assert document.step_count
            assert 10 * unknown <= document.step_count


def places(value: Any, listed: set[str], path: str = "") -> Iterator[dict[str, Any]]:
    """Yield every object below a value that is neither listed as not shown nor within the arguments of a call."""
    if isinstance(value, list):
        for item in value:
            yield from places(item, listed, path)
    elif isinstance(value, dict):
        yield value
        for key, item in value.items():
            below = f"{path}.{key}" if path else key
            if below not in listed and key not in ("arguments", "input", "args", "parameters"):
                yield from places(item, listed, below)


UNHEARD = "a text that no reader has ever heard of"
RECORDS = {"a-1.1": "trajectory", "b-2": "messages", "c-1.0": "steps", "d-0": "", "g-object": "messages", "g-array": "",
           "g-lines": "lines", "f-session": "lines", "d-1": "lines", "i-log": "log"}  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(RECORDS)), st.randoms(use_true_random=False), st.booleans())
def test_a_new_member_of_a_record_is_shown(
    made: dict[str, Made], name: str, choice: random.Random, nested: bool
) -> None:
    text = made[name].path.read_text(encoding="utf-8")
    array = RECORDS[name]
    whole = [json.loads(line) for line in text.splitlines()] if array == "lines" else json.loads(text)
    records = whole[array] if array not in ("", "lines") else whole
    listed = {path for one in formats() for item in one.not_shown if not item.of_run for path in item.names}
    spot = choice.choice(list(places(choice.choice(records), listed)))
    spot["unheard_of"] = {"deep": [UNHEARD]} if nested else UNHEARD
    file = made[name].path.parent / "changed"
    file.write_text("\n".join(map(json.dumps, whole)) if array == "lines" else json.dumps(whole), encoding="utf-8")
    document = open_run(file)
    document.build()
    assert any(UNHEARD in text for step in document.steps() for _, _, text in parts_of(step))


def test_what_is_not_shown_is_named_with_a_reason_and_is_short() -> None:
    for format in formats():
        assert len(format.not_shown) <= 8
        assert all(item.names and item.reason for item in format.not_shown)


def test_what_is_not_shown_is_printed_with_the_run(made: dict[str, Made], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(made["a-1.1"].path)]) == 0
    out = capsys.readouterr().out
    assert "not shown    query, messages: what the model was sent for a step" in out
    assert "not shown    ids, types, roles" in out
