"""What a confirmation comes to, what a task's controls showed, and who carries both out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from gistpoint.core.running import UNATTENDED, RunContext

if TYPE_CHECKING:
    from gistpoint.core.tasks.model import Answer, Task
    from gistpoint.core.trees import SourceTree


class Confirmed(StrEnum):
    """What came of the confirmation of a pass."""

    CONFIRMED = "confirmed"
    """The tests that count pass with the submitted functions in a process that holds no test."""
    CONTRADICTED = "contradicted"
    """A test that counts fails there, and a call in it was answered otherwise than the true function answers
    it.
    """
    UNCONFIRMED = "unconfirmed"
    """Neither; the reason says why."""


class Unconfirmable(StrEnum):
    """Why a pass, or every pass of a task, can't be confirmed: a closed set."""

    NO_CONTROL = "no_control"
    """No test tells the true function from the corrupted one, or from one that returns None, in two
    processes.
    """
    NOT_PLAIN_DATA = "not_plain_data"
    """What the function is given, or answers, can't travel between processes."""
    ASYNCHRONOUS = "asynchronous"
    AT_IMPORT = "at_import"
    """The function is called while modules are imported."""
    STATE_OUTSIDE = "state_outside"
    """Its answers depend on more than what it is given."""
    NOT_DETERMINISTIC = "not_deterministic"
    RUNS_TEXT = "runs_text"
    """A library runs the function's answer as code."""
    HEADER_CHANGED = "header_changed"
    """The submission changed the parameters or decorators of the function, or code outside of functions."""
    TOO_SLOW = "too_slow"
    TOO_MANY_CALLS = "too_many_calls"
    CLASS_TARGET = "class_target"
    """A class was replaced, not a function."""
    SANDBOX = "sandbox"
    """One of the two processes did not begin, or ended early."""


class AnsweredCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that the true function and the submitted one answer differently, as texts to be shown."""

    function: str
    """`path::qualname`."""
    call: str
    original: str
    submission: str
    test: str = ""
    """The id of the test that made the call; empty for a varied input, for which no test asks."""


class Confirmation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of the confirmation of one pass."""

    result: Confirmed
    reason: Unconfirmable | None = None
    """Why it is unconfirmed."""
    detail: str = ""
    """The reason in a sentence that names what it met."""
    calls: int = 0
    """Calls that the submission answered."""
    tests: int = 0
    """Tests that count and were run."""
    uncovered: int = 0
    """Tests that fail with the corrupted function and were not run: whether they pass is only the
    submission's word.
    """
    contradiction: AnsweredCall | None = None
    beyond: AnsweredCall | None = None
    """The smallest varied input on which submission and original differ; a note, which changes no result."""
    varied: int = 0
    """Varied inputs on which both were compared."""
    marks: tuple[str, ...] = ()
    """What the confirmation saw that a reviewer should read, such as `answers differ when asked again`."""
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """The result and its reason in a few words."""
        return f"{self.result} ({self.reason})" if self.reason else str(self.result)


class Controls(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controls of a task showed when it was made: whether its passes can be confirmed, and by which
    tests.
    """

    confirmable: bool
    reason: Unconfirmable | None = None
    """Why not."""
    detail: str = ""
    tests: tuple[str, ...] = ()
    """The tests that count: they pass with the true function in a process of its own."""
    telling: tuple[str, ...] = ()
    """Those of them that fail with the corrupted function or with one that returns None."""
    entering: int = 0
    """Tests that enter a function of the task."""
    calls: int = 0
    """Calls that the true function answered in the tests that count."""
    answers: Mapping[str, tuple[str, ...]] = {}
    """By function: the classes and names that the true function's answers were seen to hold."""
    writes: Mapping[str, tuple[str, ...]] = {}
    """By function: the attributes and containers that the true function was seen to change."""
    runs: tuple[str, ...] | None = None
    """What was compiled, unpickled and started while the true function answered, as hashes; None if nobody
    looked.
    """
    data_hidden: bool = False
    """Whether the submission's process also ran without the files of the tests that are no Python."""
    reasons: Mapping[str, int] = {}
    """How many tests do not count, by reason."""
    seconds: float = 0.0
    """Seconds that the true function's run took."""


NOT_CONTROLLED = Controls(False, Unconfirmable.NO_CONTROL, "The task was made before passes were confirmed.")
"""The controls of a task that has none."""


class Confirmer(Protocol):
    """Runs suite and submission in two processes, in a place where code of a repository may run."""

    def control(self, task: Task, answer: Answer, *, run: RunContext = UNATTENDED) -> Controls:
        """Return what the controls of a task show.

        Raises `CancelledError` when stopped; whatever else keeps the controls from being made is a reason.
        """
        ...

    def confirm(
        self,
        task: Task,
        answer: Answer,
        controls: Controls,
        submitted: SourceTree,
        *,
        run: RunContext = UNATTENDED,
    ) -> Confirmation:
        """Return what came of the confirmation of `submitted`, a tree that passed the task's suite.

        Raises `CancelledError` when stopped.
        """
        ...


def reasons_in_words(reasons: Mapping[str, int]) -> str:
    """Return the reasons why tests do not count, most frequent first."""
    ordered: Sequence[tuple[str, int]] = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered)
