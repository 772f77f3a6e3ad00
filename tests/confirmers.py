"""Confirmations, controls, and a fake confirmer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gistpoint.core.confirmation.model import AnsweredCall, Confirmation, Confirmed, Controls, Unconfirmable
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.trees import SourceTree

CALL = AnsweredCall("shop.py::price", "price(11, 10)", "99", "110", test="test_shop.py::test_price[11-99]")
BEYOND = AnsweredCall("shop.py::price", "price(-1, 10)", "-10", "10")
CONFIRMED = Confirmation(Confirmed.CONFIRMED, calls=7, tests=3, beyond=BEYOND, varied=20, seconds=0.2)
CONTRADICTED = Confirmation(Confirmed.CONTRADICTED, calls=4, tests=2, contradiction=CALL, seconds=0.1)
UNCONFIRMED = Confirmation(
    Confirmed.UNCONFIRMED, Unconfirmable.NOT_PLAIN_DATA, "price was given a generator."
)
MARKED = Confirmation(
    Confirmed.UNCONFIRMED,
    Unconfirmable.STATE_OUTSIDE,
    marks=("answers differ when asked again",),
    seconds=0.1,
)
CONTROLLED = Controls(
    True, tests=("t1", "t2"), telling=("t1",), entering=3, calls=9, reasons={"not_plain_data": 1}
)


class ScriptedConfirmer:
    """Answers as scripted, and records the requests."""

    def __init__(
        self,
        confirmation: Confirmation = CONFIRMED,
        controls: Controls = CONTROLLED,
        *,
        before: Callable[[RunContext], object] = lambda run: None,
    ) -> None:
        self.confirmation, self.controls = confirmation, controls
        self.before = before
        """Called with the context of each confirmation before it answers."""
        self.submitted: list[SourceTree] = []
        self.controlled: list[Task] = []

    def control(
        self, task: Task, answer: Answer, *, measured_here: bool = False, run: RunContext = UNATTENDED
    ) -> Controls:
        run.check()
        self.controlled.append(task)
        return self.controls

    def confirm(
        self,
        task: Task,
        answer: Answer,
        controls: Controls,
        submitted: SourceTree,
        *,
        run: RunContext = UNATTENDED,
    ) -> Confirmation:
        run.progress(RunProgress(step="confirming", done=1, total=2))
        self.before(run)
        run.check()
        self.submitted.append(submitted)
        return self.confirmation


def controlled(folder: Path, canary: str = "", controls: Controls = CONTROLLED) -> None:
    """Write controls to a task's folder."""
    from gistpoint.core.confirmation.controls import write_controls

    write_controls(folder, controls, canary)
