"""`gistpoint study join` and `progress`: take part in a study, and show its progress."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.errors import EndpointError, SandboxUnavailableError
from gistpoint.core.locations import Locations
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.study.declaration import Assistance
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.steps import RefusedStep
from gistpoint.core.text import visible_line
from gistpoint.object_graph import build_services
from gistpoint.sessions.studies.course import outcomes_hidden
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.tui.commands.arguments import typed_answer
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, option
from gistpoint.tui.commands.output import interactive, print_json, print_records, print_text, require_terminal
from gistpoint.tui.commands.studies import STUDY, NamedStudy, StudyCommand
from gistpoint.tui.study_opening import open_study

if TYPE_CHECKING:
    from gistpoint.core.ports import ChatModel
    from gistpoint.core.study.declaration import Study
    from gistpoint.core.study.progress import TaskCoverage
    from gistpoint.sessions.services import Services
    from gistpoint.sessions.studies.monitoring import MonitoredStudy
    from gistpoint.tui.study_app import StudyApp


@dataclass(frozen=True, slots=True, kw_only=True)
class TakePart(NamedStudy):
    """A request to take part in a study."""

    code: str = ""
    """The participant's code; if empty, the command asks for it."""


def join(request: TakePart) -> int:
    """Take a participant through a study. Return the exit code."""
    folder = open_study(request.study)
    require_terminal(
        "study", hint="To take part, run this in a terminal. `gistpoint study progress` prints a table."
    )
    return app_of(folder, request.code or typed_answer("Your code: ")).run_to_exit_code()


def app_of(folder: StudyFolder, code: str, *, again: str = "") -> StudyApp:
    """Return the app in which a participant takes part in a study.

    `again` describes how to continue on another day; if it is empty, the app names the command. Raises
    `StudyError` if the participant can't take part now, and `EndpointError` if a model of the study can't be
    used.
    """
    from gistpoint.sessions.studies.drafts import FormDrafts
    from gistpoint.sessions.studies.taking import Participation
    from gistpoint.tui.study_app import StudyApp

    folder.require_people()
    demand = folder.study.sandbox.demand or None
    services = build_services(IsolationChoice(sandbox=demand))
    services.consent.asker = lambda why_not: False  # in a study, consent does not replace isolation
    drafts = FormDrafts(services.locations.data, folder.study.id, code)
    part = Participation(folder, code, services.attempts, services.judge_for, drafts)
    first = part.next()
    if isinstance(first, RefusedStep):
        raise StudyError(first.words, hint=first.hint)
    if not drafts.hold():
        raise StudyError(
            f"{code} already takes part in another window on this machine.",
            hint="Continue there, or close it there first.",
        )
    command = again or f"gistpoint study join {shlex.quote(folder.named)} --code {code}"
    return StudyApp(
        part,
        services,
        command,
        sandbox_ready=lambda: _can_isolate(demand),
        chat_models=_chat_models(folder.study, services),
        # A participant in a browser has no access to files on this machine.
        copies=None if again else Path.cwd(),
    )


def _chat_models(study: Study, services: Services) -> dict[str, ChatModel]:
    """Return the models of the assisted conditions, by name. Raises `EndpointError` if one can't be used."""
    try:
        return {name: services.solver(name, "", None).model() for name in chat_model_names(study)}
    except EndpointError as error:
        # A participant did not choose a model and can't know what is missing.
        raise EndpointError(
            f"The chat assistant of this study can't be used on this machine. {error.message}",
            hint=f"{error.hint} Or tell the organiser: {study.privacy.contact}",
        ) from error


def chat_model_names(study: Study) -> tuple[str, ...]:
    """Return the names of the models that people chat with in a study."""
    chats = (one.chat.model for one in study.conditions_of_people if one.assistance is Assistance.CHAT)
    return tuple(sorted(set(chats)))


def _can_isolate(demand: str | None) -> bool:
    """Return whether the required sandbox works here; if none is required, whether any backend isolates."""
    from gistpoint.sandbox.ladder import choose

    try:
        choose(demand, consented=False)
    except SandboxUnavailableError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowProgress(Request):
    """A request to show the progress of a study; with `unblind`, outcomes are shown before its end."""

    unblind: bool = False


def progress(folder: StudyFolder, request: ShowProgress, as_json: bool) -> int:
    """Show the progress of a study on a screen; without a terminal, or as JSON, print it.

    Return the exit code.
    """
    hidden = outcomes_hidden(folder, unblind=request.unblind)
    if as_json or not interactive():
        _print_progress(folder, hidden=hidden, as_json=as_json)
        return DONE
    from gistpoint.sessions.studies.monitoring import Monitor
    from gistpoint.tui.base_app import OneScreenApp
    from gistpoint.tui.screens.study.progress import ProgressScreen
    from gistpoint.tui.study_progress import state_words

    monitor = Monitor(folder, hidden=hidden)

    def read() -> tuple[MonitoredStudy, str]:
        return monitor.read(), state_words(folder.study, folder.ledger)

    name = shlex.quote(folder.named)

    def first() -> ProgressScreen:
        return ProgressScreen(folder.study, read, name, hidden=hidden)

    return OneScreenApp(Locations.of_user(), "screens/study/study.tcss", first).run_to_exit_code()


def _print_progress(folder: StudyFolder, *, hidden: bool, as_json: bool) -> None:
    from gistpoint.sessions.studies.monitoring import Monitor

    watched = Monitor(folder, hidden=hidden).read()
    if as_json:
        _print_progress_values(folder, watched, hidden=hidden)
    else:
        _print_progress_lines(folder, watched, hidden=hidden)


def _print_progress_values(folder: StudyFolder, watched: MonitoredStudy, *, hidden: bool) -> None:
    found, alerts = watched.progress, watched.alerts
    tasks = [_task_values(task, hidden=hidden) for task in found.tasks]
    values = {
        "study": folder.study.id,
        "simulated": folder.study.simulated,
        "open": folder.ledger.opened is not None and not folder.ledger.closed,
        "people": asdict(found.people),
        "at_work": [asdict(one) for one in found.at_work],
        "tasks": tasks,
        "open_cells": found.open_cells,
        "people_needed": found.people_needed,
        "not_begun": [asdict(one) for one in found.not_begun],
        "pace": asdict(found.pace),
        "timed_out": list(found.late),
        "alerts": [asdict(alert) for alert in alerts],
        "problems": [alert.words for alert in alerts if alert.kind == "data"],
    }
    print_json("gistpoint.study-progress/1", values)


def _print_progress_lines(folder: StudyFolder, watched: MonitoredStudy, *, hidden: bool) -> None:
    from gistpoint.tui.study_progress import (
        alert_words,
        columns,
        head_words,
        need_words,
        pace_words,
        state_words,
        work_words,
    )

    found, alerts = watched.progress, watched.alerts
    for alert in alerts:
        if alert.kind == "data":
            print(f"gistpoint: {visible_line(alert.words)}", file=sys.stderr)
    print_text(state_words(folder.study, folder.ledger))
    print_text(head_words(found.people))
    for line in pace_words(found):
        print_text(line)
    for one in found.at_work:
        print_text(f"at work  {work_words(one)}")
    for line in alert_words([alert for alert in alerts if alert.kind != "data"]):
        print_text(line)
    print_records(columns(folder.study, hidden=hidden), found.tasks)
    print_text(need_words(found))


def _task_values(task: TaskCoverage, *, hidden: bool) -> dict[str, object]:
    """Return a task as JSON data, without outcomes if they are hidden."""
    values = asdict(task)
    if hidden:
        for name in ("solved", "by_tests", "standings", "median_s"):
            del values[name]
    return values


JOIN = CliCommand(
    TakePart,
    join,
    {
        "study": STUDY,
        "code": option("the code that the organiser gave you; if omitted, you are asked for it", metavar="C"),
    },
    about=(
        "Opens the participant's pages: consent, questions, rules, and one task after another, to the"
        " end. It can be closed at any time: the same command continues where the participant stopped."
    ),
)
PROGRESS = StudyCommand(
    ShowProgress,
    progress,
    {
        "unblind": option("show results of an open study; the log and the report will mention it"),
    },
    about=(
        "Shows the people and the coverage of each task. Results and times are hidden until the"
        " study is closed."
    ),
)
