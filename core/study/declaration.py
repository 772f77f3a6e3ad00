"""The records of a study's declaration, as spelled in `study.toml` and read by `reading`."""

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
Money = Annotated[float, Meta(ge=0, le=1_000_000)]


class PrimaryOutcome(StrEnum):
    """The outcome of the single confirmatory analysis."""

    SOLVE_RATE = "solve_rate"
    TIME_TO_SOLVE = "time_to_solve"
    TIME_RATIO = "time_ratio"
    FIDELITY = "fidelity"


class PrimaryTime(StrEnum):
    """The clock of the primary time; the times on both clocks are always exported."""

    ACTIVE = "active"
    ACTIVE_AND_WAITING = "active_and_waiting"


class Protocol(msgspec.Struct, frozen=True, kw_only=True):
    """The question of the study, and how it will be answered."""

    question: str = ""
    hypotheses: tuple[str, ...] = ()
    primary: PrimaryOutcome = PrimaryOutcome.SOLVE_RATE
    primary_contrast: tuple[str, ...] = ()
    """The two conditions or solvers that the primary analysis compares; otherwise empty."""
    primary_time: PrimaryTime = PrimaryTime.ACTIVE
    preregistration: str = ""
    """The address of the pre-registration."""
    power: str = ""


class ConditionsPer(StrEnum):
    """Whether each person works under all conditions, or under only one."""

    WITHIN = "within"
    BETWEEN = "between"


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """The number of tasks per person, and how they are chosen."""

    tasks_per_person: Positive
    target_per_task: Positive = 5
    """The number of attempts per task and condition from which the task counts as covered."""
    conditions: ConditionsPer = ConditionsPer.WITHIN
    quota: dict[str, Count] = {}
    """The number of a person's tasks per mode or tag."""
    per_source: Count = 2
    """The maximum number of tasks of one library per person; 0 for any number."""
    per_sitting: Positive = 4
    sitting_minutes: Count = 0
    """The minutes after which no new task begins; 0 for no limit."""
    break_offered_every: Positive = 1
    return_after_hours: Count = 0
    """The hours without a record of a person after which their open tasks are free; 0 for never."""
    exposed_elsewhere: tuple[str, ...] = ()
    """Folders of other studies whose participants count as exposed."""


class Assistance(StrEnum):
    """The assistance by a model that a condition offers."""

    NONE = "none"
    CHAT = "chat"


class GistHelp(StrEnum):
    """The gist, if any, that is shown with a repair."""

    NONE = ""
    FIRST_FAILING = "first_failing"


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The chat of an assisted condition, with its limits per attempt."""

    model: str = ""
    messages: Count = 20
    tokens: Count = 200_000
    template: str = "assist-1"


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition; settings that are 0 or unset are those of the task."""

    id: str
    words: str = ""
    """The description that participants see."""
    people: bool = True
    """Whether people are assigned to it; false for a condition of models only."""
    tool_uses: Count = 0
    submissions: Count = 0
    steps: Count = 0
    time_limit_s: Count = 0
    score_budget: Count = 0
    free: bool = False
    """Whether people use their own editor and any number of runs.

    Such a condition is never pooled with others.
    """
    strategy: str = ""
    give_test: bool | None = None
    parameter: bool | None = None
    """Whether the briefs of parametrised tests name only their first parameter."""
    execution: bool | None = None
    tools: tuple[str, ...] | None = None
    comforts_off: tuple[str, ...] = ("external_editor",)
    assistance: Assistance = Assistance.NONE
    chat: ChatSettings = ChatSettings()
    gist_help: GistHelp = GistHelp.NONE


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of tasks that a quota can count."""

    id: str
    tasks: tuple[str, ...]


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """The training tasks, and whether they must be ended or solved before the counted tasks."""

    tasks: tuple[str, ...] = ()
    must_end: bool = True
    must_solve: bool = False


class BonusFor(StrEnum):
    """The basis on which a bonus is paid."""

    NONE = ""
    TASK = "task"
    """A bonus for each counted task that has ended, whatever its outcome."""
    SOLVED = "solved"


class Pay(msgspec.Struct, frozen=True, kw_only=True):
    """The participants' pay, in words, and the amounts from which `study pay` computes it."""

    base: str = ""
    bonus: str = ""
    training: str = ""
    equal: bool = True
    currency: str = ""
    amount: Money = 0.0
    """The amount for completing the study."""
    per_hour: Money = 0.0
    """The amount for each hour, whether or not the study was completed."""
    bonus_amount: Money = 0.0
    bonus_for: BonusFor = BonusFor.NONE


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """The code, the address or both that a participant takes back to the recruiter at the end.

    `{code}` in the addresses is replaced by the participant's code.
    """

    code: str = ""
    url: str = ""
    screened_out_code: str = ""
    screened_out_url: str = ""


class Participants(msgspec.Struct, frozen=True, kw_only=True):
    """The participants: recruitment, strata, screening and pay."""

    strata: tuple[str, ...] = ()
    population: str = ""
    criteria: tuple[str, ...] = ()
    recruitment: str = ""
    team: tuple[str, ...] = ()
    """Codes of participants who are authors of the study."""
    screening: str = ""
    """The id of the questionnaire whose `screen_out` answers end the session."""
    pay: Pay = Pay()
    completion: Completion = Completion()
    cap: Count = 0
    """The maximum number of people who take part; 0 for any number."""
    caps: dict[str, Count] = {}
    """The maximum number of people in each stratum, by the stratum's name."""
    familiar_from: Count = 4
    """The familiarity rating at or above which a library's tasks are not assigned to a person."""


class Feedback(StrEnum):
    """The feedback to a participant after a counted task."""

    NONE = "none"
    OUTCOME = "outcome"
    FULL = "full"


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts for participants; `reading` replaces `file:NAME` with the content of the file."""

    welcome: str = ""
    consent: str
    consent_version: str = ""
    """The version of the consent, such as the date of its approval; shown, recorded and printed on copies."""
    consent_items: tuple[str, ...]
    """The items to tick one by one; one that begins with `[required]` is a condition of taking part.

    One that begins with `[tasks]` asks whether failed submissions may become tasks, and one with `[models]`
    whether a model may read attempts.
    """
    rules: str
    debrief: str = ""
    feedback: Feedback = Feedback.NONE


REQUIRED_ITEM, TASKS_ITEM, MODELS_ITEM = "[required]", "[tasks]", "[models]"
"""The marks at the beginning of consent items, which participants do not see."""


def item_words(item: str) -> str:
    """Return an item of consent as participants read it, without its mark."""
    return item.removeprefix(REQUIRED_ITEM).removeprefix(TASKS_ITEM).removeprefix(MODELS_ITEM).strip()


def tasks_item(texts: Texts) -> int | None:
    """Return the place of the item that lets failed submissions become tasks; None if there is none."""
    return _marked_item(texts, TASKS_ITEM)


def models_item(texts: Texts) -> int | None:
    """Return the place of the item that lets a model read attempts; None if there is none."""
    return _marked_item(texts, MODELS_ITEM)


def _marked_item(texts: Texts, mark: str) -> int | None:
    places = [place for place, item in enumerate(texts.consent_items) if item.startswith(mark)]
    return places[0] if len(places) == 1 else None


class Privacy(msgspec.Struct, frozen=True, kw_only=True):
    """The handling of personal data."""

    contact: str
    controller: str = ""
    """The person or body responsible for the data, as participants read it."""
    legal_basis: str = ""
    chat_recipient: str = ""
    """The recipient of messages in the chat of an assisted condition, and the recipient's location."""
    retention: str = ""
    """How long data are kept, in words; replaces the sentence about `retention_days`."""
    retention_days: Count = 0
    free_text_public: bool = False


class SandboxDemand(msgspec.Struct, frozen=True, kw_only=True):
    """The isolation that every attempt requires."""

    demand: str = "bwrap"
    """The name of a backend; empty for any that isolates."""


class Clocks(msgspec.Struct, frozen=True, kw_only=True):
    """The time without input after which the program asks whether the solver is still there."""

    idle_after_s: Positive = 120


class DisputeRule(StrEnum):
    """The rule for reviewers who disagree."""

    ORGANISER = "organiser"
    ANY_EXCLUDE = "any_exclude"
    MAJORITY = "majority"


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """The number of reviewers, their rule, and the flags that exclude."""

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
    """The kind of a question's answer."""

    LIKERT = "likert"
    CHOICE = "choice"
    MULTI = "multi"
    NUMBER = "number"
    MINUTES = "minutes"
    PERCENT = "percent"
    TEXT = "text"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a questionnaire.

    The column of its answers is named by the form's id, a dot, and the item's id, as in `before.editor`.
    """

    id: str
    text: str
    kind: QuestionKind
    options: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """The labels of a Likert scale's two ends or of all its points, or of a number's two ends."""
    points: Annotated[int, Meta(ge=2, le=11)] = 7
    min: float | None = None
    max: float | None = None
    unit: str = ""
    required: bool = False
    """Whether an answer is required; if not, "rather not say" is offered, and stored as null."""
    screen_out: tuple[Any, ...] = ()
    """Answers that end the session."""
    modes: tuple[str, ...] = ()
    """The modes of the tasks after which it is asked; empty for all."""
    each_source: bool = False
    """Whether it is asked once per library of the tasks, whose name replaces `{source}` in the text."""


class Moment(StrEnum):
    """The moment at which a questionnaire is asked."""

    BEFORE = "before"
    AFTER_BRIEF = "after_brief"
    AFTER_TASK = "after_task"
    AFTER = "after"


class Questionnaire(msgspec.Struct, frozen=True, kw_only=True):
    """A form; `reading` inserts the items of the blocks in `use` before the form's own."""

    id: str
    at: Moment
    use: tuple[str, ...] = ()
    item: tuple[Question, ...] = ()


class DeclaredSolver(msgspec.Struct, frozen=True, kw_only=True):
    """A model whose runs are compared with people's attempts."""

    name: str
    runs: tuple[str, ...]
    condition: str
    map: str = "task_id"
    scaffold: str = ""
    cutoff: str = ""
    """The training cutoff as a month, such as 2025-06: the report separates earlier tasks from later ones."""


class ReportChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The analyses and metrics of the report."""

    analyses: tuple[str, ...] = ()
    """The ids of the analyses to include; empty for all that have data."""
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
    """Answers that only a person can give to the checklist, by the item's number."""

    def condition_of(self, name: str) -> Condition | None:
        """Return the condition with an id; None if there is none."""
        return next((condition for condition in self.condition if condition.id == name), None)

    @property
    def conditions_of_people(self) -> tuple[Condition, ...]:
        """The conditions that people are assigned to."""
        return tuple(condition for condition in self.condition if condition.people)

    def questionnaires_at(self, moment: Moment) -> tuple[Questionnaire, ...]:
        """Return the forms asked at a moment, in the order of the declaration."""
        return tuple(form for form in self.questionnaire if form.at is moment)


class StudyTask(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a task that assigning and analysing use."""

    id: str
    mode: str
    source: str
    """The name of the library."""
    revision: str = ""
    targets: tuple[str, ...] = ()
    """The corrupted functions as `path::qualname`; for a gist, its entrypoint."""
    tool_uses: int = 0
    submissions: int = 0
    time_limit_s: int | None = None
    tools: tuple[str, ...] = ()
    template: str = ""
    """The name and version of the brief's template."""
    metrics: dict[str, float] = {}
    """The metrics of the target by name; the mean over several targets."""
    corruptions: int = 1
    failing: int = 0
    """The number of tests that fail on the corrupted tree; 0 if unknown."""
    names: tuple[str, ...] = ()
    """The names that people can type, besides the words derived from the id."""
    released: str = ""
    """The month of its source's release, such as 2025-06; empty if unknown."""
    in_history: bool = False
    """Whether the fault was in the library's public history, where its correction can be found."""
