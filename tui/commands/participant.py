"""`gistpoint participant`: what `gistpoint serve` starts behind a browser's window. Nobody types it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.tui.commands.arguments import add_sandbox, isolation_of
from gistpoint.tui.commands.command import Handler
from gistpoint.tui.commands.output import require_terminal
from gistpoint.tui.object_graph import build_services

if TYPE_CHECKING:
    from gistpoint.core.entrypoints.runs import EntrypointRunner
    from gistpoint.core.ports import Runner
    from gistpoint.core.tasks.model import Task
    from gistpoint.tui.base_app import BaseApp
    from gistpoint.tui.services import Services

Made = TypeVar("Made", "Runner", "EntrypointRunner")
BY_LINK = "by the same link."


def participant_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint participant`."""
    parser.description = "The program of one participant; `gistpoint serve` starts it."
    parser.add_argument("--code", required=True, metavar="C", help="the participant's code")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--task", dest="tasks", action="append", default=[], metavar="ID", help="an assigned task")
    what.add_argument("--study", metavar="DIR", help="the study's folder")
    add_sandbox(parser, "bwrap, docker or landlock")
    return participant


def participant(options: argparse.Namespace) -> int:
    """Show a participant their tasks, or their way through a study."""
    require_terminal("participant", hint="`gistpoint serve` starts it behind a browser's window.")
    return _app(options).run_to_exit_code()


def _app(options: argparse.Namespace) -> BaseApp:
    if options.study:
        from gistpoint.tui.commands.study_taking import app_of

        return app_of(options.study, options.code, again=BY_LINK)
    from gistpoint.tui.participant_app import ParticipantApp

    return ParticipantApp(options.code, options.tasks, services_of(options.code, build_services(isolation_of(options))))


def services_of(code: str, services: Services) -> Services:
    """Return services for a participant: they ask nobody for consent, and run nothing without isolation."""

    def only_isolated(runner_for: Callable[[Task], Made]) -> Callable[[Task], Made]:
        def checked(task: Task) -> Made:
            runner = runner_for(task)
            if not runner.backend.isolated:
                raise SandboxUnavailableError(
                    "What is written in a browser does not run without isolation, and none works here.",
                    hint="Tell who gave you the link.",
                )
            return runner

        return checked

    services.consent.asker = lambda why_not: False
    return replace(
        services,
        runner_for=only_isolated(services.runner_for),
        entrypoints_for=only_isolated(services.entrypoints_for),
        enrolment=Enrolment(participant=code, comforts_off=("external_editor",)),
    )
