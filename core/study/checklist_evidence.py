"""A study's evidence for its checklist answers, such as counted attempts, operations and hashes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from gistpoint.core.study.data import StudyData
from gistpoint.core.study.operations import Answers, StudyOperation, StudyOperationKind
from gistpoint.core.study.prose import Facts
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.tasks.rules import Face, rules_text
from gistpoint.core.text import plural

YES = "Yes"
NO = "No"
PARTIAL = "Partial"
NOT_APPLICABLE = "N/A"
PROMPT = "agent-2"
"""The system prompt that contains only the rules for people."""
LEAST_SHARED = 3
"""The minimum number of tasks that people and models must both have attempted for a Yes."""


@dataclass(frozen=True, slots=True)
class EvidencedAnswer:
    """An answer with its evidence."""

    answer: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Estimated:
    """The ids of a report's analyses that have numbers, and of those whose numbers have intervals."""

    numbers: frozenset[str] = frozenset()
    intervals: frozenset[str] = frozenset()
    primary: str = ""
    """The id of the primary analysis."""


@dataclass(frozen=True, slots=True)
class ComparedHashes:
    """The numbers of tasks that people and models attempted in one condition, by whether hashes are equal."""

    equal: int
    unequal: int
    unknown: int
    of_people: int = 0
    """The number of tasks that people attempted in conditions in which models made attempts."""

    @property
    def all_equal(self) -> bool:
        """Whether the hash is known and equal for all tasks of people, at least `LEAST_SHARED` of them."""
        covers_all = self.equal >= max(LEAST_SHARED, self.of_people)
        return covers_all and not self.unequal and not self.unknown

    @property
    def words(self) -> str:
        """The three counts, in words."""
        equal = plural(self.equal, "task")
        counts = f"equal for {equal}, unequal for {self.unequal}, not recorded for {self.unknown}"
        shared = self.equal + self.unequal + self.unknown
        if shared >= max(LEAST_SHARED, self.of_people) or not self.of_people:
            return counts
        return f"{counts}; models attempted {shared} of people's {plural(self.of_people, 'task')}"


@dataclass(frozen=True)
class ChecklistEvidence:
    """The data that the checklist's rules read."""

    data: StudyData
    facts: Facts
    estimated: Estimated

    @cached_property
    def people(self) -> tuple[AttemptRow, ...]:
        """The counted attempts of people."""
        return tuple(row for row in self.data.counted if not row.solver)

    @cached_property
    def models(self) -> tuple[AttemptRow, ...]:
        """The counted attempts of models."""
        return tuple(row for row in self.data.counted if row.solver)

    @cached_property
    def persons(self) -> int:
        """The number of people with counted attempts."""
        return len({row.participant for row in self.people})

    def number(self, key: str) -> float:
        """Return a numeric fact; 0 if there is none."""
        value = self.facts.get(key, 0)
        if isinstance(value, int | float):
            return value
        return 0

    def operation(self, kind: StudyOperationKind) -> StudyOperation | None:
        """Return the first operation of a kind; None if there is none."""
        return next((operation for operation in self.data.ledger.operations if operation.kind == kind), None)

    def is_before_opening(self, operation: StudyOperation) -> bool:
        """Return whether an operation was recorded before the study was opened, if it was."""
        opened = self.operation(StudyOperationKind.OPENED)
        return opened is None or operation.utc_ms <= opened.utc_ms

    @cached_property
    def power(self) -> StudyOperation | None:
        """The last power analysis before the study was opened, which the pre-registration prints.

        If none was made before, it is the last power analysis; None if there is none.
        """
        made = [one for one in self.data.ledger.operations if one.kind == StudyOperationKind.POWER]
        return next(reversed(list(filter(self.is_before_opening, made)) or made), None)

    def answered(self, questionnaire: str) -> int:
        """Return how many times a questionnaire was filled in."""
        count = 0
        for person in self.data.ledger.people.values():
            count += sum(answers.questionnaire == questionnaire for answers in person.facts.all(Answers))
        return count

    def compared(self, name: str) -> ComparedHashes:
        """Return how many tasks, by condition, have an equal attribute in people's and models' rows."""
        values: dict[tuple[str, str], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for row in (*self.people, *self.models):
            values[row.task, row.condition][bool(row.solver)].add(str(getattr(row, name)))
        pairs = [(first, second) for first, second in values.values() if first and second]
        together = [first | second for first, second in pairs]
        unknown = sum("" in hashes for hashes in together)
        # An attribute is equal if both sides have one common hash, because people may also differ among
        # themselves.
        equal = sum(len(hashes) == 1 and "" not in hashes for hashes in together)
        conditions = {row.condition for row in self.models}
        of_people = {(row.task, row.condition) for row in self.people if row.condition in conditions}
        return ComparedHashes(equal, len(pairs) - equal - unknown, unknown, len(of_people))

    @property
    def differing_texts(self) -> str:
        """The instructions beyond the briefs that people and models did not share; empty if there are none.

        Rules come from one template for both, unless the organiser rewrote them or a model got other prompts.
        """
        found = []
        if self.data.study.texts.rules.strip() != rules_text(Face.PERSON).strip():
            found.append("people read the study's own rules, which no model got")
        keys = {row.condition_key.partition(" | ")[2] for row in self.models}
        prompts = {key.partition("system ")[2].partition(",")[0] or "none recorded" for key in keys}
        if others := sorted(prompts - {PROMPT}):
            found.append(f"models got other system prompts than {PROMPT}: {', '.join(others)}")
        return "; ".join(found)


def span(numbers: list[int]) -> str:
    """Return the range of sorted numbers in words; `0` if there are none."""
    if not numbers:
        return "0"
    if numbers[0] == numbers[-1]:
        return str(numbers[0])
    return f"{numbers[0]} to {numbers[-1]}"


def operation_words(operation: StudyOperation) -> str:
    """Return the id and the kind of an operation, by which it can be found in the log."""
    return f"operation {operation.op[:8]} ({operation.kind})"
