"""The reporting checklist for human baselines of Wei and others (2025), answered from the data.

An answer by the program names its evidence and claims no more than the evidence shows. An item for which no
record shows the facts is open, and reads Unknown/Unreported until somebody answers it in `study.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.study.checklist_evidence import ChecklistEvidence, Estimated, EvidencedAnswer
from gistpoint.core.study.checklist_rules import RULES
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.prose import Facts

UNREPORTED = "Unknown/Unreported"


class ChecklistItem(msgspec.Struct, frozen=True, kw_only=True):
    """A numbered item of the checklist, with a short title in this program's words."""

    number: str
    title: str
    source: Literal["log", "declared"]
    """The source of the answer: the log and the journals, or `study.toml`."""
    rule: str = ""
    """The name of the rule that answers it; empty if only a person can."""
    ask: str = ""
    """A description of a suitable answer."""


class _Checklist(msgspec.Struct, frozen=True):
    version: int
    item: tuple[ChecklistItem, ...]


@dataclass(frozen=True, slots=True)
class ChecklistAnswer:
    """An item with its answer and the evidence.

    An open item has an empty answer, and its evidence describes a suitable one.
    """

    item: ChecklistItem
    answer: str
    evidence: str

    @property
    def open(self) -> bool:
        """Whether the item still needs an answer."""
        return not self.answer


@cache
def checklist() -> tuple[ChecklistItem, ...]:
    """Return all items, in the order of the checklist."""
    text = (files("gistpoint.core.study") / "checklist.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), decodable(_Checklist)).item


def answers(data: StudyData, facts: Facts, estimated: Estimated) -> tuple[ChecklistAnswer, ...]:
    """Return the answer to every item; `estimated` names the analyses that have estimates."""
    evidence = ChecklistEvidence(data, facts, estimated)
    return tuple(
        _answer(item, evidence, data.study.checklist.get(item.number, "").strip()) for item in checklist()
    )


def _answer(item: ChecklistItem, evidence: ChecklistEvidence, stated: str) -> ChecklistAnswer:
    found: EvidencedAnswer | None = RULES[item.rule](evidence) if item.rule else None
    source = f"study.toml: checklist, {item.number}"
    if item.source == "declared":
        if stated:
            return ChecklistAnswer(item, stated, source)
    elif stated and found is None:
        return ChecklistAnswer(item, stated, f"{source}; there is no record of it")
    elif stated and found is not None:
        return ChecklistAnswer(item, found.answer, f"{found.evidence}. The authors add: {stated}")
    if found is None:
        return ChecklistAnswer(item, "", item.ask or "There is no record of it; answer it in study.toml")
    return ChecklistAnswer(item, found.answer, found.evidence)
