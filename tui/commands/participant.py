"""`gistpoint participant`: the program behind a browser's window, which `gistpoint serve` starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.core.requests import Count, IsolationChoice, Request
from gistpoint.object_graph import build_services
from gistpoint.tui.commands.arguments import sandbox_option
from gistpoint.tui.commands.options import CliCommand, OptionTable, option
from gistpoint.tui.commands.output import require_terminal

if TYPE_CHECKING:
    from gistpoint.core.entrypoints.runs import EntrypointRunner
    from gistpoint.core.ports import Runner
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.services import Services
    from gistpoint.tui.base_app import BaseApp

Made = TypeVar("Made", "Runner", "EntrypointRunner")
BY_LINK = "use the same link."


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedParticipant(Request):
    """A request to show a participant the assigned tasks, or the study."""

    code: str
    tasks: tuple[str, ...] = ()
    study: str | None = None
    sandbox: str | None = None
    memory_mib: Count | None = None
    """The maximum size of the process's data, in MiB; None for no limit."""


def participant(request: ServedParticipant) -> int:
    """Show a participant the assigned tasks, or the study. Return the exit code."""
    require_terminal("participant", hint="`gistpoint serve` starts it for a window in a browser.")
    if request.memory_mib is not None:
        _bound_memory(request.memory_mib << 20)
    return _app(request).run_to_exit_code()


def _bound_memory(size: int) -> None:
    """Limit the data of this process to `size` bytes.

    The limit is on data, not on address space: journals and libraries are mapped, and threads reserve more
    than they use. It is a soft limit, since isolated programs inherit it and set their own (decision 117).
    """
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(
        resource.RLIMIT_DATA, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard)
    )


def _app(request: ServedParticipant) -> BaseApp:
    if request.study:
        from gistpoint.tui.commands.study_taking import app_of
        from gistpoint.tui.study_opening import open_study

        return app_of(open_study(request.study), request.code, again=BY_LINK)
    from gistpoint.tui.participant_app import ParticipantApp

    services = build_services(IsolationChoice(sandbox=request.sandbox))
    return ParticipantApp(request.code, request.tasks, services_of(request.code, services))


def services_of(code: str, services: Services) -> Services:
    """Return services for a participant, which never ask for consent.

    Their runners raise `SandboxUnavailableError` instead of running code without isolation.
    """

    def only_isolated(runner_for: Callable[[Task], Made]) -> Callable[[Task], Made]:
        def checked(task: Task) -> Made:
            runner = runner_for(task)
            if not runner.backend.isolated:
                raise SandboxUnavailableError(
                    "Code written in a browser is not run without isolation, and isolation does not"
                    " work here.",
                    hint="Please inform the person who gave you the link.",
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


PARTICIPANT = CliCommand(
    ServedParticipant,
    participant,
    OptionTable(
        {
            "code": option("the participant's code", metavar="C"),
            "tasks": option("an assigned task", "--task", metavar="ID"),
            "study": option("the study's folder", metavar="DIR"),
            "sandbox": sandbox_option("bwrap, docker or landlock"),
            "memory_mib": option("limit of memory for its data", "--memory", metavar="MIB"),
        },
        one_of=(("tasks", "study"),),
        required=True,
    ),
    about="The program of one participant; `gistpoint serve` starts it.",
)
