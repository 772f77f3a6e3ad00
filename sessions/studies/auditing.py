"""The audit of a study's folder: its log, protocol, plans, steps, journals, and data of erased people.

Each plan is derived again from the lines of the log that its planner had read (decision 82).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gistpoint.core.assist.context import wrong_contexts
from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.errors import cause
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import line_hash, read_log
from gistpoint.core.study.assigning import TRAINING, assignment_id, plan_tasks
from gistpoint.core.study.ledger import Assignment, Ledger, Person, person_sha256
from gistpoint.core.study.operations import (
    DATA_OF,
    ERASE,
    ERASED,
    STUDY,
    Amended,
    Answers,
    Planned,
    StudyOperation,
    StudyOperationKind,
)
from gistpoint.core.study.ports import PublishedAttempt
from gistpoint.core.study.replaying import missing_steps
from gistpoint.core.study.residue import is_covered, residual_operations
from gistpoint.core.study.soundness import training_tasks
from gistpoint.core.text import plural
from gistpoint.sessions.journal import read_journal
from gistpoint.sessions.studies.erasing import leftovers, local_leftovers
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.help_gists import read_help
from gistpoint.sessions.studies.publishing import CONFLICT, head_at, header_of, read_note
from gistpoint.sessions.studies.store import PREVIOUS, SUM, checksum, link_to
from gistpoint.sessions.studies.writers import name_in, writer_of

_WITHOUT_DATA = frozenset(StudyOperationKind) - DATA_OF.keys()


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A deviation from what the program would have written; a `note` is merely informative."""

    name: str
    sentence: str
    where: str = ""
    """The file or folder, relative to the study's folder."""
    note: bool = False


def audit(study: StudyFolder) -> Iterator[AuditFinding]:
    """Yield the faults of a study's folder, and notes.

    Nothing is changed, except that a team's study is synchronised with its store.
    """
    study.reload()
    yield from _log(study)
    yield from _protocol(study)
    yield from _plans(study)
    yield from _grounds(study)
    yield from _steps(study)
    yield from _journals(study)
    yield from _erased(study)
    for difference in study.store.differences():
        yield AuditFinding("store_differs", difference)
    if study.store.away:
        yield AuditFinding(
            "store_away", f"Newer lines by others are not checked: {study.store.away}", note=True
        )


def _log(study: StudyFolder) -> Iterator[AuditFinding]:
    """Yield the faults of the lines of the log, and notes on lines that were torn while they were written."""
    store = study.files.log
    owners = {found.id: name_in(found.writer) for found in study.attempts()}
    known: dict[str, StudyOperation] = {}
    for path in store.files():
        where, writer = f"{store.folder.name}/{path.name}", writer_of(path)
        content = read_log(path, store.codec.log)
        links = _Links()
        for number, line in enumerate(content.lines, 1):
            if not line.strip():
                continue
            place = f"{where}, line {number}"
            if links.is_broken_by(line):
                words = (
                    f"{place} does not follow the line before it: lines between them were removed or put in."
                )
                yield AuditFinding("line_missing", words, where)
            try:
                operation = store.codec.decode(line)
            except ValueError as error:
                yield AuditFinding("line_unreadable", f"{place} is not an operation: {error}", where)
                continue
            if operation is not None:
                yield from _operation(operation, writer, place, where, owners)
                # If operations have the same uuid, only the first counts, so one could hide another.
                if known.setdefault(operation.op, operation) != operation:
                    words = f"{place} has the uuid of a different operation, of which only the first counts."
                    yield AuditFinding("uuid_repeated", words, where)
        if content.torn:
            why = "has no end, but was not cut off while it was being written"
            is_cut = _is_cut(content.torn)
            if is_cut:
                why = "was cut off while it was being written"
            yield AuditFinding(
                "line_unreadable", f"{where}, line {len(content.lines) + 1} {why}", where, note=is_cut
            )


def _operation(
    operation: StudyOperation, writer: str, line_place: str, file: str, owners: dict[str, str]
) -> Iterator[AuditFinding]:
    kind, subject = operation.kind, operation.subject
    # An operation without a checksum counts as changed, even if its values can't have one.
    if not operation.extra.get(SUM) or operation.extra[SUM] != checksum(operation):
        yield AuditFinding(
            "operation_changed", f"{line_place}: {kind!r} of {subject} is not what was written.", file
        )
    if operation.reviewer != writer:
        yield AuditFinding(
            "wrong_writer", f"{line_place} is written by {operation.reviewer}, not by {writer}.", file
        )
    if kind not in _WITHOUT_DATA:
        record = DATA_OF.get(kind)
        if record is None or operation.read(record) is None:
            yield AuditFinding(
                "unknown_operation", f"{line_place}: {kind!r} can't be read by this version.", file
            )
    name = name_in(operation.reviewer)
    about, _, identity = subject.partition(":")
    if about == "person" and identity != name:
        yield AuditFinding(
            "wrong_place",
            f"{line_place} is about {identity}, but erasing {identity} would leave it in the file.",
            file,
        )
    elif about == "attempt" and owners.get(identity, name) != name:
        yield AuditFinding(
            "wrong_place",
            f"{line_place} is about an attempt by {owners[identity]}, but is not in one of their files.",
            file,
        )
    elif about not in ("person", "attempt", "repair", STUDY, ERASED):
        yield AuditFinding("unknown_operation", f"{line_place} is about {subject!r}, which is unknown.", file)


@dataclass
class _Links:
    """The links between the lines of a file; the first lines of an old log may have none."""

    last: bytes = b""
    begun: bool = False
    """Whether a line was linked; all later lines must then be linked."""

    def is_broken_by(self, line: bytes) -> bool:
        """Return whether the file's next line does not follow its previous line."""
        link = _link_of(line)
        broken = link != link_to(self.last) if link else self.begun
        self.last, self.begun = line, self.begun or bool(link)
        return broken


def _link_of(line: bytes) -> str:
    """Return the link of a line; empty if the line has none, or can't be read."""
    try:
        members = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    link = members.get(PREVIOUS) if isinstance(members, dict) else None
    return link if isinstance(link, str) else ""


def _is_cut(line: bytes) -> bool:
    """Return whether a line is only the beginning of a JSON object."""
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        is_whole = error.msg == "Extra data"
        return not is_whole and (error.pos >= len(line) - 1 or error.msg.startswith("Unterminated"))
    except (ValueError, RecursionError):
        pass
    return False


def _protocol(study: StudyFolder) -> Iterator[AuditFinding]:
    ledger = study.ledger
    if ledger.opened is None:
        if ledger.people:
            yield AuditFinding("not_opened", "People are in the log, but the study was never opened.")
        return
    for amendment in ledger.study.all(Amended):
        yield AuditFinding(
            "amended", f"The protocol was amended: {amendment.why or 'no reason is given'}.", note=True
        )
    if missing := set(ledger.opened.tasks) - study.tasks.keys():
        yield AuditFinding(
            "tasks_missing",
            f"{plural(len(missing), 'task')} of the opened study can't be found here,"
            f" such as {min(missing)[:12]}.",
        )
    elif ledger.protocol != study.protocol:
        yield AuditFinding(
            "protocol_changed",
            f"The study's declaration, texts or tasks are not those in force: their hash is"
            f" {study.protocol[:12]}, but the log has {ledger.protocol[:12]}.",
            "study.toml",
        )


def _plans(study: StudyFolder) -> Iterator[AuditFinding]:
    """Derive each plan again from the lines that its planner had read, and yield a finding if it differs.

    Plans that can't be derived again and second plans also yield findings.
    """
    here, gone = study.basis(), {log for erased in study.ledger.erased.values() for log in erased.logs}
    seen = set[tuple[str, int]]()
    for code, who in study.ledger.people.items():
        for plan in who.facts.all(Planned):
            place = f"The plan of {code} ({plan.op[:8]})"
            if (code, plan.slot) in seen:
                yield AuditFinding("second_plan", f"{place} is a duplicate: the first one counts.", note=True)
            seen.add((code, plan.slot))
            missing = {log: lines for log, lines in plan.basis.items() if here.get(log, 0) < lines}
            is_kept = is_covered(missing, plan.basis, study.ledger.erased.values())
            if missing.keys() - gone:
                yield AuditFinding(
                    "log_cut",
                    f"{place} was made from lines of the log that are missing here:"
                    f" {', '.join(sorted(missing))}.",
                )
            elif missing and not is_kept:
                yield AuditFinding(
                    "basis_erased",
                    f"{place} depends on people who were erased, so it can't be derived again.",
                    note=True,
                )
            elif plan.protocol != study.protocol:
                yield AuditFinding(
                    "earlier_protocol",
                    f"{place} was made under a protocol that is no longer in force.",
                    note=True,
                )
            elif _plan_again(study, plan, code) != plan.assignments:
                yield AuditFinding("plan_differs", f"{place} is not the one that follows from the log.")


def _plan_again(study: StudyFolder, plan: Planned, code: str) -> tuple[tuple[str, str, str, int], ...]:
    return _rows(plan_tasks(study.study, study.tasks, _ledger_of(study, plan), code))


def _ledger_of(study: StudyFolder, plan: Planned) -> Ledger:
    """Return the ledger that a planner had read.

    It excludes the plan itself, which a manipulated basis could include.
    """
    erased = study.ledger.erased
    kept = {who for who, fact in erased.items() if fact.covered}
    known = (
        one
        for one in study.store.operations_at(plan.basis)
        # An old copy may have restored an erased person's lines, which the record of the erasure replaces.
        if one.op != plan.op and person_sha256(name_in(one.reviewer)) not in kept
    )
    return Ledger((*known, *residual_operations(erased.values(), plan.basis)))


def _rows(assignments: Iterable[Assignment]) -> tuple[tuple[str, str, str, int], ...]:
    return tuple((given.id, given.task, given.condition, given.position) for given in assignments)


def _grounds(study: StudyFolder) -> Iterator[AuditFinding]:
    """Yield findings on attempts without consent or assignment, and on forms answered more than once."""
    for code, who in study.ledger.people.items():
        given = {assignment.id for assignment in who.assignments} | _trainings(study, who)
        for assignment in who.begun.keys() - given:
            yield AuditFinding("not_planned", f"{code} has begun {assignment}, which no plan assigns.")
        if who.begun and who.consent is None:
            yield AuditFinding("no_consent", f"{code} has begun an attempt, but the log contains no consent.")
        for (form, assignment), times in Counter(
            (a.questionnaire, a.assignment) for a in who.facts.all(Answers)
        ).items():
            if times > 1:
                of = f" of {assignment}" if assignment else ""
                sentence = f"{code} has answered the form {form!r}{of} {times} times: the last answers count."
                yield AuditFinding("answered_again", sentence, note=True)


def _steps(study: StudyFolder) -> Iterator[AuditFinding]:
    """Replay each person's steps, and yield a finding for each step that is missing before a later one."""
    if study.ledger.opened is None or study.ledger.protocol != study.protocol:
        return
    for code, who in study.ledger.people.items():
        for found in missing_steps(study.study, study.tasks, study.ledger, who):
            yield AuditFinding(
                "step_missing",
                f"{code}: the log contains {found.later}, but not {found.missing}, which comes before it.",
                note=not found.certain,
            )


def _trainings(study: StudyFolder, who: Person) -> set[str]:
    """Return all possible assignment ids of a person's attempts at training tasks."""
    known = training_tasks(study.study, study.tasks)
    return {
        assignment_id(study.study.id, who.code, task, TRAINING, number + again * len(known))
        for number, task in enumerate(known, 1)
        for again in range(len(who.begun) + 1)
    }


def _journals(study: StudyFolder) -> Iterator[AuditFinding]:
    ledger = study.ledger
    ends = {end.attempt: (end, code) for code, who in ledger.people.items() for end in who.finished.values()}
    begun = {
        fact.attempt: (code, name)
        for code, who in ledger.people.items()
        for name, facts in who.begun.items()
        for fact in facts
    }
    seen = set[str]()
    for found in study.attempts():
        seen.add(found.id)
        where = f"attempts/{found.folder.name}"
        try:
            data = read_regular(found.journal, links=False)
        except OSError as error:
            words = f"The journal of attempt {found.id} can't be read: {cause(error)}."
            yield AuditFinding("journal_broken", words, where)
            continue
        yield from _journal(found, data, where)
        if CONFLICT in found.folder.name:
            yield AuditFinding(
                "publish_conflict",
                f"Attempt {found.id} has two journals, and neither is the beginning of the other.",
                where,
            )
        header = header_of(data)
        if header is None:
            continue
        yield from _header(study, found.id, header, begun.get(found.id), where)
        end, _ = ends.get(found.id, (None, ""))
        if end is not None and end.head and end.head not in _line_hashes(data):
            yield AuditFinding(
                "head_differs",
                f"The last line of the journal of attempt {found.id} is not the one in the log.",
                where,
            )
    for identity, (_, code) in ends.items():
        if identity not in seen:
            yield AuditFinding(
                "not_published",
                f"Attempt {identity} of {code} has ended, but its journal is not here: run `gistpoint"
                " study sync` on the machine where it was made.",
                note=True,
            )


def _header(
    study: StudyFolder, identity: str, header: AttemptStarted, begun: tuple[str, str] | None, where: str
) -> Iterator[AuditFinding]:
    """Yield a finding for each difference between an attempt's header and the study.

    `begun` is the attempt's person and assignment in the log, if any.
    """
    own = (header.participant or "", header.assignment or "")
    if header.study != study.study.id:
        yield AuditFinding("wrong_study", f"Attempt {identity} belongs to the study {header.study!r}.", where)
    elif begun is not None and begun != own:
        yield AuditFinding(
            "wrong_attempt",
            f"Attempt {identity} does not belong to the person and assignment that the log names.",
            where,
        )
    elif begun is None and header.assignment:
        yield AuditFinding("not_in_log", f"The log does not record that attempt {identity} was begun.", where)
    shown = header.gist_help_sha256 or ""
    if shown and shown != read_help(study.root, header.task_id).sha256:
        yield AuditFinding(
            "help_differs",
            f"Attempt {identity} was shown a gist that is no longer its task's.",
            where,
        )


def _journal(found: PublishedAttempt, data: bytes, where: str) -> Iterator[AuditFinding]:
    content = read_journal(found.journal)
    if content.fault:
        yield AuditFinding(
            "journal_broken", f"The journal of attempt {found.id} is broken. {content.fault}", where
        )
    else:
        for exchange in wrong_contexts(content.events):
            yield AuditFinding(
                "context_differs",
                f"In attempt {found.id}, message {exchange} to the assistant is not the one that follows from"
                " the journal.",
                where,
            )
    if not data.endswith(b"\n"):
        yield AuditFinding(
            "journal_broken", f"The journal of attempt {found.id} ends in the middle of a line.", where
        )
    note = read_note(found.folder)
    if note is None:
        yield AuditFinding("note_missing", f"The published.json of attempt {found.id} can't be read.", where)
    elif len(data) < note.bytes:
        yield AuditFinding("journal_cut", f"The journal of attempt {found.id} is shorter than before.", where)
    elif head_at(data, note.bytes) != note.head:
        yield AuditFinding(
            "journal_broken", f"The journal of attempt {found.id} is not the one that was published.", where
        )
    elif (header := header_of(data)) is not None and name_in(note.writer) != header.participant:
        yield AuditFinding("wrong_writer", f"Attempt {found.id} was not published by its participant.", where)


def _line_hashes(journal: bytes) -> set[str]:
    return {line_hash(line) for line in journal.splitlines()}


def _erased(study: StudyFolder) -> Iterator[AuditFinding]:
    for code, who in study.ledger.people.items():
        if who.withdrawn is not None and who.withdrawn.data == ERASE:
            yield AuditFinding(
                "erase_pending",
                f"{code} asked for everything to be deleted: `gistpoint study sync` deletes it.",
            )
    erased = study.ledger.erased.keys()
    for path in leftovers(study.root, erased).paths:
        where = path.relative_to(study.root).as_posix()
        yield AuditFinding(
            "erased_leftover",
            f"{where} belongs to a person who was erased: `gistpoint study sync` deletes it.",
            where,
        )
    for path in local_leftovers(study.local, study.study.id, erased):
        yield AuditFinding(
            "erased_leftover",
            f"Attempt {path.name} on this machine belongs to a person who was erased: `gistpoint study"
            " sync` deletes it.",
        )
