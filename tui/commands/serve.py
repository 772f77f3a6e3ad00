"""`gistpoint serve`: tasks or a study for participants in browsers, a link for each."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gistpoint.core.errors import SandboxUnavailableError, UserError, extra_hint
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.requests import IsolationChoice
from gistpoint.object_graph import build_services
from gistpoint.tui.commands.arguments import add_sandbox, counted, isolation_of, port
from gistpoint.tui.commands.command import DONE, CommandParser, CommandRow, Handler, add_commands
from gistpoint.tui.commands.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from gistpoint.core.ports import TimeSource
    from gistpoint.sessions.studies.folder import StudyFolder
    from gistpoint.tui.serving.links import Assigned, LinkBook
    from gistpoint.tui.serving.server import ServedPlace

_OF_LINKS = (
    CommandRow("links", "who has a link, and to what", "serve:links_options"),
    CommandRow("revoke", "take a participant's link away, at once", "serve:revoke_options"),
)
_ALL_ADDRESSES = ("0.0.0.0", "::")


def serve_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint serve`."""
    parser.description = (
        "Serves each participant their tasks in a browser, by a link of their own. What they do is kept here, as if "
        "they sat at this machine. Without --for, --links and --study, the links that were given before are served."
    )
    who = parser.add_argument_group("participants")
    who.add_argument(
        "--for", dest="people", action="append", default=[], metavar="P01=TASK,TASK",
        help="a participant's code, never a name, and their tasks; for each participant once",
    )  # fmt: skip
    who.add_argument("--links", metavar="FILE", help='the same from a TOML file of lines such as P01 = ["TASK"]')
    who.add_argument("--study", metavar="DIR", help="a study's folder: a link for each code that is enrolled")
    who.add_argument("--new-links", action="store_true", help="make new links in place of those given before")
    place = parser.add_argument_group("address")
    place.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s, this machine alone)")
    place.add_argument("--port", type=port, default=8000, metavar="N", help="default: %(default)s; 0 takes any")
    place.add_argument("--public-url", default="", metavar="URL", help="as browsers reach it, such as https://lab:8000")
    place.add_argument("--cert", default="", metavar="FILE", help="serve TLS, with this certificate")
    place.add_argument("--key", default="", metavar="FILE", help="the certificate's key")
    place.add_argument("--behind-proxy", action="store_true", help="a proxy before the server provides TLS")
    parser.add_argument(
        "--sessions", type=counted, default=8, metavar="N", help="so many at once at most (default: %(default)s)"
    )
    add_sandbox(parser, "bwrap, docker or landlock")
    assert isinstance(parser, CommandParser)
    add_commands(parser, _OF_LINKS, {})
    return serve


def links_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint serve links`."""
    parser.description = "Lists who has a link. A link itself is told once, when it is made."
    parser.add_argument("--json", action="store_true", help="as JSON")
    return show_links


def revoke_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint serve revoke`."""
    parser.description = "Takes a link away; an open window is closed. What was done is kept."
    parser.add_argument("person", metavar="CODE", help="the participant's code")
    return revoke


def show_links(options: argparse.Namespace) -> int:
    """List the links."""
    from gistpoint.core.readable import moment

    clock = _clock()
    links = _book(clock).all()
    if options.json:
        shown = {
            who: {"made_utc_ms": link.made_utc_ms, "tasks": link.assigned.tasks, "study": link.assigned.study}
            for who, link in links.items()
        }
        print_json("gistpoint.links-list/1", {"links": shown})
    elif not links:
        print_text("Nobody has a link. `gistpoint serve --for P01=TASK` makes one.")
    else:
        rows = [
            [who, moment(link.made_utc_ms, now_ms=clock.utc_ms()), _words(link.assigned)] for who, link in links.items()
        ]
        print_table(["participant", "made", "for"], rows)
    return DONE


def _words(assigned: Assigned) -> str:
    return f"study {assigned.study}" if assigned.study else ", ".join(task[:8] for task in assigned.tasks)


def revoke(options: argparse.Namespace) -> int:
    """Take a link away."""
    _book(_clock()).revoke(options.person)
    print_text(f"The link of {options.person} is no longer valid.")
    return DONE


def serve(options: argparse.Namespace) -> int:
    """Serve until the process is told to leave."""
    import asyncio

    _require_extra()
    from gistpoint.tui.serving.server import ParticipantServer

    place = _place(options)
    book = _book(_clock())
    given = _people(options)
    people = given or {who: link.assigned for who, link in book.all().items()}
    if not people:
        raise UserError(
            "Nobody has a link.", hint="gistpoint serve --for P01=TASK,TASK, or --study DIR; `gistpoint task list`."
        )
    sandbox = getattr(options, "sandbox", None)
    for assigned in set(people.values()):
        _require_servable(assigned, sandbox)

    def arguments(who: str, assigned: Assigned) -> list[str]:
        tasks = [word for task in assigned.tasks for word in ("--task", task)]
        what = ["--study", assigned.study] if assigned.study else tasks
        return ["participant", "--code", who, *what, *(["--sandbox", sandbox] if sandbox else [])]

    def listening(address: str) -> None:
        tokens = book.assign(people, renew=people if options.new_links else ())
        print_text(f"Serving at {address}; Ctrl+C stops. A link is told once: give each to its participant alone.")
        for who in people:
            told = f"{address}/p/{tokens[who]}" if who in tokens else "has a link already (--new-links makes another)"
            print_text(f"{who}  {told}")
        print(end="", flush=True)

    server = ParticipantServer(book, people, place, arguments, sessions=options.sessions, log=_log)
    asyncio.run(server.run(listening))
    print_text("Stopped. Everything is kept; `gistpoint serve` goes on with the same links.")
    return DONE


def _log(words: str) -> None:
    import sys

    from gistpoint.core.text import visible

    print(visible(words), file=sys.stderr, flush=True)


def _clock() -> TimeSource:
    from gistpoint.core.attempts.clock import SystemTime

    return SystemTime()


def _book(clock: TimeSource) -> LinkBook:
    from gistpoint.tui.serving.links import LinkBook

    return LinkBook(Locations.of_user().data / "links.json", clock)


def _require_extra() -> None:
    from importlib.util import find_spec

    if find_spec("textual_serve") is None:
        raise UserError(
            "Serving in browsers needs packages that are not installed.",
            hint=extra_hint("serve"),
        )


def _place(options: argparse.Namespace) -> ServedPlace:
    """Return where to listen. Raises `UserError` if links would travel unencrypted."""
    from gistpoint.tui.serving.server import ServedPlace, is_loopback

    if bool(options.cert) != bool(options.key):
        raise UserError("TLS needs both a certificate and its key.", hint="Give --cert and --key.")
    url = urlsplit(options.public_url)
    if options.public_url and (url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/")):
        raise UserError(
            f"--public-url {options.public_url!r} is not https://HOST or https://HOST:PORT.",
            hint="It has no path: links begin with /p/.",
        )
    if not is_loopback(options.host) and not (options.cert or options.behind_proxy):
        raise UserError(
            f"{options.host} may be reached from other machines, and the links would travel unencrypted.",
            hint="Give --cert and --key, or --behind-proxy if a proxy provides TLS.",
        )
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        raise UserError(
            f"By {options.public_url} the links would travel unencrypted.", hint="Give an address with https://."
        )
    if options.host in _ALL_ADDRESSES and not options.public_url:
        raise UserError(
            f"{options.host} is no address that browsers can open.",
            hint="Give --public-url, such as https://lab.example:8000.",
        )
    return ServedPlace(
        options.host, options.port, options.public_url.rstrip("/"), options.cert, options.key, options.behind_proxy
    )


def _require_isolation(sandbox: str | None) -> None:
    """Raise `SandboxUnavailableError` unless the code of participants runs in isolation, the demo's too."""
    from gistpoint.core.user_settings import read_user_settings
    from gistpoint.sandbox.ladder import UNSANDBOXED, choose

    wanted = sandbox or read_user_settings(Locations.of_user().config).sandbox or None
    if wanted == UNSANDBOXED:
        raise SandboxUnavailableError(
            "What others write in a browser does not run without isolation.",
            hint="`gistpoint doctor` says which isolation works here.",
        )
    choose(wanted, consented=False)


def _people(options: argparse.Namespace) -> dict[str, Assigned]:
    """Return who was named, and what for. Raises `UserError` for a code that is given twice."""
    from gistpoint.sessions.studies.writers import checked_code
    from gistpoint.tui.serving.links import Assigned, read_assignments

    named: list[tuple[str, tuple[str, ...]]] = []
    for text in options.people:
        who, is_given, tasks = text.partition("=")
        if not is_given or not tasks.strip(", "):
            raise UserError(f"--for {text!r} is not CODE=TASK,TASK.", hint="Such as --for P01=remove-hard,gist-easy")
        named.append((who, tuple(task for task in tasks.split(",") if task)))
    if options.links:
        named += read_assignments(path_of(options.links)).items()
    found: dict[str, Assigned] = {}
    store = build_services(isolation_of(options)).tasks
    for who, names in named:
        _require_new(who, found)
        ids = dict.fromkeys(store.find(name).id for name in names)
        found[checked_code(who)] = Assigned(tasks=tuple(ids))
    if options.study is not None:
        folder, codes = _codes_of(options.study)
        for who in codes:
            _require_new(who, found)
            found[who] = Assigned(study=str(folder.root))
    return found


def _require_own_password(study: StudyFolder) -> None:
    """Raise `UserError` if the programs of participants could not reach the store of a study, as the server does."""
    import os

    from gistpoint.tui.study_opening import is_shared

    if is_shared(study) and "PGPASSWORD" in os.environ:
        raise UserError(
            "The programs of participants get no password from this environment, and could not reach the team's store.",
            hint="Put it into ~/.pgpass in place of PGPASSWORD.",
        )


def _require_new(who: str, found: dict[str, Assigned]) -> None:
    if who in found:
        raise UserError(f"{who} is given twice.", hint="Name each participant once, with all their tasks.")


def _codes_of(name: str) -> tuple[StudyFolder, list[str]]:
    """Return a study and the codes that may still take part. Raises `StudyError`."""
    from gistpoint.core.study.operations import StudyError
    from gistpoint.tui.study_opening import open_study

    folder = open_study(name)
    folder.require_people()
    if folder.ledger.closed:
        raise StudyError(f"{folder.study.id} is closed: nobody takes part any more.")
    codes = [code for code, one in folder.ledger.people.items() if one.enrolled and one.withdrawn is None]
    if not codes:
        raise StudyError(f"Nobody is enrolled in {folder.study.id}.", hint=f"gistpoint study enrol {name} --number 8")
    return folder, codes


def _require_servable(assigned: Assigned, sandbox: str | None) -> None:
    """Look for what somebody comes for, and for its isolation, before anybody is told a link. Raises `UserError`."""
    if assigned.study:
        from gistpoint.core.study.declaration import Assistance
        from gistpoint.core.study.operations import StudyError
        from gistpoint.tui.study_opening import open_study

        folder = open_study(assigned.study)
        _require_own_password(folder)
        study = folder.study
        if any(one.assistance is Assistance.CHAT for one in study.conditions_of_people):
            raise StudyError(
                f"{study.id} has conditions in which a model assists, and what is served gets no key to reach one.",
                hint="Let people take part at this machine: gistpoint study join.",
            )
        _require_isolation(study.sandbox.demand or None)
        return
    _require_isolation(sandbox)
    store = build_services(IsolationChoice()).tasks
    for task in assigned.tasks:
        store.find(task)
