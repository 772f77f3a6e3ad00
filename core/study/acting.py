"""Carries out simulated courses: people and models work on real tasks through the real engine.

Information calls are answered from the task's own tree, and code is typed and submitted. Only the clock and
the runs of tests and commands are simulated; the course decides their results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import ModelTurn, Pane, RequestedCall
from gistpoint.core.attempts.reasons import EndReason, GiveUpCode, PauseReason
from gistpoint.core.chat import Usage
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.simulation import Scene, SimulatedTime
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.simulating import AttemptCourse, ModelBehaviour
from gistpoint.core.tasks.model import Task

_IDLE_ASKED_MS = 120_000


def scene_of(task: Task) -> Scene:
    """Return the scene of a task with its answer.

    Raises `StudyError` for a task that can't be simulated, and `TaskError` if its answer is missing or
    damaged.
    """
    scene = kind_of(task).simulated(task, read_answer(task))
    if not scene.right:
        raise StudyError(
            f"The task {task.short_id} can't be simulated: its answer contains no code that solves it.",
            hint="Repairs can be simulated, and gists that have a reference gist.",
        )
    return scene


@dataclass
class Performance:
    """One simulated solver at work on one attempt that has begun."""

    attempt: Attempt
    scene: Scene
    course: AttemptCourse
    clock: SimulatedTime
    about: tuple[object, ...]
    """The parts of the key from which its random draws are derived."""
    turns: int = field(default=0, init=False)

    def person(self, after_brief: Callable[[], None] = lambda: None) -> None:
        """Work as a person, and end the attempt; `after_brief` is called once the brief has been read."""
        attempt = self.attempt
        course = self.course
        attempt.view(Pane.BRIEF)
        self._advance_to(course.reading_s)
        after_brief()
        first = min(course.wrong_at, default=course.active_s)
        for number in range(course.looks):
            self._advance_to(
                course.reading_s + (0.75 * first - course.reading_s) * (number + 1) / (course.looks + 1)
            )
            attempt.view(Pane.CONSOLE)
            name, arguments = self._look(number)
            attempt.call(name, arguments)
            attempt.view(Pane.RESULT)
            if number % 3 == 1:
                attempt.use_affordance("scroll", 1 + number)
        self._rest()
        if course.finds and self.scene.searched:
            attempt.suspect(self.scene.right[0][0])
        attempt.view(Pane.EDITOR)
        for at, right, name, text, near in self._submissions():
            self._advance_to(0.9 * at)
            attempt.view(Pane.EDITOR)
            attempt.edit(name, text)
            self._advance_to(at)
            self._submit(name, text, right=right, near=near)
        self._end()

    def model(self, model: ModelBehaviour) -> None:
        """Work as a model, with one call per turn, and end the attempt."""
        course = self.course
        self.attempt.view(Pane.MODEL)
        submissions = list(self._submissions())
        count = course.looks + sum(
            len(self.scene.handing_in(name, text)) for _, _, name, text, _ in submissions
        )
        for number in range(course.looks):
            self._advance_to(course.active_s * (number + 1) / (count + 1))
            self._turn(model, *self._look(number))
        for at, right, name, text, near in submissions:
            self._advance_to(at)
            self.scene.runner.next(self.clock, right=right, near=near)
            for tool, arguments in self.scene.handing_in(name, text):
                self._turn(model, tool, arguments)
        self._end()

    def _look(self, number: int) -> tuple[str, dict[str, str]]:
        return self.scene.look(number, self.course.looks, *self.about, finds=self.course.finds)

    def _submissions(self) -> Iterator[tuple[float, bool, str, str, float]]:
        """Yield each submission as (time, whether it solves the task, name, text, share of tests repaired).

        The times are seconds of active time. The share is of the tests that fail at first, and has no
        effect if the task is solved.
        """
        course = self.course
        for number, (at, near) in enumerate(zip(course.wrong_at, course.near, strict=True), start=1):
            yield at, False, *self.scene.wrong(number, finds=course.finds), near
        parts = self.scene.right if course.solved else ()
        for number, (name, text) in enumerate(parts, start=1):
            last = number == len(parts)
            yield course.active_s * (1 - 0.02 * (len(parts) - number)), last, name, text, 0.5

    def _submit(self, name: str, text: str, *, right: bool, near: float) -> None:
        if self.attempt.state.ended:
            return
        self.scene.runner.next(self.clock, right=right, near=near)
        tool, arguments = self.scene.submission(name, text)
        self.attempt.call(tool.name, arguments)

    def _turn(self, model: ModelBehaviour, tool: str, arguments: Mapping[str, str]) -> None:
        if self.attempt.state.ended:
            return
        self.turns += 1
        raw = json.dumps(arguments)
        usage = Usage(prompt_tokens=model.tokens_per_turn * self.turns, completion_tokens=len(raw) // 3 + 60)
        self.attempt.model_turn(
            ModelTurn(
                turn=self.turns,
                content="A simulated turn.",
                tool_calls=(RequestedCall(f"call-{self.turns}", tool, raw),),
                finish="tool_calls",
                model=model.name,
                usage=usage,
                latency_ms=round(1000 * model.seconds_per_turn),
            )
        )
        self.attempt.call(tool, None, raw=raw, turn=self.turns)

    def _rest(self) -> None:
        """Simulate the break, then idle time without a pause."""
        if self.course.pause_s:
            self.attempt.pause(PauseReason.BREAK)
            self.clock.advance(round(1000 * self.course.pause_s))
            self.attempt.resume()
        idle_ms = round(1000 * self.course.idle_s)
        if idle_ms > _IDLE_ASKED_MS:
            since = self.clock.mono_ms()
            self.clock.advance(_IDLE_ASKED_MS)
            self.attempt.ask_idle(since)
            self.clock.advance(idle_ms - _IDLE_ASKED_MS)
            self.attempt.answer_idle(away=True)

    def _advance_to(self, seconds: float) -> None:
        """Advance the clock to a moment of active time, in seconds, or to 1 ms before the time limit."""
        limit = self.attempt.state.budgets.time_limit_s
        wanted = round(1000 * seconds)
        if limit is not None:
            wanted = min(wanted, 1000 * limit - 1)
        self.clock.advance(max(0, wanted - self.attempt.clock().active))

    def _end(self) -> None:
        attempt = self.attempt
        course = self.course
        if attempt.state.ended:
            return
        self._advance_to(course.active_s)
        self.scene.runner.next(self.clock, right=False)
        limit = attempt.state.budgets.time_limit_s
        if course.end is EndReason.TIME_CAP and limit is not None:
            self.clock.advance(max(0, 1000 * limit - attempt.clock().active))
            attempt.heartbeat()
            attempt.finish_pending()
        else:
            attempt.give_up(course.code or GiveUpCode.TOO_HARD)
