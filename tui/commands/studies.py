"""`gistpoint study`: making a study, checking it, opening, amending and closing it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.soundness import unwritten_texts
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import plural
from gistpoint.object_graph import build_entrypoint_runner
from gistpoint.sandbox.ladder import choose
from gistpoint.sessions.studies.checking import check_study
from gistpoint.sessions.studies.course import (
    AmendStudy,
    NewStudy,
    amend_study,
    close_study,
    new_study,
    open_for_people,
    preregistration,
)
from gistpoint.tui.commands.arguments import JSON
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import Face, Words, argument, option
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.study_opening import open_study, share_again

STUDY = argument("DIR", "the study's folder, or its name on the team's store")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyShown(Request):
    """A study by its folder or name, and how something of it is printed."""

    study: str
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudyShown(StudyShown):
    """The folder of a study that is made; `study` is the folder."""

    new: NewStudy


def new(asked: NewStudyShown) -> int:
    """Make the folder of a study."""
    new_study(path_of(asked.study), Locations.of_user(), asked.new)
    study = open_study(asked.study)
    if asked.json:
        print_json("gistpoint.study-new/1", {"id": study.study.id, "folder": asked.study, "tasks": list(study.tasks)})
        return DONE
    print_text(f"{study.study.id}: {STUDY_FILE}, texts and {plural(len(study.tasks), 'task')} in {asked.study}")
    print_text(f"Edit {STUDY_FILE} and texts/, then: gistpoint study check {asked.study}")
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCheck(StudyShown):
    """Which study is checked, or prepared for registration."""

    prereg: bool = False


def check(asked: StudyCheck) -> int:
    """Print the finding of each check; return 1 if one failed."""
    study = open_study(asked.study)
    if asked.prereg:
        print_text(preregistration(study))
        return DONE
    findings: list[CheckFinding] = []

    def make(task: Task) -> HelpGist:
        from gistpoint.core.assist.making_help import make_help

        with long_work(quiet=asked.json, kept="The study is as it was.") as work:
            runner = build_entrypoint_runner(IsolationChoice(sandbox=study.study.sandbox.demand or None))
            return make_help(task, read_answer(task), runner, time.monotonic, run=work.run)

    for finding in check_study(study, lambda named: choose(named, consented=False).name, make):
        findings.append(finding)
        if not asked.json:
            word = "reduced" if finding.reduced else "ok" if finding.passed else "FAILED"
            print_text(f"{word:>8}  {finding.name}: {finding.detail}")
    good = all(finding.passed for finding in findings)
    if asked.json:
        rows = [asdict(finding) for finding in findings]
        print_json("gistpoint.study-check/1", {"id": study.study.id, "passed": good, "checks": rows})
    elif good:
        opened = study.ledger.opened is not None
        print_text(f"{study.study.id}: sound" + ("" if opened else f". Next: gistpoint study open {asked.study}"))
    else:
        print_text(f"{study.study.id}: not sound")
    return DONE if good else NEGATIVE


def opening(asked: StudyShown) -> int:
    """Open a study for participants."""
    study = open_study(asked.study)
    open_for_people(study)
    if asked.json:
        print_json("gistpoint.study-open/1", {"id": study.study.id, "protocol": study.protocol})
        return DONE
    print_text(f"{study.study.id} is open, with protocol {study.protocol[:12]} and {plural(len(study.tasks), 'task')}")
    if not study.study.simulated:
        if unwritten := unwritten_texts(study.study):
            print_text(f"Still to be written, before anybody else takes part: {', '.join(unwritten)}")
            print_text(f"Next, to try it yourself: gistpoint study enrol {asked.study} --code ME --role author")
        else:
            print_text(f"Next: gistpoint study enrol {asked.study} --number 10")
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAmendment(StudyShown):
    """Which study is amended, and why."""

    amendment: AmendStudy


def amend(asked: StudyAmendment) -> int:
    """Put the declaration as it is now in force."""
    study = open_study(asked.study)
    before = amend_study(study, asked.amendment)
    share_again(study)
    if asked.json:
        print_json("gistpoint.study-amend/1", {"id": study.study.id, "before": before, "protocol": study.protocol})
    else:
        print_text(f"{study.study.id}: protocol {before[:12]} is now {study.protocol[:12]}. Consent is asked again.")
    return DONE


def close(asked: StudyShown) -> int:
    """Close a study."""
    study = open_study(asked.study)
    close_study(study)
    if asked.json:
        print_json("gistpoint.study-close/1", {"id": study.study.id})
    else:
        print_text(f"{study.study.id} is closed. Next: gistpoint study report {asked.study}")
    return DONE


NEW = Face(
    NewStudyShown,
    new,
    Words(
        {
            "study": argument("DIR", "the folder to make; its name becomes the study's id"),
            "new": Words(
                {
                    "tasks": option(
                        "--tasks",
                        metavar="SET",
                        help="copy these tasks: a folder of them, a list, a task; `demo` names those that come with "
                        "gistpoint",
                    ),
                    "template": option(
                        "--template",
                        help="one condition; with and without a chat assistant; gists with and without running code; "
                        "three budgets (default: {default})",
                    ),
                }
            ),
            "json": JSON,
        }
    ),
    about="Writes a new folder with study.toml, texts for participants and the tasks. Edit the declaration and the "
    "texts, then `gistpoint study check` and `gistpoint study open`.",
)
CHECK = Face(
    StudyCheck,
    check,
    Words(
        {
            "study": STUDY,
            "json": JSON,
            "prereg": option(
                "--prereg",
                help="check nothing: print the sections of a pre-registration (OSF) as Markdown, before the study is "
                "opened",
            ),
        },
        one_of=(("json", "prereg"),),
    ),
    about="Checks the declaration, the texts, the tasks with their stored evidence, the isolation of this machine, and "
    "how evenly 100 enrolments meet the tasks. Exit code 1 if something is not as it should be.",
)
OPEN = Face(
    StudyShown,
    opening,
    Words({"study": STUDY, "json": JSON}),
    about="Freezes the declaration: its hash is written into the log, and with every attempt. Later changes are told "
    "by `gistpoint study amend`.",
)
AMEND = Face(
    StudyAmendment,
    amend,
    Words(
        {
            "study": STUDY,
            "amendment": Words({"why": option("--why", metavar="WORDS", help="the reason, for the report")}),
            "json": JSON,
        }
    ),
    about="Puts a changed declaration in force. Participants are asked for their consent again, and reports name "
    "the amendment with its reason.",
)
CLOSE = Face(
    StudyShown,
    close,
    Words({"study": STUDY, "json": JSON}),
    about="Ends a study: nobody goes on with it, and the organiser's screens show results.",
)
