"""The scorer of blind readings, on a made-up key of six functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from studies.blind_truth import agreement, auc, is_near, key_of, reader_of, table

KEY = [
    {
        "id": "a",
        "library": "x",
        "set": "new",
        "source": "history",
        "near": ["if a:", "return a"],
        "glance": 0.9,
    },
    {"id": "b", "library": "x", "set": "new", "source": "history", "near": ["return 2"], "glance": 0.2},
    {
        "id": "c",
        "library": "y",
        "set": "seen",
        "source": "operators",
        "near": ["total += item"],
        "glance": 0.4,
    },
    {"id": "d", "library": "y", "set": "seen", "source": "operators", "near": ["break"], "glance": 0.3},
    {"id": "e", "library": "y", "set": "seen", "source": "untouched"},
    {"id": "f", "library": "x", "set": "new", "source": "untouched"},
]


def blind(
    id: str, named: str | None, suspects: tuple[str, ...] = (), remembers: str = "no"
) -> dict[str, Any]:
    return {"id": id, "named": named, "confidence": 50, "suspects": suspects, "remembers": remembers}


ONE = [
    blind("a", "  if  a:", remembers="named"),
    blind("b", "x = 1", ("return 2",)),
    blind("c", "12  total += item"),
    blind("d", None),
    blind("e", "x = 1"),
    blind("f", None, ("x = 1",)),
]
OTHER = [blind("a", "return a"), blind("b", None), blind("c", None), blind("d", None), blind("e", None)]


def write(path: Path, lines: list[Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    write(tmp_path / "key.jsonl", KEY)
    write(tmp_path / "one" / "blind-1.jsonl", ONE[:3])
    write(tmp_path / "one" / "blind-2.jsonl", ONE[3:])
    write(tmp_path / "other" / "blind.jsonl", OTHER)
    verdicts = {"one": "good good weak bad", "other": "good weak weak bad"}
    for name, words in verdicts.items():
        write(
            tmp_path / name / "good.jsonl",
            [{"id": id, "verdict": word} for id, word in zip("abcd", words.split(), strict=True)],
        )
    return tmp_path


def cells(lines: list[str], *begin: str) -> list[str]:
    (row,) = (line for line in lines if line.startswith(f"| {' | '.join(begin)} |"))
    return [cell.strip() for cell in row.split("|")[3:-1]]


def test_each_share_of_a_source_is_of_the_functions_that_were_read(study: Path) -> None:
    lines = table(
        key_of(study / "key.jsonl"), [reader_of(study / "one"), reader_of(study / "other")], "source"
    )
    named, text, thought, fresh, suspected, alarms, _, good, unseen, rank = cells(lines, "history", "one")
    assert named == "1/2 = 50% (9% to 91%)"
    assert text.startswith("0/2 ")  # its only name is from memory
    assert thought.startswith("0/2 ")
    assert fresh.startswith("0/1 ")
    assert suspected.startswith("2/2 ")
    assert (alarms, rank) == ("-", "1.00")
    assert good.startswith("2/2 ")
    assert unseen.startswith("1/2 ")
    assert cells(lines, "untouched", "one")[5].startswith("1/2 ")
    assert cells(lines, "untouched", "other")[5].startswith("0/1 ")
    assert cells(lines, "all", "one")[0].startswith("2/4 ")


def test_names_are_counted_by_what_they_come_from(tmp_path: Path) -> None:
    write(tmp_path / "key.jsonl", KEY)
    answers = [
        {**blind("a", None), "named": ["x = 1", "return a"], "basis": "text", "task": "yes"},
        {**blind("b", None), "named": ["return 2"], "basis": "reasoning", "task": "yes"},
        {**blind("c", None), "named": ["total += item"], "basis": "memory", "task": "no"},
        {**blind("d", None), "named": [], "basis": "reasoning", "task": "yes"},
    ]
    write(tmp_path / "one" / "blind-1.jsonl", answers)
    reader = reader_of(tmp_path / "one")
    found = cells(table(key_of(tmp_path / "key.jsonl"), [reader], "source"), "all", "one")
    # named; from the text; without memory; named among those not remembered; would pass and not seen at once
    shares = [cell.partition(" ")[0] for cell in (*found[:4], found[6])]
    assert shares == ["3/4", "1/4", "2/4", "2/3", "2/4"]


def test_two_readers_agree_beyond_chance_on_what_both_read(study: Path) -> None:
    lines = agreement(key_of(study / "key.jsonl"), reader_of(study / "one"), reader_of(study / "other"))
    # Of four, both name one and neither names two: (3/4 - 1/2) / (1 - 1/2).
    # Verdicts: three of four agree; by chance (2*1 + 1*2 + 1*1) / 16.
    assert lines[0] == "kappa, named or not: 0.50 of 4; verdicts: 0.64 of 4"
    assert [line.partition(": ")[2].partition(" ")[0] for line in lines[1:]] == ["1/4", "2/4", "1/4"]


def test_a_line_counts_by_its_number_or_its_text() -> None:
    assert is_near("7 else:", ["6 if a:", "7 else:"])
    assert is_near("7: otherwise", ["7 else:"])
    assert not is_near("17 else:", ["6 if a:", "7 else:"])
    assert is_near("else:", ["7 else:"])
    assert is_near("7 | return  found", ["    return found"])
    assert is_near("return found", ["return found or None"])
    assert not is_near("return", ["return found"])
    assert not is_near("return lost", ["return found"])


def test_the_rank_counts_ties_half_and_needs_both_kinds() -> None:
    assert auc([(0.5, True), (0.5, False), (0.1, False)]) == 0.75
    assert auc([(0.5, True)]) is None
