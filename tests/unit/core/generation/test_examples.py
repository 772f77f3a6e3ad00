"""Examples for a model: from other libraries, of either kind, with the readers' comments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_trees import tree_of

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.corruption.corruptions import CorruptionReplayError
from gistpoint.core.errors import UserError
from gistpoint.core.generation.examples import EACH, examples_text, read_judged
from gistpoint.core.trees import SourceTree

LIBRARIES = ("one", "two", "the_third")


def function(n: int) -> str:
    return f"def f{n}(a):\n    b = a + {n}\n    return b"


def line(library: str, n: int, *verdicts: str) -> str:
    original = function(n)
    start = original.index("a +")
    corrupted = original.replace("a +", "a -")
    record = {
        "schema": 1, "function": f"m.py::f{n}", "families": [f"family {n % 2}"], "edits": [[start, start + 3, "a -"]],
        "original_sha256": sha256_of_text(original), "corrupted_sha256": sha256_of_text(corrupted),
    }  # fmt: skip
    readings = [
        {"reader": "A", "blind": "fault", "verdict": verdict, "words": f"sees {n}"} for verdict in verdicts
    ]
    return json.dumps({"source": f"{library}==1.0", "record": record, "readings": readings})


TEXT = "\n".join(
    [
        *(line(library, n, "good") for library in LIBRARIES for n in range(3)),
        *(line(library, n, "at a glance", "at a glance") for library in LIBRARIES for n in range(3, 6)),
        line("one", 6, "good", "at a glance"),
        "",
    ]
)


def trees(tmp_path: Path, asked: list[str]) -> object:
    def tree(source: str) -> SourceTree:
        asked.append(source)
        (tmp_path / source).mkdir()
        return tree_of({"m.py": "\n\n\n".join(function(n) for n in range(7)) + "\n"}, tmp_path / source)

    return tree


def test_some_of_either_kind_from_other_libraries_with_the_words(tmp_path: Path) -> None:
    judged, asked = read_judged(TEXT, "truth.jsonl"), list[str]()
    assert len(judged) == 18
    text = examples_text(judged, "The.Third", trees(tmp_path, asked))  # type: ignore[arg-type]
    assert set(asked) <= {"one==1.0", "two==1.0"}
    assert len(asked) == len(set(asked))
    assert text.count("did not see this one") == text.count("saw this one at a glance") == EACH
    assert "-    b = a + 4\n+    b = a - 4" in text
    assert "They said: sees 4" in text
    (tmp_path / "again").mkdir()
    assert text == examples_text(judged, "the-third", trees(tmp_path / "again", []))  # type: ignore[arg-type]


def test_a_file_without_enough_is_refused_and_a_bad_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="no example with the verdict 'at a glance' from a library other than two"
    ):
        examples_text(read_judged(line("one", 1, "good"), "t"), "two", trees(tmp_path, []))  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"t.jsonl: line 2 is not a judged corruption"):
        read_judged(line("one", 1, "good") + "\n{}", "t.jsonl")


def test_a_record_that_does_not_fit_its_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorruptionReplayError):
        examples_text(read_judged(line("one", 9, "good"), "t"), "two", trees(tmp_path, []))  # type: ignore[arg-type]
