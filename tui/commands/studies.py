"""`gistpoint study`: make, check, open, amend and close a study."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from gistpoint.core.locations import Locations, path_of
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.soundness import unwritten_texts
from gistpoint.core.text import plural
from gistpoint.sessions.studies.course import (
    AmendStudy,
    NewStudy,
    amend_study,
    close_study,
    new_study,
    open_for_people,
    preregistration,
)
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.tui.commands.arguments import JSON, EmptyRequest, JsonRequest
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.options import (
    CliCommand,
    Option,
    OptionTable,
    add_options,
    argument,
    option,
    request_of,
)
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.study_opening import open_study, share_again

if TYPE_CHECKING:
    from gistpoint.core.assist.help import HelpGist
    from gistpoint.core.ports import ChatModel
    from gistpoint.core.tasks.leaks import CheckFinding
    from gistpoint.core.tasks.model import Task

STUDY = argument("DIR", "the study's folder, or its name on the team's store")
UNBLIND = option(
    "see outcomes although the study is still open; its log and reports will mention it", "--unblind"
)
_NAMED = OptionTable({"study": STUDY})
R = TypeVar("R", bound=Request)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStudy(Request):
    """A request about a study, given by its folder or its name on the team's store."""

    study: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRequest(NamedStudy):
    """A request about a study. With `json`, the output is JSON."""

    json: bool = False


class StudyCommand(Generic[R]):
    """A command on a study, which is its first argument, with an option for JSON."""

    def __init__(
        self,
        request: type[R],
        run: Callable[[StudyFolder, R, bool], int],
        options: Mapping[str, Option | OptionTable] = MappingProxyType({}),
        *,
        about: str,
        one_of: tuple[tuple[str, ...], ...] = (),
        required: bool = False,
        json: Option = JSON,
    ) -> None:
        """`run` is called with the opened study, the request, and whether to print JSON.

        `options`, `one_of` and `required` are as in `OptionTable`, `json` is the option for JSON, and `about`
        is the description in the command's help.
        """
        self._request, self._run, self._about = request, run, about
        self._options = OptionTable(options, one_of=one_of, required=required)
        self._json = OptionTable({"json": json})

    def __call__(self, parser: argparse.ArgumentParser) -> Handler:
        """Add the options to a parser, and return the function that runs the command."""
        parser.description = self._about
        add_options(parser, NamedStudy, _NAMED)
        add_options(parser, self._request, self._options)
        add_options(parser, JsonRequest, self._json)
        return self.run

    def run(self, given: argparse.Namespace) -> int:
        """Open the study, carry out the request that parsed options describe, and return the exit code."""
        study = open_study(request_of(NamedStudy, _NAMED, given).study)
        as_json = request_of(JsonRequest, self._json, given).json
        return self._run(study, request_of(self._request, self._options, given), as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudyRequest(StudyRequest):
    """A request to make a study in the folder `study`."""

    new: NewStudy


def new(request: NewStudyRequest) -> int:
    """Make the folder of a study, and print how to continue. Return the exit code."""
    new_study(path_of(request.study), Locations.of_user(), request.new)
    study = open_study(request.study)
    if request.json:
        print_json(
            "gistpoint.study-new/1",
            {"id": study.study.id, "folder": request.study, "tasks": list(study.tasks)},
        )
        return DONE
    print_text(
        f"{study.study.id}: {STUDY_FILE}, texts and {plural(len(study.tasks), 'task')} in {request.study}"
    )
    print_text(f"Edit {STUDY_FILE} and texts/, then: gistpoint study check {request.study}")
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCheck(StudyRequest):
    """A request to check a study or, with `prereg`, to describe it for a pre-registration."""

    prereg: bool = False


def check(request: StudyCheck) -> int:
    """Print the findings of all checks, or the text of a pre-registration. Return 1 if a check failed."""
    study = open_study(request.study)
    if request.prereg:
        print_text(preregistration(study))
        return DONE
    # A participant's program, which is in the same group of commands, needs none of this.
    from gistpoint.core.kinds.folder import read_answer
    from gistpoint.object_graph import build_entrypoint_runner, build_services
    from gistpoint.sandbox.ladder import choose
    from gistpoint.sessions.studies.checking import check_study

    findings: list[CheckFinding] = []
    demand = study.study.sandbox.demand or None

    def make(task: Task) -> HelpGist:
        from gistpoint.core.assist.making_help import make_help

        with long_work(quiet=request.json, kept="The study is unchanged.") as work:
            runner = build_entrypoint_runner(IsolationChoice(sandbox=demand))
            return make_help(task, read_answer(task), runner, time.monotonic, run=work.run)

    def chat(name: str) -> ChatModel:
        return build_services(IsolationChoice(sandbox=demand)).solver(name, "", None).model()

    for finding in check_study(study, lambda named: choose(named, consented=False).name, make, chat):
        findings.append(finding)
        if not request.json:
            word = "reduced" if finding.reduced else "ok" if finding.passed else "FAILED"
            print_text(f"{word:>8}  {finding.name}: {finding.detail}")
    good = all(finding.passed for finding in findings)
    if request.json:
        rows = [asdict(finding) for finding in findings]
        print_json("gistpoint.study-check/1", {"id": study.study.id, "passed": good, "checks": rows})
    elif good:
        opened = study.ledger.opened is not None
        print_text(
            f"{study.study.id}: sound" + ("" if opened else f". Next: gistpoint study open {request.study}")
        )
    else:
        print_text(f"{study.study.id}: not sound")
    return DONE if good else NEGATIVE


def opening(study: StudyFolder, _: EmptyRequest, as_json: bool) -> int:
    """Open a study for participants. Return the exit code."""
    open_for_people(study)
    if as_json:
        print_json("gistpoint.study-open/1", {"id": study.study.id, "protocol": study.protocol})
        return DONE
    print_text(
        f"{study.study.id} is open, with protocol {study.protocol[:12]} and"
        f" {plural(len(study.tasks), 'task')}"
    )
    if not study.study.simulated:
        if unwritten := unwritten_texts(study.study):
            print_text(f"Still to be written before anybody else takes part: {', '.join(unwritten)}")
            print_text(
                f"Next, to try it yourself: gistpoint study enrol {study.named} --code ME --role author"
            )
        else:
            print_text(f"Next: gistpoint study enrol {study.named} --number 10")
    return DONE


def amend(study: StudyFolder, request: AmendStudy, as_json: bool) -> int:
    """Put the changed declaration in force. Return the exit code."""
    before = amend_study(study, request)
    share_again(study)
    if as_json:
        print_json(
            "gistpoint.study-amend/1", {"id": study.study.id, "before": before, "protocol": study.protocol}
        )
    else:
        print_text(
            f"{study.study.id}: protocol {before[:12]} is now {study.protocol[:12]}. Participants are"
            " asked for consent again."
        )
    return DONE


def close(study: StudyFolder, _: EmptyRequest, as_json: bool) -> int:
    """Close a study. Return the exit code."""
    close_study(study)
    if as_json:
        print_json("gistpoint.study-close/1", {"id": study.study.id})
    else:
        print_text(f"{study.study.id} is closed. Next: gistpoint study report {study.named}")
    return DONE


NEW = CliCommand(
    NewStudyRequest,
    new,
    {
        "study": argument("DIR", "the folder to make; its name becomes the study's id"),
        "new": OptionTable(
            {
                "tasks": option(
                    "copy these tasks: a folder of them, a list, a task; `demo` names those that come with"
                    " gistpoint",
                    metavar="SET",
                ),
                "template": option(
                    "the design: one condition; with and without a chat assistant; gists with and"
                    " without running code; three budgets; that of the Breakpoint paper (default: {default})"
                ),
            }
        ),
        "json": JSON,
    },
    about=(
        "Writes a new folder with study.toml, texts for participants and the tasks. Edit the declaration and"
        " the texts, then `gistpoint study check` and `gistpoint study open`."
    ),
)
CHECK = CliCommand(
    StudyCheck,
    check,
    OptionTable(
        {
            "study": STUDY,
            "json": JSON,
            "prereg": option(
                "print the sections of a pre-registration (OSF) as Markdown before the study is opened,"
                " without checking anything"
            ),
        },
        one_of=(("json", "prereg"),),
    ),
    about=(
        "Checks the declaration, the texts, the tasks with their stored evidence, the isolation of"
        " this machine, and how evenly 100 enrolments cover the tasks. The exit code is 1 if"
        " something is wrong."
    ),
)
OPEN = StudyCommand(
    EmptyRequest,
    opening,
    about=(
        "Freezes the declaration: its hash is recorded in the log and with every attempt. Declare"
        " later changes with `gistpoint study amend`."
    ),
)
AMEND = StudyCommand(
    AmendStudy,
    amend,
    {
        "why": option("the reason, for the report", metavar="WORDS"),
        "tell": option(
            "what changes for participants, in words for them (default: the reason)", metavar="WORDS"
        ),
    },
    about=(
        "Puts a changed declaration into force. Participants are asked for their consent again, and reports"
        " name the amendment with its reason."
    ),
)
CLOSE = StudyCommand(
    EmptyRequest,
    close,
    about="Ends a study: nobody can continue it, and the organiser's screens show results.",
)
