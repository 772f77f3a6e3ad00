"""The declaration of a study, as `study.toml` spells it;
`reading` makes it from a file and says what is wrong.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

FORMAT = "gistpoint.study"
VERSION = 1

Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Positive = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Share = Annotated[float, Meta(ge=0, le=1)]


class PrimaryOutcome(StrEnum):
    """The one confirmatory analysis."""

    SOLVE_RATE = "solve_rate"
    TIME_TO_SOLVE = "time_to_solve"
    TIME_RATIO = "time_ratio"
    FIDELITY = "fidelity"


class PrimaryTime(StrEnum):
    """The clock that is the primary time; both are always exported."""

    ACTIVE = "active"
    ACTIVE_AND_WAITING = "active_and_waiting"


class Protocol(msgspec.Struct, frozen=True, kw_only=True):
    """The question of the study, and how it will be answered."""

    question: str = ""
    hypotheses: tuple[str, ...] = ()
    primary: PrimaryOutcome = PrimaryOutcome.SOLVE_RATE
    primary_contrast: tuple[str, ...] = ()
    """Two names of conditions or solvers, where the primary analysis compares; else empty."""
    primary_time: PrimaryTime = PrimaryTime.ACTIVE
    preregistration: str = ""
    """Its address."""
    power: str = ""


class ConditionsPer(StrEnum):
    """Whether each person meets all conditions, or one."""

    WITHIN = "within"
    BETWEEN = "between"


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks each person gets, and how they are chosen."""

    tasks_per_person: Positive
    target_per_task: Positive = 5
    """Attempts per task and condition at which it is covered."""
    conditions: ConditionsPer = ConditionsPer.WITHIN
    quota: dict[str, Count] = {}
    """Tasks of a person by mode, or by a tag."""
    per_source: Count = 2
    """Most tasks of one library that a person gets; 0 for any number."""
    per_sitting: Positive = 4
    sitting_minutes: Count = 0
    """0 for no limit; no new task begins after it."""
    break_offered_every: Positive = 1
    exposed_elsewhere: tuple[str, ...] = ()
    """Folders of other studies whose participants count as exposed."""


class Assistance(StrEnum):
    """Help by a model."""

    NONE = "none"
    CHAT = "chat"


class GistHelp(StrEnum):
    """A gist that is shown with a repair."""

    NONE = ""
    FIRST_FAILING = "first_failing"


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The chat of an assisted condition, with its limits per attempt."""

    model: str = ""
    messages: Count = 20
    tokens: Count = 200_000
    template: str = "assist-1"


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition; 0 and unset leave what the task says."""

    id: str
    words: str = ""
    """What the participant learns of it."""
    people: bool = True
    """False for a condition of models only."""
    tool_uses: Count = 0
    submissions: Count = 0
    steps: Count = 0
    time_limit_s: Count = 0
    score_budget: Count = 0
    free: bool = False
    """The person's own editor and any number of runs; never pooled with other conditions."""
    strategy: str = ""
    give_test: bool | None = None
    execution: bool | None = None
    tools: tuple[str, ...] | None = None
    comforts_off: tuple[str, ...] = ("external_editor",)
    assistance: Assistance = Assistance.NONE
    chat: ChatSettings = ChatSettings()
    gist_help: GistHelp = GistHelp.NONE


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """A name for some of the tasks, by which a quota can count them."""

    id: str
    tasks: tuple[str, ...]


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks attempted before the counted ones."""

    tasks: tuple[str, ...] = ()
    must_end: bool = True
    must_solve: bool = False


class Pay(msgspec.Struct, frozen=True, kw_only=True):
    """What participants are paid, in words."""

    base: str = ""
    bonus: str = ""
    training: str = ""
    equal: bool = True


class Participants(msgspec.Struct, frozen=True, kw_only=True):
    """Who takes part."""

    strata: tuple[str, ...] = ()
    population: str = ""
    criteria: tuple[str, ...] = ()
    recruitment: str = ""
    team: tuple[str, ...] = ()
    """Codes of participants who are authors of the study."""
    screening: str = ""
    """The id of the questionnaire whose `screen_out` answers end the session."""
    pay: Pay = Pay()
    familiar_from: Count = 4
    """Libraries that a person rates at or above it are not assigned."""


class Feedback(StrEnum):
    """What a participant learns after a counted task."""

    NONE = "none"
    OUTCOME = "outcome"
    FULL = "full"


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts for participants; `reading` puts the content of a file in the place of `file:NAME`."""

    welcome: str = ""
    consent: str
    consent_items: tuple[str, ...]
    """Each is ticked by itself; one that begins with `[required]` is a condition of taking part."""
    rules: str
    debrief: str = ""
    feedback: Feedback = Feedback.NONE


REQUIRED_ITEM = "[required]"


class Privacy(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of personal data."""

    contact: str
    retention_days: Count = 0
    free_text_public: bool = False


class SandboxDemand(msgspec.Struct, frozen=True, kw_only=True):
    """The isolation that every attempt needs."""

    demand: str = "bwrap"
    """A backend; empty for any that isolates."""


class Clocks(msgspec.Struct, frozen=True, kw_only=True):
    """When the program asks whether somebody is still there."""

    idle_after_s: Positive = 120


class DisputeRule(StrEnum):
    """Who decides if two reviewers disagree."""

    ORGANISER = "organiser"
    ANY_EXCLUDE = "any_exclude"
    MAJORITY = "majority"


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """Reviewers, and the flags that exclude."""

    reviewers: Annotated[int, Meta(ge=0, le=2)] = 1
    rule: DisputeRule = DisputeRule.ORGANISER
    exclude_on: tuple[str, ...] = (
        "chain_broken",
        "not_isolated",
        "exposed",
        "aid_admitted",
        "wrong_protocol",
    )
    flag_fast_s: Count = 30
    flag_idle_share: Share = 0.5


class QuestionKind(StrEnum):
    """How a question is answered."""

    LIKERT = "likert"
    CHOICE = "choice"
    MULTI = "multi"
    NUMBER = "number"
    MINUTES = "minutes"
    PERCENT = "percent"
    TEXT = "text"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a questionnaire; with the questionnaire's id it is a column, as `before.editor`."""

    id: str
    text: str
    kind: QuestionKind
    options: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """Of a Likert scale: of its two ends, or of each of its points. Of a number: of its two ends."""
    points: Annotated[int, Meta(ge=2, le=11)] = 7
    min: float | None = None
    max: float | None = None
    unit: str = ""
    required: bool = False
    """If not, "rather not say" is offered, and stored as a null, with `declined`."""
    screen_out: tuple[Any, ...] = ()
    """Answers that end the session."""
    each_source: bool = False
    """Asked once for each library of the tasks, whose name replaces `{source}` in the text."""


class Moment(StrEnum):
    """When a questionnaire is asked."""

    BEFORE = "before"
    AFTER_BRIEF = "after_brief"
    AFTER_TASK = "after_task"
    AFTER = "after"


class Questionnaire(msgspec.Struct, frozen=True, kw_only=True):
    """A form; `reading` puts the items of the blocks that it uses before its own."""

    id: str
    at: Moment
    use: tuple[str, ...] = ()
    item: tuple[Question, ...] = ()


class DeclaredSolver(msgspec.Struct, frozen=True, kw_only=True):
    """A model to compare with."""

    name: str
    runs: tuple[str, ...]
    condition: str
    map: str = "task_id"
    scaffold: str = ""
    cutoff: str = ""
    """A month, as 2025-06: the report separates tasks released before it from later ones."""


class ReportChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What the report holds."""

    analyses: tuple[str, ...] = ()
    """Ids of analyses; empty for all that have data."""
    difficulty: tuple[str, ...] = ("code_lines", "harmonic_out")
    hard: tuple[str, ...] = ("cyclomatic", "degree")


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """A study as declared."""

    format: str
    version: int
    id: str
    title: str = ""
    seed: int
    simulated: bool = False
    tasks: str = "tasks"
    """A folder of tasks, or a list of them, relative to the study's folder."""
    protocol: Protocol = Protocol()
    design: Design
    condition: tuple[Condition, ...]
    tag: tuple[Tag, ...] = ()
    training: Training = Training()
    participants: Participants = Participants()
    texts: Texts
    privacy: Privacy
    sandbox: SandboxDemand = SandboxDemand()
    clock: Clocks = Clocks()
    quality: Quality = Quality()
    questionnaire: tuple[Questionnaire, ...] = ()
    solver: tuple[DeclaredSolver, ...] = ()
    report: ReportChoice = ReportChoice()
    checklist: dict[str, str] = {}
    """Answers to the checklist that only a person has, by number."""

    def condition_of(self, name: str) -> Condition | None:
        """Return the condition with an id."""
        return next((condition for condition in self.condition if condition.id == name), None)

    @property
    def conditions_of_people(self) -> tuple[Condition, ...]:
        """The conditions that people are given."""
        return tuple(condition for condition in self.condition if condition.people)

    def questionnaires_at(self, moment: Moment) -> tuple[Questionnaire, ...]:
        """Return the forms asked at a moment, in the order of the file."""
        return tuple(form for form in self.questionnaire if form.at is moment)


class StudyTask(msgspec.Struct, frozen=True, kw_only=True):
    """What assigning and analysing need of a task."""

    id: str
    mode: str
    source: str
    """The name of the library."""
    revision: str = ""
    targets: tuple[str, ...] = ()
    """The corrupted functions as `path::qualname`; of a gist, its entrypoint."""
    tool_uses: int = 0
    submissions: int = 0
    time_limit_s: int | None = None
    tools: tuple[str, ...] = ()
    template: str = ""
    """Name and version of the brief's template."""
    metrics: dict[str, float] = {}
    """Of the target; their mean if there are several targets."""
    corruptions: int = 1
    released: str = ""
    """The month in which its source was released, as 2025-06, if it is known."""
