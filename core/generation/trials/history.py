"""Searches the earlier bodies of a function for changes that make a test fail (decisions 137 and 181).

Bodies of earlier versions and of failed submissions are searched alike (decision 141).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from gistpoint.core.code.index import Definition, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.corruption.alignment import ChangeBack, LineEdit, changes_back, with_changes
from gistpoint.core.corruption.corruptions import Corruption
from gistpoint.core.corruption.edits import edits_between
from gistpoint.core.corruption.evidence import is_good, subtlety
from gistpoint.core.corruption.gates import Gate, GateRefusal
from gistpoint.core.corruption.reduction import missing_feature, smallest
from gistpoint.core.generation.earlier import EarlierBody
from gistpoint.core.generation.trials.discovery import Rated, fault, good_first, prove_best
from gistpoint.core.generation.trials.evidence import evidence_of
from gistpoint.core.generation.trials.trial import STOPPED, CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeReport
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree

MOST_CHANGED_LINES = 24
MOST_PROBES = 24
"""The maximum number of probes that reduce one earlier body."""
_PROBES_AT_IMPORT = 4
"""The same maximum for a function that runs during imports, where each probe needs a new process."""
_MOST_BODIES = 6
GONE = frozenset({"NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError"})
"""Errors raised by a body that uses names missing from the library."""


@dataclass(frozen=True, slots=True)
class RatedHistory(Rated):
    """A part of an earlier body that makes a good corruption, with its origin."""

    body: EarlierBody
    changes: int
    """The total number of changes in the earlier body."""
    taken: int
    """The number of these changes that the corruption makes."""
    signs: tuple[str, ...]
    """Descriptions of what a reader may notice in the text."""

    def provenance(self) -> dict[str, Any]:
        """Return the provenance that a task stores."""
        origin = {**self.body.origin, "changes": self.changes, "taken": self.taken}
        return {**super(RatedHistory, self).provenance(), self.body.family: origin, "signs": list(self.signs)}


def decide_history(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict with the best earlier fault, proven by the whole suite.

    Raises `CandidateDropped` if there is none.
    """
    found = good_earlier(trial, trial.candidate.name, trial.settings.band)
    good = sorted(found, key=lambda item: len(item.signs))
    return prove_best(trial, good)


def commits_of(trial: CandidateTrial, name: str) -> list[str]:
    """Return the commits or releases that replaced earlier bodies of a function, newest first."""
    path, _, qualname = name.partition("::")
    definition = _definition(trial, path, qualname)
    bodies = trial.context.bodies.of(path, qualname, definition.dedented)
    return list(dict.fromkeys(body.replaced_by for body in bodies))


def _definition(trial: CandidateTrial, path: str, qualname: str) -> Definition:
    index = index_source(path, trial.library.intake.repository.tree.read(path))
    try:
        return index.get(qualname)
    except CodeError as error:
        raise CandidateDropped(Reason.NO_CORRUPTION, str(error)) from error


def good_earlier(
    trial: CandidateTrial, name: str, band: tuple[int, int], commit: str | None = None
) -> list[RatedHistory]:
    """Return the good corruptions that the earlier bodies of a function contain, best hidden first.

    With `commit`, only bodies that this commit replaced are used. Raises `CandidateDropped` if the function
    has no earlier body.
    """
    path, _, qualname = name.partition("::")
    definition = _definition(trial, path, qualname)
    found = trial.context.bodies.of(path, qualname, definition.dedented)
    bodies = (body for body in found if commit in (None, body.replaced_by))
    gate = Gate(
        definition.dedented, trial.library.vocabulary.scope(definition), most_lines=MOST_CHANGED_LINES
    )
    search = _Search(trial, path, qualname, definition.dedented, gate, band)
    different = 0
    for body in islice(bodies, _MOST_BODIES):
        changes = _changes(definition.dedented, body)
        different += bool(changes)
        if changes:
            search.search(body, changes)
    if not different:
        raise CandidateDropped(Reason.NO_EARLIER_BODY)
    return good_first(search.good.values())


def _changes(current: str, body: EarlierBody) -> tuple[ChangeBack, ...]:
    """Return the changes that the author of a body made, without those of the fault planted in it.

    Nobody believed a planted fault to be right, and the task that planted it exists already.
    """
    try:
        made = changes_back(current, body.text)
        given = changes_back(current, body.planted) if body.planted else ()
    except CodeError:
        return ()
    planted = {_place_and_text(edit) for change in given for edit in change.edits}
    own = [tuple(edit for edit in change.edits if _place_and_text(edit) not in planted) for change in made]
    return tuple(replace(change, edits=edits) for change, edits in zip(made, own, strict=True) if edits)


def _place_and_text(edit: LineEdit) -> tuple[int, int, tuple[str, ...]]:
    return edit.start, edit.end, edit.lines


@dataclass
class _Search:
    """The search for failing parts of the earlier bodies of one function."""

    trial: CandidateTrial
    path: str
    qualname: str
    current: str
    gate: Gate
    band: tuple[int, int]
    """The minimum and maximum numbers of failing tests."""
    family: str = ""
    """The kind of origin of the body being reduced."""
    good: dict[str, RatedHistory] = field(default_factory=dict)
    """The good corruptions that were found, by their text."""
    _probed: dict[str, ProbeReport] = field(default_factory=dict)

    @property
    def _most_probes(self) -> int:
        at_import = f"{self.path}::{self.qualname}" in self.trial.library.test_map.at_import
        return _PROBES_AT_IMPORT if at_import else MOST_PROBES

    def search(self, body: EarlierBody, changes: Sequence[ChangeBack]) -> None:
        """Rate all changes, or the first that fails alone; if that isn't good, the smallest failing part.

        A wholly earlier body hides its fault better than a single earlier line, which the current lines
        around it contradict (decision 181).
        """
        self.family = body.family
        most = self._most_probes
        beginnings = enumerate(_beginnings(changes, most), start=1)
        tried, whole = next((item for item in beginnings if self._fails(item[1])), (most, None))
        if whole is None:
            self.trial.fates["earlier body: no test fails"] += 1
            return
        if not self._keep_if_good(body, whole, len(changes)) and len(whole) > 1:
            part = smallest(whole, self._fails, most - tried)
            self._keep_if_good(body, part, len(changes))

    def _fails(self, part: Sequence[ChangeBack]) -> bool:
        """Return whether tests fail with these changes for reasons other than missing names."""
        text = with_changes(self.current, part)
        if self.gate.check(text) in _UNUSABLE:
            return False
        report = self._report(text)
        if report.status is not RunStatus.FINISHED or not report.failed:
            return False
        return not any(failure.error_type in GONE for failure in report.failed.values())

    def _report(self, text: str) -> ProbeReport:
        if text not in self._probed:
            self.trial.next(f"{self.path}::{self.qualname}", self.family)
            self._probed[text] = self.trial.probe((self._target(text),))
        return self._probed[text]

    def _target(self, text: str) -> Target:
        return Target(self.path, self.qualname, self.current, text)

    def _keep_if_good(self, body: EarlierBody, part: Sequence[ChangeBack], changes: int) -> bool:
        """Keep a failing part that is good and not refused; return whether it is kept."""
        text = with_changes(self.current, part)
        if text in self.good:
            return True
        trial, target, report = self.trial, self._target(text), self._report(text)
        refusal = self.gate.check(text)
        if refusal in _REFUSED:
            trial.count_outcome(f"gate: {refusal}")
            return False
        if report.status is not RunStatus.FINISHED:
            trial.count_outcome(STOPPED.get(report.status, Reason.NO_RESULT).value)
            return False
        errors = [failure.error_type for failure in report.failed.values()]
        tests = code_of_tests(trial.library.intake.repository.tree, report.failed)
        feature = missing_feature(self.current, body.file, tests, errors)
        if feature and not trial.settings.missing_features:
            trial.count_outcome(Reason.MISSING_FEATURE.value)
            return False
        glance = trial.context.scorer.scores([target])[0]
        # The score was fitted to deliberate edits. Here it only ranks proven faults, unless the user sets a
        # maximum (decision 137).
        most = trial.settings.max_glance
        if most is not None and glance.value > most:
            trial.count_outcome(Reason.AT_A_GLANCE.value)
            return False
        evidence, band = evidence_of(report, target, trial.library), self.band
        is_about_it = all(id in trial.library.entering(target.name) for id in report.failed)
        good = is_good(evidence, *band) and is_about_it
        trial.count_outcome("good" if good else fault(evidence, band[0]))
        if good:
            corruption = Corruption(target, edits_between(self.current, text), (body.family,), 1.0)
            rated = subtlety(evidence, *band)
            signs = self.gate.broken(text)
            self.good[text] = RatedHistory(
                corruption, report, evidence, rated, glance, good, body, changes, len(part), signs
            )
        return good


_UNUSABLE = (
    GateRefusal.DOES_NOT_PARSE,
    GateRefusal.UNKNOWN_NAME,
    GateRefusal.SAME_TREE,
    GateRefusal.SAME_CODE,
    GateRefusal.UNREADABLE,
)
"""Reasons to refuse a version without a probe: it can't run, or behaves like the current version."""
_REFUSED = (*_UNUSABLE, GateRefusal.TOO_MANY_LINES)


def _beginnings(changes: Sequence[ChangeBack], most: int) -> Iterator[Sequence[ChangeBack]]:
    """Yield the sets of changes to try first: all changes, then each change alone."""
    yield changes
    if len(changes) > 1:
        yield from ([change] for change in changes[: most - 1])


def code_of_tests(tree: SourceTree, ids: Iterable[str]) -> list[str]:
    """Return the code of the functions of tests, each once; tests that can't be found are left out."""
    found: dict[str, str] = {}
    for id in ids:
        path, _, inner = id.partition("::")
        name = inner.partition("[")[0].replace("::", ".")
        key = f"{path}::{name}"
        if key in found:
            continue
        try:
            found[key] = index_source(path, tree.read(path)).get(name).dedented
        except (CodeError, FileNotFoundError):
            continue
    return list(found.values())
