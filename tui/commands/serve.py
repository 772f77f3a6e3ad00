"""`gistpoint serve`: serve tasks or a study to participants in browsers, each with a link."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gistpoint.core.errors import SandboxUnavailableError, UserError, extra_hint
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.requests import Count, IsolationChoice, Port, Request
from gistpoint.object_graph import build_services
from gistpoint.tui.commands.arguments import JSON, JsonRequest, sandbox_option
from gistpoint.tui.commands.command import DONE, CommandParser, CommandRow, Handler, add_commands
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from gistpoint.core.ports import TimeSource
    from gistpoint.sessions.studies.folder import StudyFolder
    from gistpoint.sessions.tasks import TaskStore
    from gistpoint.tui.serving.links import Assigned, LinkBook
    from gistpoint.tui.serving.server import ServedPlace

_OF_LINKS = (
    CommandRow("links", "who has a link, and to what", "serve:LINKS"),
    CommandRow("revoke", "revoke a participant's link immediately", "serve:REVOKE"),
)
_ALL_ADDRESSES = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPeople(Request):
    """A request to give each participant a link, to tasks or to a study."""

    people: tuple[str, ...] = ()
    """The participants, each a code with its tasks: `P01=TASK,TASK`."""
    links: str = ""
    study: str | None = None
    new_links: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAddress(Request):
    """A request to listen on an address, which browsers may reach at another URL."""

    host: str = "127.0.0.1"
    port: Port = 8000
    public_url: str = ""
    cert: str = ""
    key: str = ""
    behind_proxy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeParticipants(Request):
    """A request to serve tasks or a study to participants."""

    given: ServedPeople
    address: ServedAddress
    sessions: Count = 8
    memory: Count = 1024
    """The limit for the data of each program, in MiB."""
    sandbox: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeLink(Request):
    """A request to revoke a participant's link."""

    person: str


def show_links(request: JsonRequest) -> int:
    """Print who has a link, and for which tasks or study. Return the exit code."""
    from gistpoint.core.readable import moment

    clock = _clock()
    links = _book(clock).all()
    if request.json:
        shown = {
            who: {"made_utc_ms": link.made_utc_ms, "tasks": link.assigned.tasks, "study": link.assigned.study}
            for who, link in links.items()
        }
        print_json("gistpoint.links-list/1", {"links": shown})
    elif not links:
        print_text("Nobody has a link. `gistpoint serve --for P01=TASK` makes one.")
    else:
        rows = [
            [who, moment(link.made_utc_ms, now_ms=clock.utc_ms()), _assigned_words(link.assigned)]
            for who, link in links.items()
        ]
        print_table(["participant", "made", "for"], rows)
    return DONE


def _assigned_words(assigned: Assigned) -> str:
    return f"study {assigned.study}" if assigned.study else ", ".join(task[:8] for task in assigned.tasks)


def revoke(request: RevokeLink) -> int:
    """Revoke a link. Return the exit code."""
    _book(_clock()).revoke(request.person)
    print_text(f"The link of {request.person} is no longer valid.")
    return DONE


def serve(request: ServeParticipants) -> int:
    """Print the new links, and serve until the process is stopped. Return the exit code.

    Raises `UserError` if nobody has a link, or if the address, a task or the study can't be served.
    """
    import asyncio

    _require_extra()
    from gistpoint.tui.serving.server import ParticipantServer

    place = _place(request.address)
    book = _book(_clock())
    given = _people(request.given)
    people = given or {who: link.assigned for who, link in book.all().items()}
    if not people:
        raise UserError(
            "Nobody has a link.",
            hint="Give links with --for P01=TASK,TASK or --study DIR; `gistpoint task list` lists the tasks.",
        )
    sandbox = request.sandbox
    for assigned in set(people.values()):
        _require_servable(assigned, sandbox)

    def arguments(who: str, assigned: Assigned) -> list[str]:
        tasks = [word for task in assigned.tasks for word in ("--task", task)]
        what = ["--study", assigned.study] if assigned.study else tasks
        isolation = ["--sandbox", sandbox] if sandbox else []
        return ["participant", "--code", who, "--memory", str(request.memory), *what, *isolation]

    def listening(address: str) -> None:
        tokens = book.assign(people, renew=people if request.given.new_links else ())
        print_text(
            f"Serving at {address}; Ctrl+C stops. A link is shown once: give each only to its participant."
        )
        for who in people:
            words = (
                f"{address}/p/{tokens[who]}"
                if who in tokens
                else "has a link already (--new-links makes another)"
            )
            print_text(f"{who}  {words}")
        print(end="", flush=True)

    server = ParticipantServer(book, people, place, arguments, sessions=request.sessions, log=_log)
    asyncio.run(server.run(listening))
    print_text("Stopped. Everything is kept; `gistpoint serve` continues with the same links.")
    return DONE


def _log(words: str) -> None:
    import sys

    from gistpoint.core.text import visible

    print(visible(words), file=sys.stderr, flush=True)


def _clock() -> TimeSource:
    from gistpoint.core.machine_time import SystemTime

    return SystemTime()


def _book(clock: TimeSource) -> LinkBook:
    from gistpoint.tui.serving.links import LinkBook

    return LinkBook(Locations.of_user().data / "links.json", clock)


def _require_extra() -> None:
    from importlib.util import find_spec

    if find_spec("textual_serve") is None:
        raise UserError(
            "Serving to browsers needs packages that are not installed.", hint=extra_hint("serve")
        )


def _place(request: ServedAddress) -> ServedPlace:
    """Return the address to listen on.

    Raises `UserError` if the certificate or its key is missing, if the public address is invalid or missing
    although browsers can't open the host, or if links would be sent unencrypted.
    """
    from gistpoint.tui.serving.server import ServedPlace, is_loopback

    if bool(request.cert) != bool(request.key):
        raise UserError("TLS needs both a certificate and its key.", hint="Give --cert and --key.")
    url = urlsplit(request.public_url)
    if request.public_url and (
        url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/")
    ):
        raise UserError(
            f"--public-url {request.public_url!r} is not https://HOST or https://HOST:PORT.",
            hint="Leave the path out: links begin with /p/.",
        )
    if not is_loopback(request.host) and not (request.cert or request.behind_proxy):
        raise UserError(
            f"{request.host} may be reached from other machines, and the links would travel unencrypted.",
            hint="Give --cert and --key, or --behind-proxy if a proxy provides TLS.",
        )
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        raise UserError(
            f"With {request.public_url}, the links would travel unencrypted.",
            hint="Give an address with https://.",
        )
    if request.host in _ALL_ADDRESSES and not request.public_url:
        raise UserError(
            f"{request.host} is not an address that browsers can open.",
            hint="Give --public-url, such as https://lab.example:8000.",
        )
    return ServedPlace(
        request.host,
        request.port,
        request.public_url.rstrip("/"),
        request.cert,
        request.key,
        request.behind_proxy,
    )


def _require_isolation(sandbox: str | None) -> None:
    """Raise `SandboxUnavailableError` unless all code runs in isolation, even the demo's (decision 98)."""
    from gistpoint.core.user_settings import read_user_settings
    from gistpoint.sandbox.ladder import UNSANDBOXED, choose

    backend = sandbox or read_user_settings(Locations.of_user().config).sandbox or None
    if backend == UNSANDBOXED:
        raise SandboxUnavailableError(
            "Code written in a browser is not run without isolation.",
            hint="`gistpoint doctor` shows which isolation works here.",
        )
    choose(backend, consented=False)


def _people(request: ServedPeople) -> dict[str, Assigned]:
    """Return what each named participant is served, by code.

    Raises `UserError` for a malformed assignment, an unknown task, and a code that is given twice.
    """
    from gistpoint.sessions.studies.writers import checked_code
    from gistpoint.tui.serving.links import Assigned, read_assignments

    typed: list[tuple[str, str]] = []
    for text in request.people:
        who, is_given, tasks = text.partition("=")
        if not is_given or not tasks.strip(", "):
            raise UserError(
                f"--for {text!r} is not CODE=TASK,TASK.",
                hint="An example is --for P01=dear-tickets,whole-railway.",
            )
        typed.append((who, tasks))
    store = build_services(IsolationChoice()).tasks
    named = [(who, tuple(_task_names(tasks, store))) for who, tasks in typed]
    if request.links:
        named += read_assignments(path_of(request.links)).items()
    found: dict[str, Assigned] = {}
    for who, names in named:
        _require_new(who, found)
        ids = dict.fromkeys(store.find(name).id for name in names)
        found[checked_code(who)] = Assigned(tasks=tuple(ids))
    if request.study is not None:
        from gistpoint.sessions.studies.people import codes_to_serve
        from gistpoint.tui.study_opening import open_study

        folder = open_study(request.study)
        for who in codes_to_serve(folder):
            _require_new(who, found)
            found[who] = Assigned(study=str(folder.root))
    return found


def _task_names(text: str, store: TaskStore) -> Iterator[str]:
    """Yield the names of tasks from a comma-separated string; titles may contain commas as well.

    A name is the shortest sequence of parts that names a task. A part that begins no such sequence is
    yielded alone, so that the error message can quote it.
    """
    parts = text.split(",")
    while parts:
        runs = (",".join(parts[:length]).strip() for length in range(1, len(parts) + 1))
        name = next((run for run in runs if run and _names_task(run, store)), parts[0].strip())
        parts = parts[name.count(",") + 1 :]
        if name:
            yield name


def _names_task(name: str, store: TaskStore) -> bool:
    try:
        store.find(name)
    except UserError:
        return False
    return True


def _require_own_password(study: StudyFolder) -> None:
    """Raise `UserError` if participants' programs could not reach the store of a shared study.

    The server takes the password from an environment that the programs don't get.
    """
    import os

    from gistpoint.tui.study_opening import is_shared

    if is_shared(study) and "PGPASSWORD" in os.environ:
        raise UserError(
            "The programs of participants do not get a password from this environment, so they could not"
            " reach the team's store.",
            hint="Put it into ~/.pgpass instead of PGPASSWORD.",
        )


def _require_new(who: str, found: dict[str, Assigned]) -> None:
    if who in found:
        raise UserError(f"{who} is given twice.", hint="Name each participant once, with all their tasks.")


def _require_servable(assigned: Assigned, sandbox: str | None) -> None:
    """Check the assigned tasks or study, and the isolation, before any link is shown.

    Raises `UserError` if they can't be served.
    """
    if assigned.study:
        from gistpoint.sessions.studies.people import require_servable
        from gistpoint.tui.study_opening import open_study

        folder = open_study(assigned.study)
        _require_own_password(folder)
        require_servable(folder)
        _require_isolation(folder.study.sandbox.demand or None)
        return
    _require_isolation(sandbox)
    store = build_services(IsolationChoice()).tasks
    for task in assigned.tasks:
        store.find(task)


LINKS = CliCommand(
    JsonRequest,
    show_links,
    {"json": JSON},
    about="Lists who has a link. A link itself is shown once, when it is made.",
)
REVOKE = CliCommand(
    RevokeLink,
    revoke,
    {"person": argument("CODE", "the participant's code")},
    about="Revokes a link and closes its open window. The work is kept.",
)
_SERVE = CliCommand(
    ServeParticipants,
    serve,
    {
        "given": OptionTable(
            {
                "people": option(
                    "a participant's code, never a name, and their tasks; once per participant",
                    "--for",
                    metavar="P01=TASK,TASK",
                ),
                "links": option('the same from a TOML file of lines such as P01 = ["TASK"]', metavar="FILE"),
                "study": option("a study's folder: a link for each code that is enrolled", metavar="DIR"),
                "new_links": option("make new links to replace the existing ones"),
            },
            title="participants",
        ),
        "address": OptionTable(
            {
                "host": option("where to listen (default: {default}, only this machine)"),
                "port": option("default: {default}; 0 takes any free port", metavar="N"),
                "public_url": option(
                    "the address that browsers use, such as https://lab:8000", metavar="URL"
                ),
                "cert": option("serve TLS, with this certificate", metavar="FILE"),
                "key": option("the certificate's key", metavar="FILE"),
                "behind_proxy": option("a proxy in front of the server provides TLS"),
            },
            title="address",
        ),
        "sessions": option(
            "the maximum number of sessions at the same time (default: {default})", metavar="N"
        ),
        "memory": option(
            "memory for the program of each participant, without the tests that it runs (default: {default})",
            metavar="MIB",
        ),
        "sandbox": sandbox_option("bwrap, docker or landlock"),
    },
    about=(
        "Serves each participant their tasks in a browser, through their own link. Their work is kept on"
        " this machine, as if they were using it. Without --for, --links and --study, the existing links"
        " are served."
    ),
)


def serve_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options and subcommands of `gistpoint serve`, and return the function that runs it."""
    run = _SERVE(parser)
    assert isinstance(parser, CommandParser)
    add_commands(parser, _OF_LINKS, {})
    return run
