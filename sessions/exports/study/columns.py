"""The columns of the tidy tables and of their data dictionary, with types, units and meanings.

The types are those of the Frictionless Table Schema; an empty cell is a missing value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gistpoint.core.kinds.measures import NOT_MEASURED, Measure, MeasureType
from gistpoint.core.kinds.registry import all_kinds, kind_named
from gistpoint.core.metrics.table import CENTRALITY, COMPLEXITY
from gistpoint.core.study.data import ReviewDecision
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.tasks.strata import FAILING_STRATA


class CellType(StrEnum):
    """The type of a column."""

    TEXT = "string"
    WHOLE = "integer"
    NUMBER = "number"
    YES_NO = "boolean"
    MOMENT = "datetime"
    LIST = "array"
    TABLE = "object"


@dataclass(frozen=True, slots=True)
class TidyColumn:
    """One column of a table."""

    name: str
    meaning: str
    type: CellType = CellType.TEXT
    unit: str = ""
    required: bool = False
    values: tuple[str, ...] = ()
    """All possible values of a cell, if the set is fixed."""


@dataclass(frozen=True, slots=True)
class TidyReference:
    """A foreign key: a column whose cells are keys of another table, or empty."""

    column: str
    table: str


@dataclass(frozen=True, slots=True)
class TidyTable:
    """One table; the columns in `key` identify a row."""

    name: str
    meaning: str
    columns: tuple[TidyColumn, ...]
    key: tuple[str, ...]
    references: tuple[TidyReference, ...] = ()


def _text(name: str, meaning: str, *, required: bool = False, values: tuple[str, ...] = ()) -> TidyColumn:
    return TidyColumn(name, meaning, required=required, values=values)


def _integer(name: str, meaning: str) -> TidyColumn:
    return TidyColumn(name, meaning, CellType.WHOLE)


def _number(name: str, meaning: str, unit: str = "") -> TidyColumn:
    return TidyColumn(name, meaning, CellType.NUMBER, unit)


def _seconds(name: str, meaning: str) -> TidyColumn:
    return TidyColumn(name, meaning, CellType.NUMBER, "s")


def _yes_no(name: str, meaning: str) -> TidyColumn:
    return TidyColumn(name, meaning, CellType.YES_NO)


def _moment(name: str, meaning: str) -> TidyColumn:
    return TidyColumn(name, meaning, CellType.MOMENT)


STUDY = _text("study", "The study's id.", required=True)
SIMULATED = TidyColumn(
    "simulated",
    "Whether the data are simulated, that is, made by a program instead of real people or models.",
    CellType.YES_NO,
    required=True,
)
_ATTEMPT = _text("attempt", "The attempt's id, or for a run of another program its key.", required=True)
_OF_ATTEMPT = TidyReference("attempt", "attempts")
_OF_PERSON = TidyReference("participant", "participants")
_OF_TASK = TidyReference("task", "tasks")
_CODE = "The participant's code."

PARTICIPANTS = TidyTable(
    "participants",
    "One row for each participant who was not erased.",
    (
        _text("participant", _CODE, required=True),
        STUDY,
        SIMULATED,
        _text("stratum", "The group to which the organiser assigned the participant."),
        _text("role", "`baseline`, or `author` for people who know the tasks."),
        _moment("enrolled_utc", "When the participant was last enrolled."),
        _moment("consented_utc", "When the participant last consented."),
        _yes_no("declined", "Whether the participant declined to take part."),
        _text("screened_out", "The item whose answer screened the participant out."),
        _text("withdrawn", "What the participant asked for when withdrawing.", values=("keep", "erase")),
        _moment("withdrawn_utc", "When the participant withdrew."),
        _integer("sittings", "How many sittings the participant began."),
        _integer("planned", "How many tasks were assigned."),
        _integer("begun", "How many of the assigned tasks were begun."),
        _integer("finished", "How many attempts ended."),
        _integer("machines", "On how many machines the participant worked."),
    ),
    ("participant",),
)

ASSIGNMENTS = TidyTable(
    "assignments",
    "One row for each task that was assigned to a participant.",
    (
        _text("assignment", "The assignment's id.", required=True),
        STUDY,
        SIMULATED,
        _text("participant", _CODE, required=True),
        _text("task", "The task's id.", required=True),
        _text("condition", "The condition's id."),
        _integer("position", "The position among the participant's tasks, counted from 1."),
        _moment("planned_utc", "When the assignment was planned."),
        _moment("begun_utc", "When the task was first begun."),
        _text("first_attempt", "The id of the first attempt, which is the one that counts."),
        _text("end", "How the first attempt ended, according to the log."),
        _yes_no("returned", "Whether the organiser returned the task, so that others can get it."),
    ),
    ("assignment",),
    (_OF_PERSON, _OF_TASK),
)


def attempts_table() -> TidyTable:
    """Return the table of attempts, with the measures of every kind of task."""
    return TidyTable(
        "attempts",
        "One row for each attempt: of participants and of the models that the study compares with.",
        (
            _ATTEMPT,
            STUDY,
            SIMULATED,
            _text("actor", "Who made the attempt.", values=("person", "model", "simulated", "replay")),
            _text("solver", "The model's name as declared; empty for people."),
            _text("participant", "The participant's code; empty for models."),
            _text("stratum", "The participant's group."),
            _text("task", "The task's id.", required=True),
            _text("source", "The library from which the task is made."),
            _text("mode", "`remove`, `discovery` or `gist`."),
            _text("condition", "The condition's id."),
            _text(
                "condition_key",
                "Budgets, limit, tools and template; rows are pooled only if their keys are equal.",
            ),
            _text("assignment", "The assignment's id, if the log knows it."),
            _integer("position", "The position among the participant's tasks, counted from 1."),
            _integer("sitting", "The participant's sitting in which the attempt began, counted from 1."),
            _text("role", "The purpose: `baseline`, `training`, `qa`, `author` or `demo`."),
            _yes_no("counted", "Whether analyses use the attempt."),
            _text(
                "exclusion",
                "Why the attempt is not counted: a rule of the design, a declared flag, or the organiser's"
                " reason.",
            ),
            _text("end", "How the attempt ended; for another program's run, in that program's word."),
            _text("end_code", "The solver's reason for giving up."),
            _yes_no(
                "solved",
                "Whether the attempt is solved: a gist needs fidelity 1 without mocks, and a suspicious pass"
                " must have been accepted by a reviewer.",
            ),
            _yes_no(
                "by_tests",
                "Whether the attempt is solved by the tests alone, regardless of reviewers and the"
                " confirmation.",
            ),
            _text(
                "verdict_from",
                "Where `solved` comes from: judged by gistpoint, recorded by another program, or derived from"
                " the score or the reward in its file.",
                values=("judged", "recorded", "derived"),
            ),
            _text(
                "confirmation",
                "The result of the confirmation of a pass; empty without one, or if the kind of task"
                " has none.",
                values=("confirmed", "contradicted", "unconfirmed", "not asked"),
            ),
            _number("score", "The score of the last submission, 0 to 1."),
            _number("best_score", "The score of the best submission, 0 to 1."),
            _text("outcome_of_last", "How the run of the last submission ended."),
            *(_column(measure) for kind in all_kinds() for measure in kind.measures),
            _integer("tool_uses", "Tool uses spent, or steps for a gist."),
            _integer("submissions", "Submissions that counted."),
            _integer("tool_use_budget", "Budget of tool uses."),
            _integer("submission_budget", "Budget of submissions."),
            _seconds("time_limit_s", "The limit of active time; empty if there is none."),
            _seconds("reading_s", "Time with the brief."),
            _seconds("exploring_s", "Time with the tree, code, results, console and notes."),
            _seconds("editing_s", "Time with the editor."),
            _seconds("waiting_s", "Time in which tools and tests ran."),
            _seconds("paused_s", "Time in pauses."),
            _seconds("idle_s", "Time without input that the participant did not claim as work."),
            _seconds("asleep_s", "Time in which the machine slept."),
            _seconds("away_s", "Time while the program was closed."),
            _seconds(
                "active_s", "The solver's own time: reading, exploring, editing, and a model's thinking."
            ),
            _seconds("active_corrected_s", "The solver's own time, with the organiser's corrections."),
            _seconds(
                "primary_s",
                "Corrected time on the clock that is declared primary, to the first solve or the end.",
            ),
            _text(
                "censored",
                "Empty if solved; `censored` at a limit; `competing` if given up or skipped.",
                values=("censored", "competing"),
            ),
            _seconds("instructions_s", "Active time until the brief was left."),
            _seconds("first_submission_s", "Active time until the first submission that counted."),
            _seconds("solved_s", "Active time until the task was solved."),
            _seconds("first_view_s", "Active time until a corrupted function was first shown completely."),
            _seconds("first_mark_s", "Active time until a corrupted function was first marked as suspect."),
            _seconds(
                "first_touch_s", "Active time until a corrupted function was first edited or submitted."
            ),
            TidyColumn(
                "comforts", "How often each convenience of the screen was used, by its name.", CellType.TABLE
            ),
            _integer("assist_messages", "Messages to the assistant."),
            TidyColumn(
                "assist_tokens", "Tokens of the assistant, sent and received.", CellType.WHOLE, "tokens"
            ),
            _number("assist_cost_usd", "What the assistant cost.", "USD"),
            _integer("resumes", "How often the program was restarted."),
            TidyColumn("tokens", "Tokens of a model, sent and received.", CellType.WHOLE, "tokens"),
            _number("cost_usd", "What a model cost.", "USD"),
            _text("scaffold", "The program around a model."),
            _text("brief_sha256", "The hash of the brief as shown."),
            _text("tools_sha256", "The hash of the tools' declarations."),
            _text("protocol_sha256", "The hash of the study's protocol under which the attempt began."),
            _text("backend", "The isolation in which code ran."),
            _text("gistpoint", "The version of gistpoint that recorded the attempt."),
            _text("journal_head", "The hash of the last line of the journal."),
            _moment("started_utc", "When the attempt began."),
        ),
        ("attempt",),
        (_OF_PERSON, _OF_TASK, TidyReference("assignment", "assignments")),
    )


SUBMISSIONS = TidyTable(
    "submissions",
    "One row for each submission.",
    (
        _ATTEMPT,
        SIMULATED,
        _integer("number", "The number within the attempt, counted from 1."),
        _seconds("at_s", "Active time when the submission was made."),
        _yes_no("counts", "False if the harness failed; the submission then cost nothing."),
        _number("score", "0 to 1."),
        _yes_no("solved", "Whether the submission's tests pass, or the gist is faithful."),
        _text("status", "How the run of the submission's tests ended."),
        _integer("changed", "How many corrupted functions the submission changed."),
    ),
    ("attempt", "number"),
    (_OF_ATTEMPT,),
)

CALLS = TidyTable(
    "calls",
    "One row for each tool call.",
    (
        _ATTEMPT,
        SIMULATED,
        _integer("number", "The number within the attempt, counted from 1."),
        _text("tool", "The tool's name."),
        _text(
            "kind",
            "What the tool does; derived in runs of other programs.",
            values=("view", "search", "execute", "edit", "submit", "other"),
        ),
        _seconds("at_s", "Active time when the call was made."),
        _yes_no("refused", "Whether the call was refused."),
        _yes_no("automatic", "Whether the program made the call, at a limit."),
        _seconds("seconds", "How long the call took."),
        TidyColumn(
            "arguments",
            "The arguments as recorded; of public data, only where calls that change nothing look.",
            CellType.TABLE,
        ),
    ),
    ("attempt", "number"),
    (_OF_ATTEMPT,),
)

ANSWERS = TidyTable(
    "answers",
    "One row for each answer to a question; the last one if a form was filled in twice.",
    (
        _text("answer", "Participant, assignment, questionnaire and item.", required=True),
        SIMULATED,
        _text("participant", _CODE, required=True),
        _text("assignment", "The assignment, if the question is asked after each task."),
        _text("questionnaire", "The questionnaire's id."),
        _text("item", "The question's id."),
        _text("value", "The answer; several choices are a JSON list."),
        _yes_no("declined", "Whether the participant chose not to answer."),
        _moment("answered_utc", "When the form was handed in."),
    ),
    ("answer",),
    (_OF_PERSON, TidyReference("assignment", "assignments")),
)

FLAGS = TidyTable(
    "flags",
    "One row for each flag of an attempt.",
    (
        _ATTEMPT,
        SIMULATED,
        _text("flag", "The flag's name.", required=True),
        _yes_no("excludes", "Whether the study declares that the flag excludes attempts."),
        TidyColumn("events", "Numbers of the events that show the flag's reason.", CellType.LIST),
        _text("words", "A description of the finding."),
    ),
    ("attempt", "flag"),
    (_OF_ATTEMPT,),
)

EXCLUSIONS = TidyTable(
    "exclusions",
    "Why attempts are not counted, and what organisers and reviewers decided about them: each corrected"
    " time, exclusion and inclusion.",
    (
        _ATTEMPT,
        SIMULATED,
        _integer("number", "The number within the attempt, counted from 1."),
        _text(
            "kind",
            "The kind of the decision or reason.",
            values=("rule", "excluded", "included", "corrected", "note"),
        ),
        _text("reason", "The rule, the flag, the organiser's reason, or `reviewers` for a reviewer's time."),
        _text("words", "Why, in the organiser's words."),
        _text("writer", "Who recorded the decision; empty for a rule."),
        _moment("said_utc", "When the decision was recorded."),
        _seconds("from_s", "Start of a corrected span, on the attempt's timeline."),
        _seconds("to_s", "End of the span."),
        _text("counts_as", "What the span counts as.", values=("idle", "paused", "work")),
        _seconds("active_s", "The active time with which a reviewer accepts the attempt."),
    ),
    ("attempt", "number"),
    (_OF_ATTEMPT,),
)

DECISIONS = TidyTable(
    "decisions",
    "The last decision of each reviewer on each attempt of a person.",
    (
        _ATTEMPT,
        SIMULATED,
        _text("reviewer", "The reviewer's name; R01 and so on in published data.", required=True),
        _text(
            "decision",
            "Whether the attempt counts; `reject_pass` if it counts as not solved.",
            required=True,
            values=tuple(ReviewDecision),
        ),
        _seconds("active_s", "The active time with which it is accepted; empty for the recorded one."),
    ),
    ("attempt", "reviewer"),
    (_OF_ATTEMPT,),
)

METRICS = (*COMPLEXITY, *CENTRALITY)


def tasks_table() -> TidyTable:
    """Return the table of tasks, with the metrics of every kind of task."""
    return TidyTable(
        "tasks",
        "One row for each task. The functions that were corrupted are not named, so that the tasks can still"
        " be used.",
        (
            _text("task", "The task's id.", required=True),
            STUDY,
            SIMULATED,
            _text("mode", "`remove`, `discovery` or `gist`."),
            _yes_no("training", "Whether the task is only for training, so that no estimate uses it."),
            _text("source", "The library."),
            _text("revision", "The library's version or commit."),
            _text("released", "The month of that version's release."),
            _yes_no("in_history", "Whether the fault was in the library's public history."),
            _integer("corruptions", "How many functions are corrupted; 1 for a gist."),
            _integer("failing", "How many tests fail on the corrupted repository; 0 if unknown."),
            _text("failing_stratum", "The stratum of the number of failing tests.", values=FAILING_STRATA),
            _integer("tool_uses", "The task's own budget of tool uses, or of steps for a gist."),
            _integer("submissions", "The task's own budget of submissions."),
            _seconds("time_limit_s", "The task's own limit of active time."),
            TidyColumn("tools", "The names of the tools.", CellType.LIST),
            _text("template", "The name and version of the brief's template."),
            _integer("attempts", "How many attempts of people are counted."),
            _integer("solved", "How many of the counted attempts of people solved the task."),
            _integer("by_tests", "How many of the counted attempts of people are solved by the tests alone."),
            *(
                _number(name, "The metric of the original function; the mean if there are several.")
                for name in METRICS
            ),
            *(_column(measure) for kind in all_kinds() for measure in kind.task_measures),
        ),
        ("task",),
    )


SOLVERS = TidyTable(
    "solvers",
    "One row for each model that the study compares with.",
    (
        _text("solver", "The name that the study declares.", required=True),
        STUDY,
        SIMULATED,
        _text("condition", "The condition with whose people the model is compared."),
        _text("scaffold", "The program around the model."),
        _text("cutoff", "The month up to which the model was trained."),
        _integer("runs", "How many of the model's runs were matched to tasks."),
        _integer("counted", "How many of the matched runs are counted."),
        _integer("solved", "The number of counted attempts that are solved."),
        _integer("by_tests", "The number of counted attempts that are solved by the tests alone."),
        _integer("tasks", "How many tasks have a counted run of the model."),
    ),
    ("solver",),
)


def tables() -> tuple[TidyTable, ...]:
    """Return all tables, in the order of the data dictionary."""
    attempts, tasks = attempts_table(), tasks_table()
    return (
        PARTICIPANTS,
        ASSIGNMENTS,
        attempts,
        SUBMISSIONS,
        CALLS,
        ANSWERS,
        FLAGS,
        EXCLUSIONS,
        DECISIONS,
        tasks,
        SOLVERS,
    )


def _column(measure: Measure) -> TidyColumn:
    return TidyColumn(measure.name, measure.meaning, _TYPES[measure.type], measure.unit)


_TYPES = {
    MeasureType.NUMBER: CellType.NUMBER,
    MeasureType.TEXT: CellType.TEXT,
    MeasureType.YES_NO: CellType.YES_NO,
    MeasureType.NAMES: CellType.LIST,
}


def cells_of(row: AttemptRow) -> dict[str, Any]:
    """Return the cells of an attempt by column; the measures of other kinds of tasks are missing values."""
    own = {name: getattr(row, name) for name in AttemptRow.__struct_fields__ if name != "measures"}
    known = (measure for kind in all_kinds() for measure in kind.measures)
    return own | {
        measure.name: row.measures.get(measure.name, NOT_MEASURED[measure.type]) for measure in known
    }


def metrics_of(task: StudyTask) -> dict[str, float | None]:
    """Return the metrics of a task by column, which are its kind's or, if the kind has none, its functions'.

    A metric that was not computed is None.
    """
    kind = kind_named(task.mode)
    if kind is not None and kind.task_measures:
        return {measure.name: task.metrics.get(measure.metric) for measure in kind.task_measures}
    return {name: task.metrics.get(name) for name in METRICS}
