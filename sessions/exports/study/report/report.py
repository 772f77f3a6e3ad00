"""The content of a report: a study's data, the findings of its analyses, the methods and the checklist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from platform import python_version

from gistpoint.core.analysis.findings import Value
from gistpoint.core.analysis.printing import Extent
from gistpoint.core.analysis.running import PRIMARY, RanAnalysis
from gistpoint.core.study.checklist import ChecklistAnswer, answers
from gistpoint.core.study.checklist_evidence import Estimated
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.facts import methods_text, study_facts
from gistpoint.core.study.prose import Facts, Passage

SIMULATED = "SIMULATED"
_PACKAGES = ("numpy", "scipy", "pandas", "statsmodels", "lifelines", "matplotlib")


@dataclass(frozen=True)
class StudyReport:
    """The content of the page, of `results.json` and of the methods text."""

    data: StudyData
    ran: tuple[RanAnalysis, ...]

    @property
    def simulated(self) -> bool:
        """Whether the study or any of its rows is simulated."""
        return self.data.study.simulated or any(row.simulated for row in self.data.rows)

    @property
    def title(self) -> str:
        """The study's title, or its id."""
        return self.data.study.title or self.data.study.id

    @property
    def confirmatory(self) -> tuple[RanAnalysis, ...]:
        """The primary analysis; empty if the analysis did not run."""
        return tuple(one for one in self.ran if one.analysis.id == PRIMARY)

    @property
    def exploratory(self) -> tuple[RanAnalysis, ...]:
        """All other analyses with results to print."""
        return tuple(one for one in self.ran if one.analysis.id != PRIMARY and one.printed)

    @cached_property
    def facts(self) -> Facts:
        """The facts about the study, with the versions of the packages that computed its numbers."""
        return {**study_facts(self.data), "packages/Python": python_version()} | {
            f"packages/{name}": known for name, known in _versions(_PACKAGES)
        }

    @cached_property
    def methods(self) -> tuple[Passage, ...]:
        """The text of the methods."""
        return methods_text(self.facts)

    @cached_property
    def estimated(self) -> Estimated:
        """The ids of the analyses that estimated numbers, and of those that estimated intervals."""
        with_numbers: set[str] = set()
        with_intervals: set[str] = set()
        for one in self.ran:
            numbers = one.findings.numbers.values()
            if any(number.value is not None for number in numbers):
                with_numbers.add(one.analysis.id)
            if any(number.low is not None for number in numbers):
                with_intervals.add(one.analysis.id)
        return Estimated(frozenset(with_numbers), frozenset(with_intervals), PRIMARY)

    @cached_property
    def checklist(self) -> tuple[ChecklistAnswer, ...]:
        """The checklist, with the answers for which there is evidence."""
        return answers(self.data, self.facts, self.estimated)

    @cached_property
    def extent(self) -> Extent:
        """The numbers of people, tasks and attempts that count."""
        rows = self.data.counted
        return Extent(
            len({row.participant for row in rows if row.participant}),
            len({row.task for row in rows}),
            len(rows),
        )

    @property
    def declared(self) -> str:
        """The sentence that names the confirmatory analysis."""
        facts = self.facts
        contrast = f", comparing {facts['protocol/contrast']}" if facts["protocol/contrast"] else ""
        opened = (
            "before the study was opened"
            if facts["protocol/opened"]
            else "in a study that has not been opened"
        )
        return (
            f"Declared {opened}: {facts['protocol/primary']}{contrast}. Primary time:"
            f" {facts['protocol/primary_time']}."
        )

    @property
    def facts_of_study(self) -> tuple[tuple[str, Value], ...]:
        """The rows about the study at the top of the page: names and values."""
        facts = self.facts
        state = "not opened"
        if facts["protocol/closed"]:
            state = "closed"
        elif facts["protocol/opened"]:
            state = "open"
        return (
            ("Study", f"{facts['study/id']} ({state})"),
            ("Protocol", str(facts["protocol/sha256"]) or "no hash: the study has not been opened"),
            ("Amendments after opening", int(facts["protocol/amendments"])),
            ("People enrolled", int(facts["people/enrolled"])),
            ("People with counted attempts", int(facts["people/counted"])),
            ("People who withdrew", int(facts["people/withdrawn"])),
            ("Tasks", int(facts["tasks/number"])),
            (
                "Attempts of people: counted, excluded",
                f"{facts['attempts/counted']}, {facts['attempts/excluded']}",
            ),
            ("Attempts of models that count", int(facts["attempts/models"])),
            ("Flags that exclude", str(facts["quality/exclude_on"])),
            ("Analysed by", f"gistpoint {facts['program/version']}"),
        )


def _versions(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
