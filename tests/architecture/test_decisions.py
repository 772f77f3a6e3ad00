"""Decisions have one template, references to them are valid, and the code names each of them."""

from __future__ import annotations

import re

import pytest
from project_files import ROOT, tracked

FOLDER = "docs/decisions/"
DECISIONS = [path for path in tracked() if path.startswith(FOLDER)]
ROOMS = ("core/", "sandbox/", "sessions/", "tui/", "src/gistpoint/", "tests/")
NAMED = re.compile(r"\bdecisions? (\d+(?:(?:, | and )\d+)*)", re.IGNORECASE)
REPLACED = re.compile(r"\breplaced by decision \d+", re.IGNORECASE)
"""Matches the line of a decision that another one replaced."""


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.removeprefix(FOLDER))
def test_a_decision_has_a_context_a_decision_and_a_consequence(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.match(r"# .+\n\n\*\*Context\.\*\*", text)
    assert re.findall(r"^\*\*(Context|Decision|Consequence)\.\*\*", text, re.MULTILINE) == [
        "Context",
        "Decision",
        "Consequence",
    ]


def test_references_lead_to_decisions() -> None:
    numbers = {path.removeprefix(FOLDER)[:4] for path in DECISIONS}
    for path in tracked():
        data = (ROOT / path).read_bytes()
        if b"decisions/" in data and b"\0" not in data and not path.startswith("tests/"):
            for number in re.findall(r"decisions/(\d{4})", data.decode("utf-8", "replace")):
                assert number in numbers, f"{path}: {number}"


def _is_source(path: str) -> bool:
    is_python = path.endswith(".py") and path.startswith(ROOMS)
    return is_python or path == "pyproject.toml" or path.startswith(".ci/")


def test_every_decision_in_force_is_named_where_it_decides() -> None:
    named = set[int]()
    for path in filter(_is_source, tracked()):
        for numbers in NAMED.findall((ROOT / path).read_text(encoding="utf-8", errors="replace")):
            named.update(map(int, re.findall(r"\d+", numbers)))
    in_force = set[int]()
    for path in DECISIONS:
        if not REPLACED.search((ROOT / path).read_text(encoding="utf-8")):
            in_force.add(int(path.removeprefix(FOLDER)[:4]))
    assert sorted(in_force - named) == [], "end a comment at the line that it decides in `(decision N)`"
    assert sorted(named - in_force) == [], "a comment names a decision that does not exist or was replaced"


def test_decisions_are_numbered_in_one_sequence() -> None:
    names = [path.removeprefix(FOLDER) for path in sorted(DECISIONS)]
    assert [name[:5] for name in names] == [f"{number:04}-" for number in range(1, len(names) + 1)]
    for number, path in enumerate(sorted(DECISIONS), 1):
        assert (ROOT / path).read_text(encoding="utf-8").startswith(f"# {number}. ")
