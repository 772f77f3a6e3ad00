"""Attempts by scripted models, in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from gist_tasks import FakeEntrypoints, FakeGistJudge, build_gist_task
from recorders import Memory
from scripted_endpoint import ScriptedModel

from gistpoint.core.agents.loop import WorkEnd, work
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import JournalEvent
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatMessage
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.ports import ChatModel
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode, Task

WRONG = REPAIR.replace("100", "99")
LOOK = ("read_file", {"file_path": "shop/prices.py"})
SOLVE = ("submit_attempt", {"func_code": REPAIR})
MISS = ("submit_attempt", {"func_code": WRONG})


@dataclass
class AtWork:
    """An attempt of a model, with its journal."""

    task: Task
    judge: TaskJudge
    clock: FakeClock
    memory: Memory
    attempt: Attempt

    def go(self, model: ChatModel, settings: AgentSettings | None = None, **more: Any) -> WorkEnd:
        return work(self.attempt, model, settings or AgentSettings(), **more)

    @property
    def state(self) -> AttemptState:
        return self.attempt.state

    @property
    def ended(self) -> tuple[str, str]:
        """The reason and the code of the end; two empty strings before it."""
        ending = self.state.ending
        return (ending.reason, ending.code) if ending else ("", "")

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.memory.events]

    def cut(self, events: int) -> AtWork:
        """Return the attempt resumed after its first `events` events, as if the process had died there."""
        return resumed(self.task, self.judge, self.memory.events[:events])


def repair_at_work(
    folder: Path,
    mode: Mode = Mode.REMOVE,
    *,
    budgets: Budgets | None = None,
    runner: FakeRunner | None = None,
    extra_files: Mapping[str, str] | None = None,
) -> AtWork:
    task = build_task(folder, mode, extra_files=extra_files)
    return _begun(task, RepairJudge(task, read_answer(task), runner or FakeRunner(CHECKS)), budgets)


def gist_at_work(folder: Path, *, budgets: Budgets | None = None, fails: bool = False) -> AtWork:
    task = build_gist_task(folder)
    return _begun(
        task, FakeGistJudge(task, gist_answer(read_answer(task)), FakeEntrypoints(fails=fails)), budgets
    )


def _begun(task: Task, judge: TaskJudge, budgets: Budgets | None) -> AtWork:
    clock = FakeClock()
    memory = Memory(clock)
    attempt = Attempt(task, judge, memory, clock)
    attempt.start(Enrolment(MODEL, Role.QA, solver={"model": "m"}), budgets=budgets)
    return AtWork(task, judge, clock, memory, attempt)


def resumed(task: Task, judge: TaskJudge, events: Sequence[JournalEvent]) -> AtWork:
    clock = FakeClock(1_790_000_900_000, 77, "boot-2")
    memory = Memory(clock, list(events))
    attempt = Attempt(task, judge, memory, clock, events=events)
    attempt.resume_process()
    return AtWork(task, judge, clock, memory, attempt)


@dataclass
class ByTurn(ScriptedModel):
    """A model whose reply depends only on the number of replies in the conversation; the last one repeats."""

    name: str = "by-turn"

    def replied(self, messages: Sequence[ChatMessage]) -> int:
        return sum(message.role == "assistant" for message in messages)
