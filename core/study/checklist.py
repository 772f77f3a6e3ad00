"""The reporting checklist for human baselines of Wei and others (2025):
what the data answer, and what a person must.

An answer by program names its evidence and is never better than that: where nothing recorded shows a thing,
the item is open and reads Unknown/Unreported, until somebody answers it in `study.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from gistpoint.core.study.checklist_evidence import ChecklistEvidence, Estimated, EvidencedAnswer
from gistpoint.core.study.checklist_rules import RULES
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.prose import Facts

UNREPORTED = "Unknown/Unreported"


class ChecklistItem(msgspec.Struct, frozen=True, kw_only=True):
    """A numbered item of the checklist, under a short name of our own."""

    number: str
    title: str
    source: Literal["log", "declared"]
    """Where its answer comes from: the log and the journals, or study.toml."""
    rule: str = ""
    """The rule that answers it; empty if only a person can."""
    ask: str = ""
    """What would answer it."""


class _Checklist(msgspec.Struct, frozen=True):
    version: int
    item: tuple[ChecklistItem, ...]


@dataclass(frozen=True, slots=True)
class ChecklistAnswer:
    """An item with its answer and the evidence; an open one has no answer, and says what would be one."""

    item: ChecklistItem
    answer: str
    evidence: str

    @property
    def open(self) -> bool:
        """Whether somebody still has to answer it."""
        return not self.answer


@cache
def checklist() -> tuple[ChecklistItem, ...]:
    """Return all items, in the order of the checklist."""
    text = (files("gistpoint.core.study") / "checklist.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Checklist).item


def answers(data: StudyData, facts: Facts, estimated: Estimated) -> tuple[ChecklistAnswer, ...]:
    """Answer every item for a study; `estimated` says which analyses came to an estimate."""
    evidence = ChecklistEvidence(data, facts, estimated)
    return tuple(
        _answer(item, evidence, data.study.checklist.get(item.number, "").strip()) for item in checklist()
    )


def _answer(item: ChecklistItem, evidence: ChecklistEvidence, said: str) -> ChecklistAnswer:
    found: EvidencedAnswer | None = RULES[item.rule](evidence) if item.rule else None
    stated = f"study.toml: checklist, {item.number}"
    if item.source == "declared":
        if said:
            return ChecklistAnswer(item, said, stated)
    elif said and found is None:
        return ChecklistAnswer(item, said, f"{stated}; nothing that was recorded shows it")
    elif said and found is not None:
        return ChecklistAnswer(item, found.answer, f"{found.evidence}. The authors add: {said}")
    if found is None:
        return ChecklistAnswer(
            item, "", item.ask or "Nothing that was recorded shows it; answer it in study.toml"
        )
    return ChecklistAnswer(item, found.answer, found.evidence)
