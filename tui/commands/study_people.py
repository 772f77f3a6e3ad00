"""`gistpoint study`: participants who join and leave, erased data, and audits of the folder."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from gistpoint.core.locations import path_of
from gistpoint.core.requests import Request
from gistpoint.core.study.declaration import BonusFor
from gistpoint.core.study.operations import StudyError
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.consenting import copy_for
from gistpoint.sessions.studies.course import outcomes_hidden
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.lateness import return_late
from gistpoint.sessions.studies.loading import rows_of_people
from gistpoint.sessions.studies.paying import payments, payments_csv
from gistpoint.sessions.studies.people import (
    EnrolPeople,
    ReturnAssignment,
    Withdrawal,
    WithdrawPerson,
    enrol_people,
    erase_people,
    people_expired,
    return_assignment,
    withdraw_person,
)
from gistpoint.sessions.studies.pseudonyms import PRIVATE
from gistpoint.sessions.studies.public_audit import audit_public
from gistpoint.sessions.studies.recruiting import RECRUITS, Recruit, recruits_of
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import argument, option
from gistpoint.tui.commands.output import print_json, print_table, print_text, write_whole
from gistpoint.tui.commands.studies import StudyCommand
from gistpoint.tui.study_opening import is_shared


def enrol(study: StudyFolder, request: EnrolPeople, as_json: bool) -> int:
    """Enrol one participant or several, and return the exit code.

    Raises `StudyError` if they can't be enrolled. It is also raised if they were enrolled, but their codes
    can't be printed: the hint then names the command that lists the codes.
    """
    people = enrol_people(study, request)
    try:
        _print_people(study, request, people, as_json=as_json)
        sys.stdout.flush()
    except OSError as error:
        raise StudyError(
            f"The codes of {plural(len(people), 'enrolled person', 'enrolled people')} could not be printed:"
            f" {error.strerror}.",
            hint=f"`gistpoint study progress {study.named} --json` lists all who have not begun.",
        ) from error
    return DONE


def _print_people(
    study: StudyFolder, request: EnrolPeople, people: Mapping[str, Recruit], *, as_json: bool
) -> None:
    if as_json:
        values = {
            "id": study.study.id,
            "codes": list(people),
            "stratum": request.stratum,
            "people": [
                {"code": code, "external": one.external, "stratum": one.stratum}
                for code, one in people.items()
            ],
        }
        print_json("gistpoint.study-enrol/1", values)
        return
    for code, one in people.items():
        named = f"{one.external} is {code}" if one.external else code
        print_text(f"{named}: gistpoint study join {study.named} --code {code}")
    if any(one.external for one in people.values()):
        print_text(f"Who is who stays in {PRIVATE}/{RECRUITS} of this copy of the folder: never share it.")
    if is_shared(study):
        print_text(f"On other machines of the team, instead of the folder: {study.study.id}")


def returning(study: StudyFolder, request: ReturnAssignment, as_json: bool) -> int:
    """Take back an assignment, or all that have timed out, so that the tasks can be assigned to others.

    Return the exit code. Raises `StudyError` if the assignment can't be taken back, if those that have timed
    out are requested but the study sets no time, and if both are requested.
    """
    if request.late and (request.assignment or request.why):
        raise StudyError(
            "--late returns every assignment that has timed out, and gives the reason itself.",
            hint="Leave out --late to return one assignment, or leave out its id and --why.",
        )
    if request.late:
        return _return_late(study, as_json)
    assignment = return_assignment(study, request)
    if as_json:
        print_json("gistpoint.study-return/1", {"assignment": assignment.id, "code": assignment.person})
    else:
        who, task = assignment.person, assignment.task[:12]
        print_text(f"{assignment.id} of {who} was returned: {task} can be assigned to others.")
    return DONE


def _return_late(study: StudyFolder, as_json: bool) -> int:
    hours = study.study.design.return_after_hours
    if not hours:
        raise StudyError(
            "study.toml sets no time: design.return_after_hours is 0.",
            hint=f"One assignment: gistpoint study return {study.named} ASSIGNMENT --why '...'",
        )
    found = study.exclusively(lambda: return_late(study))
    if as_json:
        rows = [{"assignment": one.id, "code": one.person} for one in found]
        print_json("gistpoint.study-return-late/1", {"hours": hours, "returned": rows})
        return DONE
    for one in found:
        print_text(f"{one.id} of {one.person} was returned: {one.task[:12]} can be assigned to others.")
    print_text(f"Returned: {plural(len(found), 'assignment')} without a record for {plural(hours, 'hour')}")
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class PayPeople(Request):
    """A request for the table of payments, printed or written to a file."""

    output: str | None = None


def _require_one_form(output: str | None, *, as_json: bool) -> None:
    """Raise `StudyError` if both a file and JSON are requested."""
    if as_json and output is not None:
        raise StudyError("JSON is printed, and not written to a file.", hint="Leave out --json, or -o.")


def pay(study: StudyFolder, request: PayPeople, as_json: bool) -> int:
    """Print or write the minutes, the completion and the pay of each participant, without results.

    Return the exit code. Raises `StudyError` if both a file and JSON are requested.
    """
    _require_one_form(request.output, as_json=as_json)
    hidden = outcomes_hidden(study, unblind=False)
    rows, problems = rows_of_people(study)
    found = payments(study.study, study.ledger, rows, recruits_of(study.root), hidden=hidden)
    for problem in problems:
        print(f"gistpoint: {visible_line(problem)}", file=sys.stderr)
    waits = hidden and study.study.participants.pay.bonus_for is BonusFor.SOLVED
    if waits:
        print("gistpoint: The bonus depends on results, which are hidden until the close.", file=sys.stderr)
    if as_json:
        values = {"id": study.study.id, "currency": study.study.participants.pay.currency}
        print_json("gistpoint.study-pay/1", {**values, "people": [asdict(one) for one in found]})
    elif request.output is not None:
        write_whole(path_of(request.output), [payments_csv(found).encode()])
        print_text(f"{request.output}: {plural(len(found), 'person', 'people')}")
    else:
        print_text(payments_csv(found).replace("\r\n", "\n").rstrip())
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyConsent(Request):
    """A request for a copy of the consent: as a person agreed to it, or the current text."""

    code: str = ""
    output: str | None = None


def consent(study: StudyFolder, request: CopyConsent, as_json: bool) -> int:
    """Print a copy of the consent, or write it to a file. Return the exit code.

    Raises `StudyError` if both a file and JSON are requested.
    """
    _require_one_form(request.output, as_json=as_json)
    text = copy_for(study, request.code)
    if as_json:
        values = {"id": study.study.id, "version": study.study.texts.consent_version, "text": text}
        print_json("gistpoint.study-consent/1", values)
    elif request.output is not None:
        write_whole(path_of(request.output), [text.encode()])
        print_text(f"{request.output}: the consent of {study.study.id}")
    else:
        print_text(text.rstrip())
    return DONE


def withdraw(study: StudyFolder, request: WithdrawPerson, as_json: bool) -> int:
    """Record a withdrawal, and erase the data on request. Return the exit code."""
    left = withdraw_person(study, request)
    if as_json:
        values = {"data": left.data, "deleted": asdict(left.erasure) if left.erasure else None}
        print_json("gistpoint.study-withdraw/1", values)
    else:
        for sentence in _withdrawal_words(left, study.named):
            print_text(sentence)
    return DONE


def _withdrawal_words(left: Withdrawal, typed: str) -> list[str]:
    """Return sentences on what happened to somebody's data, and where copies may remain."""
    if left.erasure is None:
        return [f"{left.code} has withdrawn. Their data so far are kept."]
    sentences = [
        f"Deleted: files of the log: {len(left.erasure.logs)}, attempts: {len(left.erasure.attempts)}."
    ]
    if left.erasure.tasks:
        sentences.append(
            f"Also deleted: {plural(len(left.erasure.tasks), 'task')} made from failed submissions. Archives"
            " and studies may contain copies."
        )
    if left.away:
        sentences.append(
            f"Not yet on the store. {left.away} `gistpoint study sync {typed}` deletes it there."
        )
    if left.named:
        sentences.append("The code is still named in study.toml, in participants.team.")
    for export in left.exports:
        sentences.append(
            f"An export in {', '.join(export.to)} contains copies. Make it again, and delete the old one."
        )
    if left.reported:
        sentences.append(f"The report was made before: gistpoint study report {typed} makes it again.")
    return [*sentences, f"On every other machine: gistpoint study sync {typed}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseExpired(Request):
    """A request to erase the data of people whose retention period has ended; `dry_run` only lists them."""

    expired: bool
    dry_run: bool = False


def erase(study: StudyFolder, request: EraseExpired, as_json: bool) -> int:
    """Erase the data of people whose retention period has ended, or list them. Return the exit code."""
    expired, days = people_expired(study), study.study.privacy.retention_days
    if not request.dry_run:
        erase_people(study, expired)
    people = plural(len(expired), "person", "people")
    if as_json:
        print_json(
            "gistpoint.study-erase/1", {"days": days, "erased": not request.dry_run, "people": len(expired)}
        )
    elif request.dry_run:
        print_text(
            f"{people}, whose last operation is older than {days} days: {', '.join(expired) or 'nobody'}"
        )
    else:
        print_text(f"Erased: {people}, whose last operation is older than {days} days")
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStudy(Request):
    """A request to synchronise a study's folder, after merging another copy of it if one is given."""

    other: str | None = None
    """The folder of the copy; None for none."""


def sync(study: StudyFolder, request: SyncStudy, as_json: bool) -> int:
    """Update a study's folder with this machine's attempts, after merging another copy if one is given.

    Return the exit code.
    """
    done = synchronise(study, path_of(request.other) if request.other else None)
    if as_json:
        print_json("gistpoint.study-sync/1", asdict(done))
        return DONE
    published = {str(what): count for what, count in done.published.items()}
    taken = {str(what): count for what, count in done.taken.items()}
    rows = [["attempts on this machine", what, str(count)] for what, count in sorted(published.items())]
    rows += [["attempts of the other copy", what, str(count)] for what, count in sorted(taken.items())]
    if request.other:
        rows.append(["lines of the other copy", "new", str(done.lines)])
    if done.erased.any:
        rows.append(
            [
                "people who were erased",
                "deleted again",
                str(len(done.erased.logs) + len(done.erased.attempts) + len(done.erased.tasks)),
            ]
        )
    print_table(["what", "became", "number"], rows)
    for problem in done.problems:
        print_text(problem)
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStudy(Request):
    """A request to audit the folder of a study or, with `public`, an export of it."""

    public: str | None = None


def auditing(study: StudyFolder, request: AuditStudy, as_json: bool) -> int:
    """Print what is wrong with a study's folder or export. Return 1 if anything is."""
    found = list(audit(study) if request.public is None else audit_public(study, path_of(request.public)))
    wrong = [finding for finding in found if not finding.note]
    verdict = f"{len(wrong)} wrong" if wrong else "clean"
    if as_json:
        rows = [asdict(finding) for finding in found]
        print_json("gistpoint.study-audit/1", {"id": study.study.id, "clean": not wrong, "findings": rows})
        return NEGATIVE if wrong else DONE
    for finding in found:
        print_text(f"{'note' if finding.note else 'WRONG':>8}  {finding.name}: {finding.sentence}")
    if request.public is not None:
        print_text(f"{request.public}: {verdict}")
    else:
        people = plural(len(study.ledger.people), "person", "people")
        journals = plural(sum(1 for _ in study.attempts()), "journal")
        files = plural(len(study.basis()), "file")
        print_text(f"{study.study.id}: {verdict}; {people}, {journals}, {files} of the log")
    return NEGATIVE if wrong else DONE


ENROL = StudyCommand(
    EnrolPeople,
    enrol,
    {
        "code": option("a code of your choice, never a name; otherwise six random characters", metavar="C"),
        "number": option("this many participants, with random codes", metavar="N"),
        "table": option(
            "a CSV file with the columns external (a recruiter's identifier, which gets a random code) or"
            " code, and optionally stratum and role",
            "--from",
            metavar="CSV",
        ),
        "stratum": option("one of participants.strata in study.toml", metavar="S"),
        "role": option(
            "only `baseline` counts in estimates; `author` is for people who know the tasks (default: "
            "baseline, and author for the codes in participants.team)"
        ),
    },
    one_of=(("code", "number", "table"),),
    about=(
        "Enrols participants and prints the line that each of them types. The code is all that the"
        " study knows about a person: keep the list of who has which code elsewhere, or nowhere."
    ),
)
RETURN = StudyCommand(
    ReturnAssignment,
    returning,
    {
        "assignment": argument("ASSIGNMENT", "the assignment's id, or the beginning of it"),
        "why": option("the reason, for the report", metavar="WORDS"),
        "late": option("all open assignments of people without a record for design.return_after_hours"),
    },
    about=(
        "Frees an assignment that its person can't finish, for example because the machine broke down. The"
        " task counts as seen by this person, and can be assigned to others again."
    ),
)
PAY = StudyCommand(
    PayPeople,
    pay,
    {"output": option("write the table to this file", "-o", "--output", metavar="FILE")},
    about=(
        "Writes a row for each participant: sittings, minutes, tasks ended, completion, and the amounts that"
        " participants.pay in study.toml declares. It contains no results: a bonus for solved tasks is empty"
        " until the study is closed."
    ),
)
CONSENT = StudyCommand(
    CopyConsent,
    consent,
    {
        "code": option("the copy of the person with this code, with what they ticked and when", metavar="C"),
        "output": option("write it to this file", "-o", "--output", metavar="FILE"),
    },
    about=(
        "Prints the consent with its version, the items and what it states on data, for a participant to"
        " keep or for an ethics board to read."
    ),
)
WITHDRAW = StudyCommand(
    WithdrawPerson,
    withdraw,
    {
        "code": argument("CODE", "the participant's code"),
        "keep": option("keep and analyse the data so far"),
        "erase": option("delete the data so far"),
        "words": option("the person's own words, if they want them kept", metavar="WORDS"),
    },
    one_of=(("keep", "erase"),),
    required=True,
    about=(
        "Ends somebody's participation in the study. With --erase, all data of the person are deleted from"
        " this folder and this machine, at once and whenever they reappear; only how the attempts"
        " ended still counts."
    ),
)
ERASE = StudyCommand(
    EraseExpired,
    erase,
    {
        "expired": option("the people whose retention has ended"),
        "dry_run": option("only list the people"),
    },
    about=(
        "Erases everybody whose last operation is older than privacy.retention_days in study.toml, as"
        " `withdraw --erase` does. Estimates change, so make the report first."
    ),
)
SYNC = StudyCommand(
    SyncStudy,
    sync,
    {"other": option("another copy of the study's folder", "--from", metavar="FOLDER")},
    about=(
        "Publishes this machine's attempts of the study into its folder, and deletes data of erased"
        " people that have reappeared. With --from, it first merges another copy of the folder. It"
        " can be repeated."
    ),
)
AUDIT = StudyCommand(
    AuditStudy,
    auditing,
    {
        "public": option(
            "check the output of `study export --public -o OUT` instead: it must not contain any"
            " code, writer, attempt id or free text of the study",
            metavar="OUT",
        )
    },
    about=(
        "Derives each plan again from the data that its planner had read, and checks every line of the log,"
        " every journal, its authors, and that nothing is left of people who were erased. The exit"
        " code is 1 if something is wrong; notes are not faults."
    ),
)
