"""The operations of a study's log: acts of people and organisers, each on a line that never changes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import UserError
from gistpoint.core.operations import Operation

FORMAT = "gistpoint.study"
VERSION = 1
STUDY, ERASED = "study", "erased"
"""Two of the subjects; the others are `person:CODE`, `attempt:ID` and `repair:KEY`."""


class StudyError(UserError):
    """The error for a study that can't be used as requested.

    If a declaration or an operation is at fault, the message names the file and the key, or the operation.
    """


class StudyOperationKind(StrEnum):
    """The kinds of operations, ordered by subject: the study, a person, an attempt or its repair."""

    OPENED = "opened"
    AMENDED = "amended"
    CLOSED = "closed"
    UNBLINDED = "unblinded"
    POWER = "power"
    MODELS = "models"
    EXPORTED = "exported"
    ENROLLED = "enrolled"
    CONSENTED = "consented"
    DECLINED = "declined"
    SCREENED_OUT = "screened_out"
    ANSWERS = "answers"
    PLANNED = "planned"
    BEGUN = "begun"
    FINISHED = "finished"
    RETURNED = "returned"
    EXPOSED = "exposed"
    SITTING = "sitting"
    WITHDRAWN = "withdrawn"
    ERASED = "erased"
    CORRECTED = "corrected"
    EXCLUDED = "excluded"
    INCLUDED = "included"
    COMPARED = "compared"
    READ = "read"
    NOTE = "note"
    DELETE = "delete"


NEVER_DELETED = frozenset(
    {
        StudyOperationKind.CONSENTED,
        StudyOperationKind.WITHDRAWN,
        StudyOperationKind.ERASED,
        StudyOperationKind.DELETE,
    }
)


class StudyOperation(Operation, frozen=True, omit_defaults=True):
    """One operation; `reviewer` is its writer, `NAME@MACHINE`."""

    longest_name: ClassVar[int] = 80
    """The maximum number of characters in a writer's name; a code has up to 64."""


ORGANISER = "organiser"
"""The writer's name in operations on the study rather than on a participant."""


def writer_sha8(writer: str) -> str:
    """Return the name of a writer in a plan's basis: 8 hex digits, which identify nobody."""
    return sha256_of_text(writer)[:8]


def person(code: str) -> str:
    """Return the subject of a participant."""
    return f"person:{code}"


def attempt(identity: str) -> str:
    """Return the subject of an attempt."""
    return f"attempt:{identity}"


def repair(key: str) -> str:
    """Return the subject of a repair by its key (`AttemptRepair.key`)."""
    return f"repair:{key}"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Data of an operation, with the operation's id, writer and time."""

    op: str = ""
    reviewer: str = ""
    utc_ms: int = 0


class StudyOpened(Fact, frozen=True, kw_only=True):
    """Data of `opened`: the protocol's hash, the ids of the tasks, and the version of gistpoint."""

    protocol: str
    tasks: tuple[str, ...] = ()
    version: str = ""
    exclude_on: tuple[str, ...] | None = None
    """The flags declared to exclude; None if they were not recorded."""


class Amended(Fact, frozen=True, kw_only=True):
    """Data of `amended`: the hash of the protocol that is in force from then on, and the reason."""

    protocol: str
    why: str = ""
    tell: str = ""
    """The changes for participants, as they read them when they are asked for their consent again."""
    version: str = ""
    """The version of gistpoint in force from then on; empty if it was not recorded."""
    exclude_on: tuple[str, ...] | None = None
    """The flags that exclude from now on; None if they were not recorded."""


class PowerRecorded(Fact, frozen=True, kw_only=True):
    """Data of `power`: the estimate, the assumptions, and the figures for each number of people."""

    what: str = ""
    """The name of the estimate, in words."""
    assumed: dict[str, Any] = {}
    figures: tuple[dict[str, Any], ...] = ()


class Enrolled(Fact, frozen=True, kw_only=True):
    """Data of `enrolled`: the person's stratum and role."""

    stratum: str = ""
    role: str = "baseline"
    """`baseline`, or `author` for a person who knows the tasks."""


class Consented(Fact, frozen=True, kw_only=True):
    """Data of `consented`: the hash of the text, the items ticked, and the protocol in force."""

    text_sha256: str
    items: tuple[bool, ...] = ()
    protocol: str = ""
    version: str = ""
    """The version of the consent, as declared."""
    shown_sha256: str = ""
    """The hash of everything that was shown: texts, privacy and items."""


class ScreenedOut(Fact, frozen=True, kw_only=True):
    """Data of `screened_out`: the column of the answer, such as `before.editor`."""

    item: str = ""


class Answers(Fact, frozen=True, kw_only=True):
    """Data of `answers`: a filled-in questionnaire; `values` is by item, with None for a declined item."""

    questionnaire: str
    sha256: str = ""
    """The hash of the questionnaire's wording."""
    values: dict[str, Any] = {}
    seconds: float = 0.0
    assignment: str = ""


class Planned(Fact, frozen=True, kw_only=True):
    """Data of `planned`: the assignments of a person.

    `basis` is the number of lines read of each log file, by the hash of the writer's name.
    """

    slot: int = 1
    basis: dict[str, int] = {}
    assignments: tuple[tuple[str, str, str, int], ...] = ()
    """For each assignment its id, task, condition, and position, counted from 1."""
    protocol: str = ""
    """The hash of the protocol in force at planning."""


class Begun(Fact, frozen=True, kw_only=True):
    """Data of `begun`, which is on disk before the attempt's journal begins."""

    assignment: str
    attempt: str


class Finished(Fact, frozen=True, kw_only=True):
    """Data of `finished`: why the attempt ended, and the hash of the journal's last line."""

    assignment: str
    attempt: str
    end: str = ""
    head: str = ""


class Returned(Fact, frozen=True, kw_only=True):
    """Data of `returned`: an assignment that is now free for others."""

    assignment: str
    why: str = ""
    late: bool = False
    """Whether it was freed because its person had not continued for too long."""


class Exposed(Fact, frozen=True, kw_only=True):
    """Data of `exposed`: a task, or a source with all of its tasks, that was seen elsewhere."""

    task: str = ""
    source: str = ""
    how: str = ""


class Sitting(Fact, frozen=True, kw_only=True):
    """Data of `sitting`: `state` is `began` or `ended`."""

    state: str


KEEP, ERASE = "keep", "erase"
"""The two choices for the data of a person who withdraws."""


class Withdrawn(Fact, frozen=True, kw_only=True):
    """Data of `withdrawn`: `data` is `keep` or `erase`."""

    data: str
    words: str = ""


class ResidualAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """An assignment of an erased person, as other people's plans had counted it.

    `since` and `until` are lines of the log, given by a writer's hash and a number: the line of the plan, and
    the lines after which the assignment was free again.
    """

    stratum: str = ""
    task: str
    condition: str
    position: int
    since: tuple[str, int]
    until: tuple[tuple[str, int], ...] = ()


class Erased(Fact, frozen=True, kw_only=True):
    """Data of `erased`: a hash of the code, and the numbers of attempts by end.

    `logs` are the first 8 hex digits of the sha256 of each writer whose file was deleted, as in a plan's
    basis.
    """

    person_sha256: str
    counts: dict[str, int] = {}
    logs: tuple[str, ...] = ()
    residue: tuple[ResidualAssignment, ...] = ()
    """The counts on which other people's plans rest."""
    covered: dict[str, int] = {}
    """The number of lines in each deleted file that `residue` takes into account."""


class TakenBack(Fact, frozen=True, kw_only=True):
    """Data of `delete`: the id of the operation to ignore."""

    target: str


class RelabelledSpan(msgspec.Struct, frozen=True, array_like=True):
    """A span of an attempt's timeline, with its new label.

    Positions are milliseconds of the monotonic clock from the attempt's start.
    """

    from_ms: int
    to_ms: int
    counts_as: str
    """`idle`, `paused` or `work`."""


class TimesCorrected(Fact, frozen=True, kw_only=True):
    """Data of `corrected`: the spans of an attempt's timeline that get other labels, and why."""

    spans: tuple[RelabelledSpan, ...]
    why: str = ""


class Excluded(Fact, frozen=True, kw_only=True):
    """Data of `excluded`: the reason why an attempt does not count, and an explanation."""

    reason: str = ""
    why: str = ""


class Included(Fact, frozen=True, kw_only=True):
    """Data of `included`: the reason why an attempt counts despite an exclusion."""

    why: str = ""


class Exported(Fact, frozen=True, kw_only=True):
    """Data of `exported`: the formats, and the hashes of the people whose data are in the export."""

    to: tuple[str, ...] = ()
    public: bool = False
    people: tuple[str, ...] = ()
    """The sha256 of each code, as in `erased`."""


class ModelsRead(Fact, frozen=True, kw_only=True):
    """Data of `models`: a declared model's runs, by the hash of their last journal line or of their file."""

    solver: str
    runs: tuple[str, ...] = ()


class RepairCompared(Fact, frozen=True, kw_only=True):
    """Data of `compared`: a passing repair's comparison with the original (see `core.tasks.equivalence`)."""

    verdict: str
    recorded: int = 0
    varied: int = 0
    differing: int = 0
    call: str = ""
    """The smallest call with different results."""
    original: str = ""
    repair: str = ""
    reason: str = ""
    """The reason why nothing could be compared."""


class ReadBlind(Fact, frozen=True, kw_only=True):
    """Data of `read`: the decision of a reader who does not know whose change it is."""

    task: str
    decision: str
    """`merge`, `merge_after_changes` or `reject`."""
    why: str = ""


class Remark(Fact, frozen=True, kw_only=True):
    """Data of `note`: a remark on an attempt."""

    text: str = ""


DATA_OF: dict[str, type[Fact]] = {
    StudyOperationKind.OPENED: StudyOpened,
    StudyOperationKind.AMENDED: Amended,
    StudyOperationKind.POWER: PowerRecorded,
    StudyOperationKind.ENROLLED: Enrolled,
    StudyOperationKind.CONSENTED: Consented,
    StudyOperationKind.DECLINED: Fact,
    StudyOperationKind.SCREENED_OUT: ScreenedOut,
    StudyOperationKind.ANSWERS: Answers,
    StudyOperationKind.PLANNED: Planned,
    StudyOperationKind.BEGUN: Begun,
    StudyOperationKind.FINISHED: Finished,
    StudyOperationKind.RETURNED: Returned,
    StudyOperationKind.EXPOSED: Exposed,
    StudyOperationKind.SITTING: Sitting,
    StudyOperationKind.WITHDRAWN: Withdrawn,
    StudyOperationKind.ERASED: Erased,
    StudyOperationKind.CORRECTED: TimesCorrected,
    StudyOperationKind.EXCLUDED: Excluded,
    StudyOperationKind.INCLUDED: Included,
    StudyOperationKind.COMPARED: RepairCompared,
    StudyOperationKind.READ: ReadBlind,
    StudyOperationKind.NOTE: Remark,
    StudyOperationKind.CLOSED: Fact,
    StudyOperationKind.UNBLINDED: Fact,
    StudyOperationKind.EXPORTED: Exported,
    StudyOperationKind.MODELS: ModelsRead,
}
"""The record type of each kind's data, except for `delete`, which hides another operation."""
