"""The text of a run that a judge and a person read, and the computed facts of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from gistpoint.core.judging.answers import RunAnswer
from gistpoint.core.judging.pieces import RunPassage
from gistpoint.core.judging.quotes import QuotePlace
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.annotations.copies import ContentHash
from gistpoint.sessions.annotations.keys import run_key
from gistpoint.sessions.records.model import Run, parts_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.profile import Profile, profile_of


@dataclass(frozen=True, slots=True)
class RunText:
    """A run as it is judged."""

    key: str
    """The key under which the run is annotated, which other runs may share."""
    own_key: str
    """A key that only copies of the run share, for people's labels, which belong to the content read."""
    name: str
    """The name by which the user opens the run."""
    task: str
    """The task by which runs are grouped; the run's key if the run names none."""
    passages: tuple[RunPassage, ...]

    def quoted(self, place: QuotePlace) -> str:
        """Return the text at a place; empty if the place is not in the run."""
        for passage in self.passages:
            if (passage.step, passage.scope, passage.part) == (place.step, place.scope, place.part):
                return passage.text[place.start : place.end]
        return ""


def run_text(name: str, document: RunDocument, header: Run, *, cancel: CancelToken = NEVER) -> RunText:
    """Return the text of a run; only the beginning is included of parts that are too long to show whole.

    Raises `CancelledError` when cancelled.
    """
    key, content = run_key(document), ContentHash()
    passages = tuple(_passages(document, content, cancel))
    return RunText(key, content.key(key), name, header.task or key, passages)


def _passages(document: RunDocument, content: ContentHash, cancel: CancelToken) -> Iterator[RunPassage]:
    for step in document.steps():
        cancel.check()
        content.add(step)
        for scope, part, text in parts_of(step):
            if text.strip():
                yield RunPassage(step.index, scope.value, part, str(text))


class ComputedFact(Protocol):
    """A fact that is computed from the profile of a run."""

    def __call__(self, profile: Profile) -> tuple[int, ...] | None:
        """Return the steps that show the fact, empty if the run as a whole does; None if it does not hold."""
        ...


def _no_test_run(profile: Profile) -> tuple[int, ...] | None:
    return None if profile.test_runs else ()


def _failed_at_last(profile: Profile) -> tuple[int, ...] | None:
    last = profile.test_runs[-1] if profile.test_runs else None
    return (last.step,) if last is not None and last.went_well is False else None


def _no_edit(profile: Profile) -> tuple[int, ...] | None:
    return None if profile.first_edit is not None else ()


def _steps(of: Callable[[Profile], list[int]]) -> ComputedFact:
    def shown(profile: Profile) -> tuple[int, ...] | None:
        return tuple(of(profile)) or None

    return shown


FACTS: Mapping[str, ComputedFact] = {
    "repeated_command": _steps(lambda profile: profile.repeated.steps),
    "reread": _steps(lambda profile: profile.reread.steps),
    "reverted_edit": _steps(lambda profile: profile.reverted.steps),
    "failing_call": _steps(lambda profile: profile.failing.steps),
    "condensed_context": _steps(lambda profile: profile.condensed.steps),
    "no_edit": _no_edit,
    "no_test_run": _no_test_run,
    "last_tests_failed": _failed_at_last,
}
"""The facts that a rubric may name, by name."""


def computed(
    document: RunDocument, names: tuple[str, ...], *, cancel: CancelToken = NEVER
) -> dict[str, RunAnswer]:
    """Return the answers for the named facts; without names, the run is not read.

    Raises `CancelledError` when cancelled.
    """
    if not names:
        return {}
    profile = profile_of(document, cancel=cancel)
    found = {name: FACTS[name](profile) for name in names}
    return {
        name: RunAnswer(steps is not None, 1.0, tuple(QuotePlace(step, "", 0, 0, 0) for step in steps or ()))
        for name, steps in found.items()
    }
