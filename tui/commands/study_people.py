"""`gistpoint study`: who takes part, who leaves, what is deleted, and whether the folder is as it was written."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from gistpoint.core.attempts.identity import Role
from gistpoint.core.locations import path_of
from gistpoint.core.study.ledger import Ledger, Person, person_sha256
from gistpoint.core.study.operations import (
    ERASE,
    KEEP,
    Enrolled,
    Exported,
    Returned,
    StudyError,
    StudyOperationKind,
    Withdrawn,
    person,
)
from gistpoint.core.study.ports import Erasure
from gistpoint.core.study.soundness import unwritten_texts
from gistpoint.core.text import plural
from gistpoint.sessions.machine import crockford
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.exposures import record_exposures
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.public_audit import audit_public
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.sessions.studies.writers import checked_code
from gistpoint.tui.commands.arguments import counted
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_table, print_text
from gistpoint.tui.commands.studies import require_opened
from gistpoint.tui.study_opening import FOLDER_HELP, is_shared, open_study

ROLES = (Role.BASELINE.value, Role.AUTHOR.value, Role.QA.value)
_DAY_MS = 86_400_000


def enrol_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study enrol`."""
    parser.description = (
        "Enrols participants and prints the line that each of them types. A code is all that is known of a person: "
        "keep the list of who has which code elsewhere, or nowhere."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--code", metavar="C", help="a code of your own, never a name; else six random characters")
    who.add_argument("--number", metavar="N", type=counted, default=1, help="so many participants, with random codes")
    parser.add_argument("--stratum", metavar="S", default="", help="one of participants.strata in study.toml")
    parser.add_argument(
        "--role",
        choices=ROLES,
        default=None,
        help="only `baseline` counts in estimates; `author` is for who knows the tasks (default: baseline, and author "
        "for the codes in participants.team)",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    return enrol


def enrol(options: argparse.Namespace) -> int:
    """Enrol one participant or several."""
    study = open_study(options.dir)
    study.require_people()
    require_opened(study, options.dir)
    if study.ledger.closed:
        raise StudyError(f"{study.study.id} is closed: nobody is enrolled any more.")
    _check_stratum(study, options.stratum)
    codes = [_free_code(study, options.code)] if options.code else _random_codes(study, options.number)
    roles = {code: options.role or _role_of(study, code) for code in codes}
    if Role.BASELINE.value in roles.values() and (unwritten := unwritten_texts(study.study)):
        raise StudyError(
            f"Still to be written, before anybody else takes part: {', '.join(unwritten)}.",
            hint=f"Write them, then: gistpoint study amend {options.dir} --why 'texts'. "
            "With --role author you can try the study yourself.",
        )
    for code, role in roles.items():
        study.record(code, person(code), StudyOperationKind.ENROLLED, Enrolled(stratum=options.stratum, role=role))
        record_exposures(study, code)
    if options.json:
        print_json("gistpoint.study-enrol/1", {"id": study.study.id, "codes": codes, "stratum": options.stratum})
    else:
        for code in codes:
            print_text(f"{code}: gistpoint study join {options.dir} --code {code}")
        if is_shared(study):
            print_text(f"On other machines of the team, in place of the folder: {study.study.id}")
    return DONE


def _role_of(study: StudyFolder, code: str) -> str:
    return Role.AUTHOR.value if code in study.study.participants.team else Role.BASELINE.value


def _check_stratum(study: StudyFolder, given: str) -> None:
    strata = study.study.participants.strata
    if given not in (strata or ("",)):
        known = f"They are: {', '.join(strata)}." if strata else "study.toml names none in participants.strata."
        raise StudyError(f"{given!r} is no stratum of the study." if given else "Say the stratum.", hint=known)


def _free_code(study: StudyFolder, code: str) -> str:
    checked_code(code)
    known = {other.lower(): other for other in study.ledger.people}
    if code.lower() in known:
        raise StudyError(
            f"{known[code.lower()]} is in the study already.",
            hint="Take a code that differs in more than capitals; who is enrolled takes part with `study join`.",
        )
    if study.ledger.is_erased(code):
        raise StudyError(
            "The person with this code was erased: the code can't be used again in this study.", hint="Take another."
        )
    return code


def _random_codes(study: StudyFolder, number: int) -> list[str]:
    found: list[str] = []
    while len(found) < number:
        code = crockford().upper()
        if code not in found and code not in study.ledger.people and not study.ledger.is_erased(code):
            found.append(code)
    return found


def return_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study return`."""
    parser.description = (
        "Frees an assignment that its person can't finish, such as one begun on a machine that broke. The task "
        "counts as seen by this person, and is given to others again."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("assignment", metavar="ASSIGNMENT", help="its id, or the beginning of it")
    parser.add_argument("--why", required=True, metavar="WORDS", help="the reason, for the report")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return returning


def returning(options: argparse.Namespace) -> int:
    """Return an assignment."""
    study = open_study(options.dir)
    given = [found for found in study.ledger.assignments() if found.id.startswith(options.assignment)]
    if len(given) != 1 or not options.assignment:
        raise StudyError(
            f"{options.assignment!r} is the beginning of {len(given)} assignments.",
            hint=f"`gistpoint study progress {options.dir}` shows what is at work.",
        )
    if not options.why.strip():
        raise StudyError("A return needs a reason.", hint="--why 'the machine broke'")
    assignment, who = given[0], study.ledger.person(given[0].person)
    if assignment.id in who.returned:
        raise StudyError(f"Assignment {assignment.id} is returned already.")
    attempts = {begun.attempt for begun in who.begun.get(assignment.id, ())}
    if ended := attempts & who.finished.keys():
        raise StudyError(
            f"Assignment {assignment.id} has an end: attempt {min(ended)}.",
            hint=f"`gistpoint study exclude {options.dir} {min(ended)} --why '...'` leaves it out of the estimates.",
        )
    data = Returned(assignment=assignment.id, why=options.why.strip())
    study.record(who.code, person(who.code), StudyOperationKind.RETURNED, data)
    if options.json:
        print_json("gistpoint.study-return/1", {"assignment": assignment.id, "code": who.code})
    else:
        print_text(f"{assignment.id} of {who.code} is returned: {assignment.task[:12]} can be given to others.")
    return DONE


def withdraw_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study withdraw`."""
    parser.description = (
        "Ends somebody's part in the study. With --erase all that there is of the person is deleted from this folder "
        "and this machine, at once and whenever it turns up again; only how the attempts ended is counted on."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("code", metavar="CODE", help="the participant's code")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--keep", action="store_true", help="what there is so far is kept and analysed")
    what.add_argument("--erase", action="store_true", help="what there is so far is deleted")
    parser.add_argument("--words", default="", metavar="WORDS", help="what the person said, if they want it kept")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return withdraw


def withdraw(options: argparse.Namespace) -> int:
    """Record that somebody withdraws, and erase on request."""
    study = open_study(options.dir)
    who = _known(study, options.code)
    data = Withdrawn(data=ERASE if options.erase else KEEP, words="" if options.erase else options.words)
    study.record(who.code, person(who.code), StudyOperationKind.WITHDRAWN, data)
    erasure = study.erase(who.code) if options.erase else None
    if options.json:
        deleted = asdict(erasure) if erasure else None
        print_json("gistpoint.study-withdraw/1", {"data": data.data, "deleted": deleted})
    elif erasure is None:
        print_text(f"{who.code} has withdrawn. What there is so far is kept.")
    else:
        print_text(_deleted(erasure))
        if study.store.away:
            print_text(
                f"Not yet on the store. {study.store.away} `gistpoint study sync {options.dir}` deletes it there."
            )
        _tell_what_stays(study, who.code, options.dir)
    return DONE


def _known(study: StudyFolder, code: str) -> Person:
    who = study.ledger.people.get(code)
    if who is None:
        erased = study.ledger.is_erased(code)
        raise StudyError(
            "The person with this code was erased already."
            if erased
            else f"Nobody in the study has the code {code!r}.",
            hint="`gistpoint study sync` deletes what has turned up again." if erased else "Codes are case-sensitive.",
        )
    return who


def _deleted(erasure: Erasure) -> str:
    return f"Deleted: files of the log: {len(erasure.logs)}, attempts: {len(erasure.attempts)}."


def _tell_what_stays(study: StudyFolder, code: str, typed: str) -> None:
    """Say where something may be left that deleting files does not reach."""
    if code in study.study.participants.team:
        print_text("The code is still named in study.toml, in participants.team.")
    for export in study.ledger.study.all(Exported):
        if person_sha256(code) in export.people:
            print_text(f"An export in {', '.join(export.to)} holds copies. Make it again, and delete the old one.")
    if (study.root / "report.html").is_file():
        print_text(f"The report was made before: gistpoint study report {typed} makes it again.")
    print_text(f"On every other machine: gistpoint study sync {typed}")


def erase_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study erase`."""
    parser.description = (
        "Erases everybody whose last operation is older than privacy.retention_days in study.toml, as `withdraw "
        "--erase` does. Estimates change: make the report before."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--expired", action="store_true", required=True, help="the people whose time is over")
    parser.add_argument("--dry-run", action="store_true", help="only say whom it would be")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return erase


def erase(options: argparse.Namespace) -> int:
    """Erase the people whose retention has ended."""
    study = open_study(options.dir)
    days = study.study.privacy.retention_days
    if not days:
        raise StudyError(
            "study.toml does not say how long data are kept: privacy.retention_days is 0.",
            hint=f"`gistpoint study withdraw {options.dir} CODE --erase` erases one person.",
        )
    expired = _expired(study.ledger, study.clock.utc_ms() - days * _DAY_MS)
    if not options.dry_run:
        for code in expired:
            study.erase(code)
    if options.json:
        print_json("gistpoint.study-erase/1", {"days": days, "erased": not options.dry_run, "people": len(expired)})
        return DONE
    people = plural(len(expired), "person", "people")
    if options.dry_run:
        print_text(f"{people}, whose last word is older than {days} days: {', '.join(expired) or 'nobody'}")
    else:
        print_text(f"Erased: {people}, whose last word is older than {days} days")
    return DONE


def _expired(ledger: Ledger, before_ms: int) -> list[str]:
    return [
        code
        for code, who in ledger.people.items()
        if max((fact.utc_ms for facts in who.facts.by_kind.values() for fact in facts), default=before_ms) < before_ms
    ]


def sync_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study sync`."""
    parser.description = (
        "Publishes this machine's attempts of the study into its folder, and deletes what has turned up again of "
        "people who were erased. With --from it first takes in another copy of the folder. It can be repeated."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--from", dest="other", metavar="FOLDER", help="another copy of the study's folder")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return sync


def sync(options: argparse.Namespace) -> int:
    """Bring a study's folder up to date."""
    study = open_study(options.dir)
    done = synchronise(study, path_of(options.other) if options.other else None)
    if options.json:
        print_json("gistpoint.study-sync/1", asdict(done))
        return DONE
    published = {str(what): count for what, count in done.published.items()}
    taken = {str(what): count for what, count in done.taken.items()}
    rows = [["attempts of this machine", what, str(count)] for what, count in sorted(published.items())]
    rows += [["attempts of the other copy", what, str(count)] for what, count in sorted(taken.items())]
    if options.other:
        rows.append(["lines of the other copy", "new", str(done.lines)])
    if done.erased.any:
        rows.append(["people who were erased", "deleted again", str(len(done.erased.logs) + len(done.erased.attempts))])
    print_table(["what", "became", "number"], rows)
    for problem in done.problems:
        print_text(problem)
    return DONE


def audit_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study audit`."""
    parser.description = (
        "Derives each plan again from what its planner had read, and checks every line of the log, every journal, "
        "who wrote what, and that nothing is left of people who were erased. Exit code 1 if something is wrong; "
        "notes are no fault."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument(
        "--public",
        metavar="OUT",
        help="check instead what `study export --public -o OUT` wrote: that no code, writer, attempt id or free text "
        "of the study is in it",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    return auditing


def auditing(options: argparse.Namespace) -> int:
    """Print what is wrong with a study's folder; return 1 if something is."""
    study = open_study(options.dir)
    found = list(audit(study) if options.public is None else audit_public(study, path_of(options.public)))
    wrong = [finding for finding in found if not finding.note]
    if options.json:
        rows = [asdict(finding) for finding in found]
        print_json("gistpoint.study-audit/1", {"id": study.study.id, "clean": not wrong, "findings": rows})
        return NEGATIVE if wrong else DONE
    for finding in found:
        print_text(f"{'note' if finding.note else 'WRONG':>8}  {finding.name}: {finding.sentence}")
    if options.public is not None:
        print_text(f"{options.public}: {f'{len(wrong)} wrong' if wrong else 'clean'}")
        return NEGATIVE if wrong else DONE
    people = plural(len(study.ledger.people), "person", "people")
    journals = plural(sum(1 for _ in study.attempts()), "journal")
    verdict = f"{len(wrong)} wrong" if wrong else "clean"
    files = plural(len(study.basis()), "file")
    print_text(f"{study.study.id}: {verdict}; {people}, {journals}, {files} of the log")
    return NEGATIVE if wrong else DONE
