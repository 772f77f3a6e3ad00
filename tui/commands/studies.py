"""`gistpoint study`: making a study, checking it, opening, amending and closing it."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict

from gistpoint import __version__
from gistpoint.core.assist.help import HelpGist
from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.study.operations import ORGANISER, STUDY, Amended, StudyError, StudyOpened, StudyOperationKind
from gistpoint.core.study.preregistration import preregistration_markdown
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.soundness import faults_with_tasks, unwritten_texts
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import plural
from gistpoint.sandbox.ladder import choose
from gistpoint.sessions.studies.checking import check_study
from gistpoint.sessions.studies.folder import StudyFolder, StudyTemplate, found
from gistpoint.sessions.tasks import TaskStore, read_set
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.object_graph import build_entrypoint_runner
from gistpoint.tui.study_opening import FOLDER_HELP, open_study, share_again

DEMO = "demo"


def new_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study new`."""
    parser.description = (
        "Writes a new folder with study.toml, texts for participants and the tasks. Edit the declaration and the "
        "texts, then `gistpoint study check` and `gistpoint study open`."
    )
    parser.add_argument("dir", metavar="DIR", help="the folder to make; its name becomes the study's id")
    parser.add_argument(
        "--tasks",
        metavar="SET",
        help="copy these tasks: a folder of them, a list, a task; `demo` names those that come with gistpoint",
    )
    parser.add_argument(
        "--template",
        choices=[template.value for template in StudyTemplate],
        default=StudyTemplate.BASELINE.value,
        help="one condition; with and without a chat assistant; gists with and without running code; three budgets "
        "(default: baseline)",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    return new


def new(options: argparse.Namespace) -> int:
    """Make the folder of a study."""
    folder, locations = path_of(options.dir), Locations.of_user()
    demo = options.tasks == DEMO
    store = TaskStore(locations.tasks, demo=locations.demo)
    selected = None if demo or options.tasks is None else read_set([options.tasks], store)
    if selected is not None and selected.problems:
        raise StudyError(f"A task of the set can't be used: {selected.problems[0]}", hint="Leave it out of the set.")
    found(folder, StudyTemplate(options.template), selected.tasks if selected else (), demo=demo)
    if demo:
        list(unpack_demo(locations.demo))
    study = open_study(options.dir)
    if options.json:
        print_json("gistpoint.study-new/1", {"id": study.study.id, "folder": options.dir, "tasks": list(study.tasks)})
        return DONE
    print_text(f"{study.study.id}: {STUDY_FILE}, texts and {plural(len(study.tasks), 'task')} in {options.dir}")
    print_text(f"Edit {STUDY_FILE} and texts/, then: gistpoint study check {options.dir}")
    return DONE


def check_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study check`."""
    parser.description = (
        "Checks the declaration, the texts, the tasks with their stored evidence, the isolation of this machine, and "
        "how evenly 100 enrolments meet the tasks. Exit code 1 if something is not as it should be."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument(
        "--prereg",
        action="store_true",
        help="check nothing: print the sections of a pre-registration (OSF) as Markdown, before the study is opened",
    )
    return check


def check(options: argparse.Namespace) -> int:
    """Print the finding of each check; return 1 if one failed."""
    study = open_study(options.dir)
    if options.prereg:
        return _print_preregistration(study, options.dir)
    findings: list[CheckFinding] = []

    def make(task: Task) -> HelpGist:
        from gistpoint.core.assist.making_help import make_help

        with long_work(quiet=getattr(options, "json", False), kept="The study is as it was.") as work:
            runner = build_entrypoint_runner(IsolationChoice(sandbox=study.study.sandbox.demand or None))
            return make_help(task, read_answer(task), runner, time.monotonic, run=work.run)

    for finding in check_study(study, lambda asked: choose(asked, consented=False).name, make):
        findings.append(finding)
        if not options.json:
            word = "reduced" if finding.reduced else "ok" if finding.passed else "FAILED"
            print_text(f"{word:>8}  {finding.name}: {finding.detail}")
    good = all(finding.passed for finding in findings)
    if options.json:
        rows = [asdict(finding) for finding in findings]
        print_json("gistpoint.study-check/1", {"id": study.study.id, "passed": good, "checks": rows})
    elif good:
        opened = study.ledger.opened is not None
        print_text(f"{study.study.id}: sound" + ("" if opened else f". Next: gistpoint study open {options.dir}"))
    else:
        print_text(f"{study.study.id}: not sound")
    return DONE if good else NEGATIVE


def _print_preregistration(study: StudyFolder, typed: str) -> int:
    if study.ledger.opened is not None:
        raise StudyError(
            f"{study.study.id} is open already: it is too late to register it.",
            hint=f"gistpoint study report {typed} writes the methods.",
        )
    print_text(preregistration_markdown(study.study, study.tasks))
    return DONE


def open_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study open`."""
    parser.description = (
        "Freezes the declaration: its hash is written into the log, and with every attempt. Later changes are told "
        "by `gistpoint study amend`."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--json", action="store_true", help="as JSON")
    return opening


def opening(options: argparse.Namespace) -> int:
    """Open a study for participants."""
    study = open_study(options.dir)
    if study.ledger.opened is not None:
        raise StudyError(
            f"{study.study.id} is open already.",
            hint=f"After a change: gistpoint study amend {options.dir} --why '...'",
        )
    _require_tasks(study, options.dir)
    data = StudyOpened(
        protocol=study.protocol,
        tasks=tuple(sorted(study.tasks)),
        version=__version__,
        exclude_on=study.study.quality.exclude_on,
    )
    study.record(ORGANISER, STUDY, StudyOperationKind.OPENED, data)
    if options.json:
        print_json("gistpoint.study-open/1", {"id": study.study.id, "protocol": study.protocol})
        return DONE
    print_text(f"{study.study.id} is open, with protocol {study.protocol[:12]} and {plural(len(study.tasks), 'task')}")
    if not study.study.simulated:
        if unwritten := unwritten_texts(study.study):
            print_text(f"Still to be written, before anybody else takes part: {', '.join(unwritten)}")
            print_text(f"Next, to try it yourself: gistpoint study enrol {options.dir} --code ME --role author")
        else:
            print_text(f"Next: gistpoint study enrol {options.dir} --number 10")
    return DONE


def amend_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study amend`."""
    parser.description = (
        "Puts a changed declaration in force. Participants are asked for their consent again, and reports name "
        "the amendment with its reason."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--why", required=True, metavar="WORDS", help="the reason, for the report")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return amend


def amend(options: argparse.Namespace) -> int:
    """Put the declaration as it is now in force."""
    study = open_study(options.dir)
    require_opened(study, options.dir)
    before = study.ledger.protocol
    if before == study.protocol:
        raise StudyError("Nothing has changed that the protocol holds.", hint=f"Edit {STUDY_FILE} or texts/ first.")
    if not options.why.strip():
        raise StudyError("An amendment needs a reason.", hint="--why 'what was changed, and why'")
    _require_tasks(study, options.dir)
    data = Amended(protocol=study.protocol, why=options.why.strip(), exclude_on=study.study.quality.exclude_on)
    study.record(ORGANISER, STUDY, StudyOperationKind.AMENDED, data)
    share_again(study)
    if options.json:
        print_json("gistpoint.study-amend/1", {"id": study.study.id, "before": before, "protocol": study.protocol})
    else:
        print_text(f"{study.study.id}: protocol {before[:12]} is now {study.protocol[:12]}. Consent is asked again.")
    return DONE


def close_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study close`."""
    parser.description = "Ends a study: nobody goes on with it, and the organiser's screens show results."
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--json", action="store_true", help="as JSON")
    return close


def close(options: argparse.Namespace) -> int:
    """Close a study."""
    study = open_study(options.dir)
    require_opened(study, options.dir)
    if study.ledger.closed:
        raise StudyError(f"{study.study.id} is closed already.", hint=f"gistpoint study report {options.dir}")
    study.record(ORGANISER, STUDY, StudyOperationKind.CLOSED)
    if options.json:
        print_json("gistpoint.study-close/1", {"id": study.study.id})
    else:
        print_text(f"{study.study.id} is closed. Next: gistpoint study report {options.dir}")
    return DONE


def require_opened(study: StudyFolder, typed: str) -> None:
    """Raise `StudyError` if a study is not open yet."""
    if study.ledger.opened is None:
        raise StudyError(f"{study.study.id} is not open yet.", hint=f"gistpoint study open {typed}")


def _require_tasks(study: StudyFolder, typed: str) -> None:
    problems = [*study.read.problems, *faults_with_tasks(study.study, study.tasks)]
    if problems:
        raise StudyError(problems[0], hint=f"gistpoint study check {typed} shows everything.")
