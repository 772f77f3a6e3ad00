"""The results of confirmations, the controls of tasks, and the interface for making both."""

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
    """The result of confirming a pass."""

    CONFIRMED = "confirmed"
    """The tests that count pass with the submitted functions in a process without tests."""
    CONTRADICTED = "contradicted"
    """Run that way, a test that counts fails, and the true function answers one of its calls differently."""
    UNCONFIRMED = "unconfirmed"
    """Neither confirmed nor contradicted, for a reason that is an `Unconfirmable`."""


class Unconfirmable(StrEnum):
    """The reason why a pass, or every pass of a task, can't be confirmed: a closed set."""

    NO_CONTROL = "no_control"
    """No test distinguishes the true function, out of process, from the corrupted one or a stub.

    The stub returns None.
    """
    NOT_PLAIN_DATA = "not_plain_data"
    """The function's arguments or answers can't be sent between processes."""
    ASYNCHRONOUS = "asynchronous"
    AT_IMPORT = "at_import"
    """The function is called during imports."""
    STATE_OUTSIDE = "state_outside"
    """Its answers depend on more than its arguments."""
    NOT_DETERMINISTIC = "not_deterministic"
    RUNS_TEXT = "runs_text"
    """A library runs the function's answer as code."""
    HEADER_CHANGED = "header_changed"
    """The submission changed the function's parameters or decorators, or code outside of functions."""
    TOO_SLOW = "too_slow"
    TOO_MANY_CALLS = "too_many_calls"
    CLASS_TARGET = "class_target"
    """A class was replaced rather than a function."""
    SANDBOX = "sandbox"
    """One of the two processes did not start or ended early, or the machine is too busy."""


class AnsweredCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that the true and the submitted function answer differently, with all parts as strings."""

    function: str
    """The function, as `path::qualname`."""
    call: str
    original: str
    submission: str
    test: str = ""
    """The id of the test that made the call; empty for a varied input, which no test uses."""


class Confirmation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The confirmation of one pass."""

    result: Confirmed
    reason: Unconfirmable | None = None
    """The reason why the pass is unconfirmed; None for other results."""
    detail: str = ""
    """The reason in a sentence, with details."""
    calls: int = 0
    """The number of calls answered by the submission."""
    tests: int = 0
    """The number of tests that count and were run."""
    uncovered: int = 0
    """The minimum number of tests that pass only according to the submission's own process.

    They enter a changed function, or fail with the corrupted one, and could not be run separately.
    """
    contradiction: AnsweredCall | None = None
    beyond: AnsweredCall | None = None
    """The smallest varied input with different answers, or None: a note without effect on the result."""
    varied: int = 0
    """The number of varied inputs compared."""
    marks: tuple[str, ...] = ()
    """Observations for a reviewer, such as `answers differ when asked again`."""
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """The result and its reason in a few words."""
        return f"{self.result} ({self.reason})" if self.reason else str(self.result)


class Controls(msgspec.Struct, frozen=True, omit_defaults=True):
    """The controls of a task, made with it: whether passes can be confirmed, and by which tests."""

    confirmable: bool
    reason: Unconfirmable | None = None
    """The reason why passes can't be confirmed; None if they can."""
    detail: str = ""
    tests: tuple[str, ...] = ()
    """The tests that count, because they pass with the true function in a separate process."""
    telling: tuple[str, ...] = ()
    """Those of `tests` that fail with the corrupted function or with one that returns None."""
    entering: int = 0
    """The number of tests that enter a function of the task."""
    calls: int = 0
    """The number of calls answered by the true function in the tests that count."""
    answers: Mapping[str, tuple[str, ...]] = {}
    """For each function, the classes and names seen in the true function's answers."""
    writes: Mapping[str, tuple[str, ...]] = {}
    """For each function, the attributes and containers that the true function was seen to change."""
    runs: tuple[str, ...] | None = None
    """Hashes of what was compiled, unpickled and started in true answers; None if not observed."""
    data_hidden: bool = False
    """Whether the submission's process also runs without the tests' non-Python files."""
    reasons: Mapping[str, int] = {}
    """The number of tests that do not count, by reason."""
    seconds: float = 0.0
    """The duration of the true function's run."""
    each: bool = False
    """Whether a test was found for each function that fails if only this function is wrong.

    False in older controls, for which this was not checked.
    """
    failing: tuple[str, ...] | None = None
    """The tests that fail with the corrupted function when the suite is run; None in older controls."""
    entered: Mapping[str, tuple[str, ...]] = {}
    """For each function of the task, the tests that enter it; empty in older controls."""


NOT_CONTROLLED = Controls(False, Unconfirmable.NO_CONTROL, "The task was made before passes were confirmed.")
"""The controls of a task that was made without controls."""


class Confirmer(Protocol):
    """Runs the suite and the submission in two processes, isolated like all code of a repository."""

    def control(
        self, task: Task, answer: Answer, *, measured_here: bool = False, run: RunContext = UNATTENDED
    ) -> Controls:
        """Return the controls of a task.

        Unless the answer was just measured on this machine, the facts that decide are measured again
        first (decision 158). Raises `CancelledError` when stopped; any other obstacle is recorded as the
        reason.
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
        """Return the confirmation of `submitted`, a tree that passed the task's suite.

        Raises `CancelledError` when stopped.
        """
        ...


def reasons_in_words(reasons: Mapping[str, int]) -> str:
    """Return the reasons why tests do not count, with numbers, most frequent first."""
    ordered: Sequence[tuple[str, int]] = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered)
