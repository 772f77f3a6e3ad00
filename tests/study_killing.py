"""Kills a participant's process at random moments, and checks that no acknowledged record is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from small_study import answers_of, do, judge_for, opened, participation, study_at
from study_folders import Machine

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.study.operations import Answers, Enrolled, Planned, StudyOperationKind, person
from gistpoint.core.study.steps import AttemptStep, DoneStep, FormStep, Step
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.studies.drafts import FormDraft, FormDrafts
from gistpoint.sessions.studies.taking import Participation

STEP_S = 0.002
"""The least time, in seconds, that a participant takes for a step, so that kills also fall between writes."""
MOST_LINES, LATER_S = 12, 0.03
"""The maximum number of lines from a process before it is killed, and of seconds after the last one."""


@dataclass
class StudyKills:
    """The findings of a series of kills."""

    kills: int = 0
    people: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    """The tasks that a participant got in two attempts."""
    asked_again: list[str] = field(default_factory=list)
    """The forms that were shown again although their answers were acknowledged."""
    other_steps: list[str] = field(default_factory=list)
    """The steps with which a process continued although the log implied another."""
    drafts: int = 0
    drafts_lost: list[str] = field(default_factory=list)
    at: Counter[str] = field(default_factory=Counter)
    """The numbers of kills by the kind of the current step."""

    @property
    def faults(self) -> list[str]:
        return [*self.lost, *self.twice, *self.asked_again, *self.other_steps, *self.drafts_lost]

    def __str__(self) -> str:
        return (
            f"{self.kills} kills of {self.people} people; {self.acknowledged} acknowledged operations, "
            f"{len(self.lost)} lost; {len(self.asked_again)} forms asked again; {len(self.twice)} tasks shown twice; "
            f"{len(self.other_steps)} other next steps; {self.drafts} drafts, {len(self.drafts_lost)} lost; "
            f"killed during: {dict(self.at.most_common())}"
        )


def kill_people(folder: Path, kills: int, *, seed: int) -> StudyKills:
    """Take participants through the study, with `kills` kills in all; each reaches the end."""
    chance, killed = random.Random(seed), StudyKills()
    root, machine = folder / "study", Machine.at(folder / "home", SystemTime())
    study_at(root, training=True)
    folder_of_study = opened(machine.open(root), "K0")
    while killed.kills < kills:
        code = f"K{killed.people}"
        killed.people += 1
        folder_of_study.record(code, person(code), StudyOperationKind.ENROLLED, Enrolled())
        done = False
        while not done:
            done = _one_process(root, machine, code, chance if killed.kills < kills else None, killed)
        _check_whole(root, machine, code, killed)
    return killed


def described(step: Step) -> str:
    """Return the kind of a step and its subject, such as a form or an assignment."""
    about = getattr(step, "assignment", "")
    form = f" {step.form.id}" if isinstance(step, FormStep) else ""
    return f"{type(step).__name__}{form} {getattr(about, 'id', about)}".strip()


def _participation(root: Path, machine: Machine, code: str) -> Participation:
    """Return a participation whose next step can be read without recording anything."""
    folder = machine.open(root)
    drafts = FormDrafts(machine.locations.data, folder.study.id, code)
    return Participation(folder, code, machine.attempts, judge_for, drafts)


def _one_process(
    root: Path, machine: Machine, code: str, chance: random.Random | None, killed: StudyKills
) -> bool:
    """Run one process of a participant, killed at a random moment if `chance` is given.

    Returns whether the participant finished.
    """
    expected = described(_participation(root, machine, code).next())
    word = chance.randrange(10**9) if chance is not None else 0
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            _take_part(root, machine, code, word, writing)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        raw = b""
        if chance is not None:
            for _ in range(chance.randint(0, MOST_LINES)):
                raw += pipe.readline()
            time.sleep(chance.uniform(0, LATER_S))
            os.kill(child, signal.SIGKILL)
        raw += pipe.read()
    lines = [json.loads(line) for line in raw.split(b"\n")[:-1]]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"a participant's process ended with {status}"
    killed.kills += status != 0
    if lines and lines[0]["next"] != expected:
        killed.other_steps.append(f"{code}: {lines[0]['next']}, not {expected}")
    steps = [line["step"] for line in lines if "step" in line]
    if status:
        killed.at[(steps[-1] if steps else "start").split(" ")[0]] += 1
    _check(root, machine, code, lines, killed)
    return status == 0


def _check(root: Path, machine: Machine, code: str, lines: list[dict[str, Any]], killed: StudyKills) -> None:
    part = _participation(root, machine, code)
    known = {operation.op: operation for operation in part.folder.store.operations()}
    drafted: dict[tuple[str, str], str] = {}
    for line in lines:
        if "op" in line:
            killed.acknowledged += 1
            operation = known.get(line["op"])
            if operation is None or (operation.kind, operation.data) != (line["kind"], line["data"]):
                killed.lost.append(f"{code}: {line['kind']}")
            elif operation.kind == StudyOperationKind.ANSWERS:
                drafted.pop((operation.text("questionnaire"), operation.text("assignment")), None)
        elif "draft" in line:
            drafted[line["draft"], line["of"]] = line["word"]
    for (form, assignment), word in drafted.items():
        killed.drafts += 1
        here = part.drafts.read(form, assignment).values.get("word")
        if here != word and part.person.answers(form, assignment) is None:
            killed.drafts_lost.append(f"{code}: {form}")


def _check_whole(root: Path, machine: Machine, code: str, killed: StudyKills) -> None:
    part = _participation(root, machine, code)
    taking = part.person
    assert isinstance(part.next(), DoneStep)
    assert len(taking.facts.all(Planned)) == 1
    assert len(taking.finished) == sum(map(len, taking.begun.values())) == 3
    shown: Counter[str] = Counter()
    for attempt in taking.finished:
        content = read_journal(machine.locations.attempts / attempt / JOURNAL)
        assert content.fault == ""
        header = content.events[0].data
        assert isinstance(header, AttemptStarted)
        shown[header.task_id] += 1
    killed.twice += [f"{code}: {task}" for task, times in shown.items() if times > 1]
    asked = Counter((given.questionnaire, given.assignment) for given in taking.facts.all(Answers))
    killed.asked_again += [f"{code}: {form}" for (form, _), times in asked.items() if times > 1]


def _take_part(root: Path, machine: Machine, code: str, word: int, pipe: int) -> None:
    def report(**line: Any) -> None:
        os.write(pipe, json.dumps(line).encode() + b"\n")

    report(next=described(_participation(root, machine, code).next()))
    part = participation(machine, root, code)
    record = part.folder.record

    def acknowledged(*about: Any) -> Any:
        operation = record(*about)
        report(op=operation.op, kind=operation.kind, data=msgspec.to_builtins(operation.data))
        return operation

    part.folder.record = acknowledged  # type: ignore[method-assign]
    for step in _steps(part):
        report(step=described(step))
        time.sleep(STEP_S)
        forms = (
            step.forecasts if isinstance(step, AttemptStep) else [step] if isinstance(step, FormStep) else []
        )
        for form in forms:
            part.drafts.write(
                form.form.id, form.assignment, FormDraft(values={**answers_of(form), "word": str(word)})
            )
            report(draft=form.form.id, of=form.assignment, word=str(word))
            time.sleep(STEP_S)
        do(part, step)


def _steps(part: Participation) -> Iterator[Step]:
    while not isinstance(step := part.step(), DoneStep):
        yield step
