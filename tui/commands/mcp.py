"""`gistpoint mcp`: a task's tools and budgets for any client of the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.errors import UserError, extra_hint
from gistpoint.object_graph import build_services
from gistpoint.tui.commands.arguments import TASK_HELP, add_isolation, isolation_of
from gistpoint.tui.commands.command import DONE, Handler

if TYPE_CHECKING:
    from gistpoint.core.tasks.budgets import Budgets
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.attempts import AttemptSummary
    from gistpoint.sessions.services import Services
    from gistpoint.tui.mcp.http import Place
    from gistpoint.tui.mcp.served import ServedAttempt

TOKEN = "GISTPOINT_MCP_TOKEN"
_TOKEN_CHARACTERS = 32
"""Fewest characters of a token that is given."""
_ROLES = ("qa", "baseline", "author", "training")


def mcp_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint mcp`."""
    parser.description = (
        "Serve one attempt at a task to a client of the Model Context Protocol, which starts this command by itself; "
        "--print shows how it is told to. The attempt begins at the first call."
    )
    parser.add_argument("task", metavar="TASK", help=TASK_HELP)
    parser.add_argument("--attempt", metavar="ID", help="go on with an unfinished attempt that came this way")
    parser.add_argument("--budgets", metavar="USES[/SUBMISSIONS]", help="such as 16/4; instead of the task's own")
    parser.add_argument("--participant", default="", help="a pseudonym, recorded with the attempt")
    parser.add_argument("--role", choices=_ROLES, help="what the attempt is for (default: qa)")
    parser.add_argument(
        "--trust-client", action="store_true",
        help="the client has no tools of its own that reach this machine: what --role baseline needs",
    )  # fmt: skip
    parser.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP, for who has the token")
    parser.add_argument(
        "--host-name", action="append", default=[], metavar="NAME", help="a further name of the server in clients' URLs"
    )
    parser.add_argument("--cert", metavar="FILE", help="serve TLS, with this certificate")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key")
    parser.add_argument("--behind-proxy", action="store_true", help="a proxy before the server provides TLS")
    parser.add_argument(
        "--print", dest="client", choices=("claude", "codex", "vscode", "json"),
        help="print what to tell this client, and start nothing",
    )  # fmt: skip
    add_isolation(parser)
    return mcp


def mcp(options: argparse.Namespace) -> int:
    """Serve an attempt, or print how a client is told to have it served."""
    if options.client:
        return _print(options)
    token = os.environ.pop(TOKEN, "")  # no business of anything that is started here
    if options.http:
        return _over_http(options, token)
    from gistpoint.tui.mcp.stdio import has_client, serve_stdio, take_standard_streams

    if not has_client():
        raise UserError(
            "Standard input is no pipe: clients start this command by themselves.",
            hint="--print claude, codex, vscode or json shows how they are told to; --http serves over HTTP.",
        )
    wire = take_standard_streams()
    _require_extra()
    serve_stdio(wire, _served(options, "stdio"))
    return DONE


def _over_http(options: argparse.Namespace, given: str) -> int:
    _require_extra()
    host, port = _address(options.http)
    token = _token(given)
    from gistpoint.tui.mcp.http import Place, serve_http

    place = Place(host, port, tuple(options.host_name), options.cert or "", options.key or "")
    _require_safe(place, options)
    served = _served(options, "http")
    if not given:
        print(f"token: {token} (said once; {TOKEN} sets another)", file=sys.stderr, flush=True)
    serve_http(place, token, served)
    return DONE


def _require_extra() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise UserError(
            "The Model Context Protocol needs packages that are not installed.",
            hint=extra_hint("mcp"),
        )


def _served(options: argparse.Namespace, transport: str) -> ServedAttempt:
    from gistpoint.core.attempts.identity import Role
    from gistpoint.tui.mcp.served import KIND, ServedAttempt, log_visibly

    log_visibly()
    role = Role(options.role or Role.QA)
    services = build_services(isolation_of(options), role=role)
    services.consent.asker = lambda why_not: False  # nobody is there to be asked
    task = services.tasks.find(options.task)
    resumed = _resumed(services, task, options)
    if (role if resumed is None else Role(resumed.role)) is Role.BASELINE and not options.trust_client:
        raise UserError(
            "An attempt over MCP does not count: a client with a shell of its own can read the task's answer.",
            hint="docs/guide/mcp.md has a set-up in which it can't; with it, --trust-client says so.",
        )
    budgets = _budgets(options.budgets, services, task) if options.budgets else None
    _warn(services, task)
    tools = "none_said" if options.trust_client else "unknown"
    solver = {"kind": KIND, "transport": transport, "client_tools": tools}
    return ServedAttempt(services, task, solver, budgets=budgets, resumed=resumed)


def _resumed(services: Services, task: Task, options: argparse.Namespace) -> AttemptSummary | None:
    """Return the attempt to go on with; a person's, and that of an agent's run, are none."""
    from gistpoint.tui.mcp.served import KIND

    if not options.attempt:
        return None
    for given, name in (
        (options.budgets, "--budgets"),
        (options.role, "--role"),
        (options.participant, "--participant"),
    ):
        if given:
            raise UserError(f"An attempt keeps what it began with: {name} can't be given with --attempt.")
    found = services.attempts.summary(options.attempt)
    if found.problem:
        raise UserError(f"The attempt {found.attempt_id} can only be read. {found.problem}")
    if found.task_id != task.id:
        raise UserError(f"The attempt {found.attempt_id} is one at another task.", hint="Name that task.")
    if (found.state.header.solver or {}).get("kind") != KIND:
        raise UserError(
            f"The attempt {found.attempt_id} did not begin over MCP.", hint="Leave --attempt out to begin one."
        )
    if found.state.ending is not None:
        raise UserError(f"The attempt {found.attempt_id} has ended: {found.state.ending.reason}.")
    if found.open:
        raise UserError(f"The attempt {found.attempt_id} is open in another process.", hint="Close that one first.")
    return found


def _budgets(text: str, services: Services, task: Task) -> Budgets:
    from gistpoint.core.kinds.registry import kind_of

    kind = kind_of(task)
    once = kind.blank.hands_in_once
    own = kind.budgets(task, services.enrolled(task, services.enrolment).role)
    uses, _, submissions = text.partition("/")
    few = submissions or ("1" if once else str(max(1, int(uses) // 4) if uses.isdecimal() else 0))
    if not (uses.isdecimal() and few.isdecimal() and int(uses) > 0 and int(few) > 0):
        raise UserError(f"--budgets {text!r} is not a pair of numbers above 0.", hint="Such as 16/4.")
    if once and int(few) != 1:
        raise UserError("A gist is handed in once.", hint=f"Give its steps alone: --budgets {uses}.")
    return replace(own, tool_uses=int(uses), submissions=int(few))


def _warn(services: Services, task: Task) -> None:
    """Say so if other users of this machine can read the answer."""
    from gistpoint.sessions.services import is_our_demo

    answer = task.folder / "answer"
    if is_our_demo(task, services.locations) or not answer.exists() or not answer.stat().st_mode & 0o044:
        return
    if all(parent.stat().st_mode & 0o011 for parent in (answer, *answer.absolute().parents)):
        print(
            "gistpoint: other users of this machine can read the task's answer; chmod 700 its folder", file=sys.stderr
        )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise UserError(f"--http {text!r} is not HOST:PORT.", hint="Such as 127.0.0.1:8000; port 0 takes a free one.")
    return host, int(port)


def _token(token: str) -> str:
    import secrets

    if token and (len(token) < _TOKEN_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token):
        raise UserError(
            f"{TOKEN} is no token of {_TOKEN_CHARACTERS} printable characters or more.",
            hint="Leave it out, and one is made; or `openssl rand -hex 32`.",
        )
    return token or secrets.token_urlsafe(32)


def _require_safe(place: Place, options: argparse.Namespace) -> None:
    from gistpoint.tui.mcp.http import is_loopback

    if bool(options.cert) != bool(options.key):
        raise UserError("TLS needs both a certificate and its key.", hint="Give --cert and --key.")
    if is_loopback(place.host):
        return
    if not (options.cert or options.behind_proxy):
        raise UserError(
            f"{place.host} may be reached from other machines, and the token would travel unencrypted.",
            hint="Give --cert and --key, or --behind-proxy if a proxy provides TLS.",
        )
    if place.host in ("0.0.0.0", "::") and not place.names:
        raise UserError(
            f"{place.host} is no address that clients name.", hint="Give --host-name NAME, as in their URLs."
        )


def _print(options: argparse.Namespace) -> int:
    from gistpoint.tui.mcp.clients import configuration

    task = build_services(isolation_of(options)).tasks.find(options.task)
    print(configuration(options.client, _repeated(options, task), options.http or "", task.suite.timeout_s), end="")
    return DONE


def _repeated(options: argparse.Namespace, task: Task) -> list[str]:
    """Return the words of this command without `--print`, with the whole id of the task if it was given by a part."""
    words = ["mcp", task.id if task.id.startswith(options.task) else str(Path(options.task).absolute())]
    for name in ("attempt", "budgets", "participant", "role", "sandbox"):
        if value := getattr(options, name, None):
            words += [f"--{name}", value]
    flags = ("trust_client", "allow_unsandboxed")
    return [*words, *(f"--{name.replace('_', '-')}" for name in flags if getattr(options, name, None))]
