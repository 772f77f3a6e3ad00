"""A small open study: four tiny tasks, forms at each moment, and people who take part without a screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from builders import CHECKS, REPAIR, build_task
from fakes import FakeRunner
from study_folders import Machine, declare

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Pane
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.study.declaration import Question, QuestionKind
from gistpoint.core.study.operations import (
    ORGANISER,
    STUDY,
    Enrolled,
    StudyOpened,
    StudyOperationKind,
    person,
)
from gistpoint.core.study.reading import protocol_sha256
from gistpoint.core.study.steps import (
    AttemptStep,
    BetweenStep,
    ConsentStep,
    DoneStep,
    FormStep,
    ReadyStep,
    RulesStep,
    Step,
)
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.studies.drafts import FormDrafts
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.taking import Participation, TakenAttempt

CODE = "P07"
SCALE = {
    "id": "ease",
    "text": "Overall, this task was",
    "kind": "likert",
    "labels": ["very difficult", "very easy"],
}
SEEN = {"id": "seen", "text": "Had you seen it before?", "kind": "choice", "options": ["no", "maybe", "yes"]}
FORMS: list[dict[str, Any]] = [
    {"id": "before", "at": "before", "item": [
        {"id": "years", "text": "Years of programming", "kind": "number", "min": 0, "max": 80, "required": True},
        {"id": "tools", "text": "What do you use?", "kind": "multi", "options": ["a debugger", "print", "neither"]},
    ]},
    {"id": "forecast", "at": "after_brief", "item": [
        {"id": "minutes", "text": "How long will it take you?", "kind": "minutes"},
        {"id": "chance", "text": "How sure are you to solve it?", "kind": "percent"},
    ]},
    {"id": "task", "at": "after_task", "use": ["aids-1"], "item": [
        SCALE, SEEN, {"id": "how", "text": "What was wrong, and how did you find it?", "kind": "text"},
    ]},
    {"id": "end", "at": "after", "item": [{"id": "words", "text": "What else?", "kind": "text"}]},
]  # fmt: skip


def changes(**more: Any) -> dict[str, Any]:
    """Return the declarations of this study beyond the minimum."""
    return {
        "design": {"tasks_per_person": 2, "per_source": 0},
        "condition": [{"id": "few", "words": "with few tool uses", "tool_uses": 6, "submissions": 2}],
        "training": {"tasks": []},
        "sandbox": {"demand": ""},
        "questionnaire": FORMS,
        **more,
    }


def study_at(root: Path, more: Mapping[str, Any] | None = None, *, training: bool = False) -> Path:
    """Write a study with four tasks from different libraries, one of them for training if `training`."""
    tasks = [
        build_task(root / "tasks", mode, library=f"shop{number}")
        for number, mode in enumerate((Mode.REMOVE, Mode.DISCOVERY, Mode.REMOVE, Mode.DISCOVERY))
    ]
    given = {"training": {"tasks": [tasks[-1].id]}} if training else {}
    return declare(root, changes(**given, **(more or {})), tasks=False)


def opened(folder: StudyFolder, *codes: str) -> StudyFolder:
    """Open a study, enrol people, and return the study."""
    protocol = protocol_sha256(folder.study, folder.tasks)
    folder.record(
        ORGANISER, STUDY, StudyOperationKind.OPENED, StudyOpened(protocol=protocol, tasks=tuple(folder.tasks))
    )
    for code in codes or (CODE,):
        folder.record(code, person(code), StudyOperationKind.ENROLLED, Enrolled())
    return folder


def judge_for(task: Task) -> TaskJudge:
    return RepairJudge(task, read_answer(task), FakeRunner(CHECKS))


def failing_judge_for(task: Task) -> TaskJudge:
    """Return a judge whose tests fail on every submission."""

    def fails(names: Mapping[str, object]) -> None:
        raise AssertionError

    return RepairJudge(task, read_answer(task), FakeRunner(dict.fromkeys(CHECKS, fails)))


def participation(
    machine: Machine, root: Path, code: str = CODE, judge: Callable[[Task], TaskJudge] = judge_for
) -> Participation:
    """Return the participation of a person at a machine."""
    folder = machine.open(root)
    drafts = FormDrafts(machine.locations.data, folder.study.id, code)
    part = Participation(folder, code, machine.attempts, judge, drafts)
    part.come()
    return part


def answer_of(question: Question) -> Any:
    """Return a valid answer; the answer to a text question names the question."""
    match question.kind:
        case QuestionKind.LIKERT:
            return 4
        case QuestionKind.CHOICE:
            return question.options[0]
        case QuestionKind.MULTI:
            return list(question.options[:1])
        case QuestionKind.TEXT:
            return f"about {question.id}"
        case _:
            return 12


def answers_of(step: FormStep) -> dict[str, Any]:
    return {question.id: answer_of(question) for question in step.questions}


def solve(attempt: Attempt) -> None:
    """Complete a small attempt: look, then submit the correct code."""
    attempt.finish_pending()
    if attempt.state.ended:
        return
    attempt.view(Pane.CONSOLE)
    if not attempt.state.calls:
        attempt.call("read_file", {"file_path": "shop/prices.py"})
    tool = attempt.offered()[-1]
    place = (
        {"file_path": "shop/prices.py", "func_name": "discount"} if tool.name == "replace_function" else {}
    )
    attempt.call(tool.name, {"func_code": REPAIR, **place})


def forecast(part: Participation, taken: TakenAttempt) -> None:
    """Read the brief, and answer the questions after it."""
    if taken.forecasts:
        part.ask(taken)
        for form in taken.forecasts:
            part.answer_within(taken, form, answers_of(form), 3.0)
    taken.opened.attempt.resume()


def do(part: Participation, step: Step) -> bool:
    """Carry out a step; return False if nothing is left to do."""
    match step:
        case ConsentStep():
            part.consent([True] * len(part.folder.study.texts.consent_items))
        case FormStep():
            part.answer(step, answers_of(step), 2.0)
        case RulesStep():
            part.begin_sitting()
        case ReadyStep() | AttemptStep():
            taken = part.begin(step) if isinstance(step, ReadyStep) else part.open(step)
            forecast(part, taken)
            solve(taken.opened.attempt)
            part.close(taken)
        case BetweenStep():
            part.go_on(step)
        case _:
            assert isinstance(step, DoneStep), step
            return False
    return True


def take_part(part: Participation) -> list[Step]:
    """Go through the whole study; return the steps."""
    steps: list[Step] = []
    while True:
        steps.append(part.step())
        if not do(part, steps[-1]):
            return steps
