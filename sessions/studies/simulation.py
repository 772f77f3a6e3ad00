"""Simulates a study: simulated people take part in it, and simulated models make its declared runs.

Everything is written by the code that studies of people use; only the clock and the test runs are simulated.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePosixPath

from gistpoint import __version__
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import SIMULATED, Enrolment, Role
from gistpoint.core.demo.tasks import PACKAGE
from gistpoint.core.draws import normal, uniform
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.simulation import Scene, SimulatedTime
from gistpoint.core.locations import Locations
from gistpoint.core.requests import Count, Request
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.study.acting import Performance, scene_of
from gistpoint.core.study.conditions import budgets_under, under
from gistpoint.core.study.declaration import Condition, DeclaredSolver
from gistpoint.core.study.operations import ERASE, KEEP, StudyError
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.simulated_answers import AnswersOf
from gistpoint.core.study.simulating import (
    Allowance,
    AttemptCourse,
    Behaviour,
    Crowd,
    ModelBehaviour,
    difficulties,
)
from gistpoint.core.study.steps import (
    AttemptStep,
    BetweenStep,
    ConsentStep,
    DoneStep,
    FormStep,
    ReadyStep,
    RefusedStep,
    RulesStep,
    SittingOverStep,
    Step,
)
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.core.unfinished import part_of, remove_abandoned, scratch_folder
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.studies.course import record_opening
from gistpoint.sessions.studies.drafts import FormDrafts
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.people import admit, stratum_in_turn
from gistpoint.sessions.studies.taking import Participation, TakenAttempt

FIRST_MS = 1_767_600_000_000
"""The time at which a simulated study begins, 5 January 2026, 8:00 UTC, unless its log ends later."""
_DAY_MS = 86_400_000
_SECONDS = {ConsentStep: 90, RulesStep: 60, FormStep: 75, BetweenStep: 120, ReadyStep: 10}
"""The seconds that people spend on a step."""
_MOST_STEPS = 100_000
DEMO_PEOPLE = 12
DEMO_FUNCTIONS = 60
DEMO_SKILLS = {"strong-model": 1.2, "weak-model": -0.5}
"""The skills of the demo's simulated models, in logits."""
_MEMORY = Path("/dev/shm")
_USUAL = Behaviour()


@dataclass
class SimulationCount:
    """The numbers of simulated people, attempts and runs."""

    people: int = 0
    withdrew: int = 0
    attempts: int = 0
    solved: int = 0
    runs: int = 0
    problems: list[str] = field(default_factory=list)
    """A sentence for each part that could not be simulated."""


class StudySimulation:
    """Fills the folder of one study with simulated data."""

    def __init__(
        self, folder: StudyFolder, clock: SimulatedTime, crowd: Crowd, scratch: Path, version: str
    ) -> None:
        """`clock` is the folder's; journals are written below `scratch` before they are published."""
        self.folder, self.clock, self.crowd, self.scratch = folder, clock, crowd, scratch
        self.count = SimulationCount()
        self._version = version
        self._attempts = AttemptStore(scratch / "attempts", clock, version)
        self._scenes: dict[tuple[str, str, str], Scene] = {}
        self._courses: dict[str, AttemptCourse] = {}
        """The courses of people's attempts, by assignment id."""

    def open(self) -> None:
        """Open the study, unless it is already open."""
        if self.folder.ledger.opened is None:
            record_opening(self.folder, self._version)

    def simulate_people(self, codes: Iterable[str], run: RunContext = UNATTENDED) -> None:
        """Let people take part, one after another.

        People who can't continue are added to the problems. Raises `CancelledError` if cancelled, and
        `StudyError` if a person does not finish.
        """
        codes = list(codes)
        for number, code in enumerate(codes):
            run.progress(RunProgress("simulating people", number, len(codes), step="people"))
            self._person(code, stratum_in_turn(self.folder.study, number), run)
            self._next_day()

    def simulate_models(
        self, models: Iterable[tuple[DeclaredSolver, ModelBehaviour]], run: RunContext = UNATTENDED
    ) -> None:
        """Let models make the runs that the study declares for them: one for each task and repetition.

        Solvers that can't be simulated are added to the problems. Raises `CancelledError` if cancelled.
        """
        for solver, model in models:
            condition = self.folder.study.condition_of(solver.condition)
            place = _place_of(self.folder.root, solver)
            if condition is None or place is None:
                self.count.problems.append(
                    f"{solver.name} was not simulated: its runs must be those of one folder, such as"
                    " runs/NAME/*."
                )
                continue
            tasks = sorted(self.folder.tasks)
            for number, task in enumerate(tasks):
                run.check()
                run.progress(RunProgress(solver.name, number, len(tasks), step="models"))
                for repeat in range(model.repeats):
                    self._run_of(model, task, condition, repeat, place)

    # People

    def _person(self, code: str, stratum: str, run: RunContext) -> None:
        admit(self.folder, code, stratum)
        drafts = FormDrafts(self.scratch, self.folder.study.id, code)
        taking = Participation(self.folder, code, self._attempts, self._judge_for, drafts, actor=SIMULATED)
        leaves_at = self.crowd.leaves_at(code, self.folder.study.design.tasks_per_person)
        self.count.people += 1
        for _ in range(_MOST_STEPS):
            run.check()
            step = taking.step()
            self.clock.advance(1000 * _SECONDS.get(type(step), 0))
            if isinstance(step, ReadyStep) and step.number - 1 == leaves_at and not step.training:
                self.count.withdrew += 1
                taking.withdraw(ERASE if uniform(*self.crowd.key("erases", code)) < 0.25 else KEEP)
                return
            if not self._go_on(taking, step):
                return
        raise StudyError(f"{code} did not finish in {_MOST_STEPS} steps.")

    def _go_on(self, taking: Participation, step: Step) -> bool:
        """Carry out a step, and return False if the person is done or can't continue."""
        match step:
            case ConsentStep():
                taking.consent([True] * len(self.folder.study.texts.consent_items))
            case FormStep():
                taking.answer(step, self._answers(taking.code, step), _SECONDS[FormStep])
            case RulesStep():
                taking.begin_sitting()
            case ReadyStep():
                self._attempt(taking, taking.begin(step))
            case AttemptStep():
                self._attempt(taking, taking.open(step))
            case BetweenStep():
                taking.go_on(step)
            case SittingOverStep():
                taking.end_sitting()
                self._next_day()
            case DoneStep():
                taking.end_sitting()
                return False
            case RefusedStep(words=words):
                self.count.problems.append(f"{taking.code} could not continue: {words}")
                return False
            case _:
                return False
        return True

    def _attempt(self, taking: Participation, taken: TakenAttempt) -> None:
        code, step, attempt = taking.code, taken.step, taken.opened.attempt
        task = self.folder.tasks[step.assignment.task]
        scene = next(known for known in self._scenes.values() if known.judge is attempt.judge)
        course = self.crowd.course(code, task, step.condition, _allowance(attempt.state.budgets, scene))
        self._courses[step.assignment.id] = course

        def forecast() -> None:
            if not taken.forecasts:
                return
            taking.ask(taken)
            for form in taken.forecasts:
                self.clock.advance(1000 * _SECONDS[FormStep])
                taking.answer_within(taken, form, self._answers(code, form, course), _SECONDS[FormStep])

        about = self.crowd.key("acts", code, task.id)
        Performance(attempt, scene, course, self.clock, about).person(forecast)
        self.count.attempts += 1
        self.count.solved += attempt.state.solved
        taking.close(taken)

    def _answers(self, code: str, step: FormStep, course: AttemptCourse | None = None) -> dict[str, object]:
        about = self.crowd.key("answers", code, step.form.id, step.assignment)
        experience = self.crowd.ability(code) / (self.crowd.behaviour.ability or 1.0)
        return AnswersOf(about, experience, course or self._courses.get(step.assignment)).to(step.questions)

    # Models

    def _run_of(
        self, model: ModelBehaviour, identity: str, condition: Condition, repeat: int, place: Path
    ) -> None:
        task = self.folder.task(identity)
        task = under(condition, task, read_answer(task))
        scene = self._scene(task)
        budgets = budgets_under(condition, task, Role.BASELINE)
        allowed = _allowance(budgets, scene)
        course = self.crowd.course_of_model(model, self.folder.tasks[identity], condition, allowed, repeat)
        who = Enrolment(
            SIMULATED,
            Role.BASELINE,
            study=self.folder.study.id,
            condition=condition.id,
            solver={"kind": SIMULATED, "model": model.name},
            protocol_sha256=self.folder.ledger.protocol,
            assistance=condition.assistance.value,
        )
        opened = self._attempts.start(task, scene.judge, who, budgets=budgets)
        try:
            about = self.crowd.key("acts", model.name, identity, repeat)
            Performance(opened.attempt, scene, course, self.clock, about).model(model)
        finally:
            opened.close()
        folder = opened.journal.path.parent
        (place / folder.name).mkdir(parents=True)
        shutil.copyfile(opened.journal.path, place / folder.name / JOURNAL)
        self.count.runs += 1
        self.clock.advance(60_000)

    # Used for people and models

    def _judge_for(self, task: Task) -> TaskJudge:
        return self._scene(task).judge

    def _scene(self, task: Task) -> Scene:
        key = task.id, task.brief.template, repr(task.of_kind)
        if key not in self._scenes:
            self._scenes[key] = scene_of(task)
        return self._scenes[key]

    def _next_day(self) -> None:
        """Move the clock to the next morning."""
        since = (self.clock.utc_ms() - FIRST_MS) % _DAY_MS
        self.clock.advance(_DAY_MS - since)


def _allowance(budgets: Budgets, scene: Scene) -> Allowance:
    limit = None if budgets.time_limit_s is None else float(budgets.time_limit_s)
    return Allowance(budgets.tool_uses, budgets.submissions, limit, len(scene.right))


def _place_of(root: Path, solver: DeclaredSolver) -> Path | None:
    """Return the folder that a pattern FOLDER/* of a solver names; None if no pattern has this form."""
    for pattern in solver.runs:
        path = PurePosixPath(pattern)
        plain = not any(character in str(path.parent) for character in "*?[")
        if path.name == "*" and plain and not path.is_absolute() and ".." not in path.parts:
            return root / path.parent
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateStudy(Request):
    """A request to simulate a study, with the number and the behaviour of its people; see `Behaviour`."""

    people: Count = DEMO_PEOPLE
    seed: int | None = None
    """The seed; None for the study's own."""
    ability: float = _USUAL.ability
    task: float = _USUAL.task
    sigma: float = _USUAL.sigma
    give_up: float = _USUAL.give_up
    assist_ratio: float = _USUAL.assist_ratio

    @property
    def behaviour(self) -> Behaviour:
        """The behaviour of the people. Raises `StudyError` for impossible values."""
        return Behaviour(
            ability=self.ability,
            task=self.task,
            sigma=self.sigma,
            give_up=self.give_up,
            assist_ratio=self.assist_ratio,
        )


def simulate_study(
    study: StudyFolder, locations: Locations, request: SimulateStudy, run: RunContext
) -> SimulationCount:
    """Fill an empty simulated study and return the numbers.

    Raises `StudyError` for any other study, if it has no tasks, or for impossible values, and
    `CancelledError` if cancelled.
    """
    behaviour = request.behaviour
    study.require_simulated()
    if study.ledger.people or next(study.attempts(), None) is not None:
        raise StudyError(
            f"{study.study.id} already has participants: no others can be added.",
            hint=f"Delete log, attempts and runs in {study.named}, or simulate in another folder.",
        )
    if not study.tasks:
        raise StudyError(
            f"{study.study.id} has no tasks.",
            hint=f"Put task folders into {study.named}/{study.study.tasks}.",
        )
    seed = study.study.seed if request.seed is None else request.seed
    return fill(study.root, locations, behaviour, request.people, seed, run=run)


def fill(
    root: Path,
    locations: Locations,
    behaviour: Behaviour,
    people: int,
    seed: int,
    *,
    skills: Mapping[str, float] | None = None,
    run: RunContext = UNATTENDED,
) -> SimulationCount:
    """Let simulated people and models take part in the study in `root`, and return the numbers.

    `skills` are those of models in logits, by name; others are random. Raises `CancelledError` when
    cancelled.
    """
    clock = SimulatedTime(FIRST_MS, "simulated")
    study = StudyFolder(root, locations, clock)
    latest = max((operation.utc_ms for operation in study.ledger.operations), default=0)
    clock.advance(max(0, latest + 60_000 - FIRST_MS))
    hard = difficulties(list(study.tasks.values()), behaviour, seed)
    crowd = Crowd(behaviour, study.study.id, seed, hard)
    width = max(2, len(str(people)))
    # Before they are published, journals are written in memory if the machine has a folder for that.
    below = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
    with scratch_folder("simulation", below) as scratch:
        simulation = StudySimulation(study, clock, crowd, Path(scratch), __version__)
        simulation.open()
        simulation.simulate_people([f"P{number:0{width}}" for number in range(1, people + 1)], run)
        models = [
            (
                solver,
                ModelBehaviour(
                    name=solver.name, skill=(skills or {}).get(solver.name, normal(seed, solver.name))
                ),
            )
            for solver in study.study.solver
        ]
        simulation.simulate_models(models, run)
    return simulation.count


def write_demo_study(root: Path, named: str, locations: Locations, run: RunContext) -> SimulationCount:
    """Write the demo's study into a new or empty folder, and return what was simulated.

    The folder appears only when it is complete. `named` is the user's name for the folder. Raises
    `StudyError` if the folder is not empty, `UserError` if it can't be made, and `CancelledError` if
    cancelled.
    """
    from gistpoint.core.demo.functions import write_simulated_tasks

    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise StudyError(
            f"{root.name} already exists and is not an empty folder.",
            hint=(
                f"`gistpoint study report {named}` reports it if it is the demo's; otherwise name"
                " another folder."
            ),
        )
    part = part_of(root.absolute())
    remove_abandoned(root.absolute())
    try:
        try:
            part.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{part} can't be made: {error.strerror}.", hint="Name another one.") from error
        text = files(PACKAGE).joinpath("study.toml").read_text(encoding="utf-8")
        (part / STUDY_FILE).write_text(text, encoding="utf-8")
        total = DEMO_FUNCTIONS + len(DEMO_SKILLS)
        for number, _ in enumerate(write_simulated_tasks(part / "tasks", locations.demo, DEMO_FUNCTIONS)):
            run.progress(RunProgress("writing tasks", number, total, step="tasks"))
        seed = StudyFolder(part, locations, SimulatedTime(FIRST_MS, "simulated")).study.seed
        count = fill(part, locations, _USUAL, DEMO_PEOPLE, seed, skills=DEMO_SKILLS, run=run)
        if root.is_dir():
            root.rmdir()
        part.rename(root)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return count
