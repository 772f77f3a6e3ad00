"""Each string of a raw record is in a step, in the header or in the list of strings that are not shown."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from recorded_runs import Made, make_all
from recorded_runs.raw_texts import LAYOUTS, Tally, apart, runs_in, tally_file
from unread_samples import STEPS_UNKNOWN, TEXTS_LOST, samples

from gistpoint.sessions.formats.registry import formats
from gistpoint.sessions.records.model import parts_of
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.tui.cli import main

# The tests run in one worker, so that the files are made only once.
pytestmark = pytest.mark.xdist_group("every word")
SAMPLES = Path(__file__).parents[3] / "shared" / "samples"
FILES = [path for path in sorted(SAMPLES.rglob("*")) if path.is_file()] if SAMPLES.is_dir() else []


@cache
def reads(path: Path) -> bool:
    """Return whether a supported format accepts a file."""
    return any(found.header is not None for found in list_runs([path]))


def whole_tally(path: Path) -> Tally:
    whole = Tally()
    for _, one in tally_file(path):
        whole.add(one)
    return whole


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    return {one.path.name: one for one in make_all(tmp_path_factory.mktemp("made"))}


def test_no_text_of_a_layout_is_lost(made: dict[str, Made]) -> None:
    for name, one in made.items():
        found = whole_tally(one.path)
        assert not found.lost, name
        assert found.runs == len(one.records), name
        assert found.texts > found.labels, name


if FILES:  # a user's checkout has none

    @pytest.mark.parametrize("path", samples(filter(reads, FILES), TEXTS_LOST))
    def test_no_text_of_a_sample_is_lost(path: Path) -> None:
        found = whole_tally(path)
        assert not found.lost
        assert found.texts > found.labels

    @pytest.mark.parametrize("path", [path for path in FILES if not reads(path)], ids=lambda path: path.name)
    def test_a_sample_without_a_reader_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for command in ("show", "runs", "convert"):
            arguments = [command, str(path), *(["--to", "atif"] if command == "convert" else [])]
            code = main(arguments)
            error = capsys.readouterr().err
            assert code == 1
            assert "seems to be" in error or "is in no known format: it looks like" in error
            assert "Traceback" not in error

    @pytest.mark.parametrize("path", samples(filter(reads, FILES), STEPS_UNKNOWN))
    def test_a_sample_that_is_taken_has_steps_that_are_known(path: Path) -> None:
        for found in list_runs([path]):
            document = open_run(found.name)
            document.build()
            unknown = sum("unknown" in step.flags for step in document.steps())
            assert document.step_count
            assert 10 * unknown <= document.step_count


def places(value: Any, listed: set[str], path: str = "") -> Iterator[dict[str, Any]]:
    """Yield every object below a value, except in parts listed as not shown and in the arguments of calls."""
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


def is_one_text(one: Made) -> bool:
    """Return whether a file is a single run, as one JSON text or as JSON lines."""
    return set(one.records) == {""} and one.path.is_file() and one.path.read_bytes()[:1] in (b"{", b"[")


@examples(60)
@given(st.randoms(use_true_random=False), st.booleans())
def test_a_new_member_of_a_record_is_shown(
    made: dict[str, Made], choice: random.Random, nested: bool
) -> None:
    one = choice.choice([one for one in made.values() if is_one_text(one)])
    (run,) = runs_in(one.path, [one.format])
    records, _ = apart(run, LAYOUTS[one.format].arrays)
    listed = {
        path for known in formats() for item in known.not_shown if not item.of_run for path in item.names
    }
    spot = choice.choice(list(places(choice.choice(records), listed)))
    spot["unheard_of"] = {"deep": [UNHEARD]} if nested else UNHEARD
    file = one.path.parent / "changed"
    in_lines = isinstance(run, list) and not one.path.read_text(encoding="utf-8").startswith("[")
    file.write_text("\n".join(map(json.dumps, run)) if in_lines else json.dumps(run), encoding="utf-8")
    document = open_run(file)
    document.build()
    assert any(UNHEARD in text for step in document.steps() for _, _, text in parts_of(step))


def test_what_is_not_shown_is_named_with_a_reason_and_is_short() -> None:
    for format in formats():
        assert len(format.not_shown) <= 8
        assert all(item.names and item.reason for item in format.not_shown)


def test_what_is_not_shown_is_printed_with_the_run(
    made: dict[str, Made], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(made["a-1.1"].path)]) == 0
    out = capsys.readouterr().out
    assert "not shown    query, messages: the messages sent to the model for a step" in out
    assert "not shown    ids, types, roles" in out
