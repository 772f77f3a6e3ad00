"""`gistpoint mcp`: serve a task's tools and budgets to a client of the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gistpoint.core.errors import UserError, extra_hint
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.text import whole_number
from gistpoint.object_graph import build_services
from gistpoint.sessions.served import ServeAttempt, ServedAttempt, served_attempt
from gistpoint.sessions.tasks import existing_path
from gistpoint.tui.commands.arguments import ISOLATION, TASK_HELP
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option

if TYPE_CHECKING:
    from gistpoint.core.tasks.model import Task
    from gistpoint.tui.mcp.http import ServerAddress

TOKEN, VERDICT_TOKEN = "GISTPOINT_MCP_TOKEN", "GISTPOINT_VERDICT_TOKEN"
_TOKEN_CHARACTERS = 32
"""The minimum length of a token, in characters."""
_ROLES = ("qa", "baseline", "author", "training")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeTools(Request):
    """A request to serve an attempt over a transport, or to print a client's configuration for it."""

    serve: ServeAttempt
    http: str | None = None
    host_name: tuple[str, ...] = ()
    cert: str | None = None
    key: str | None = None
    behind_proxy: bool = False
    client: str | None = None
    isolation: IsolationChoice


def mcp(request: ServeTools) -> int:
    """Serve an attempt, or print the configuration of a client for it. Return the exit code.

    Raises `UserError` if standard input does not come from a client, if the extra `mcp` is missing, or if the
    address, the token or the options for TLS can't be used.
    """
    if request.client:
        return _print(request, request.client)
    # Removed from the environment, so that no program that is started here can read them.
    token, verdict_token = os.environ.pop(TOKEN, ""), os.environ.pop(VERDICT_TOKEN, "")
    if request.http:
        return _over_http(request, request.http, token, verdict_token)
    from gistpoint.tui.mcp.stdio import has_client, serve_stdio, take_standard_streams

    if not has_client():
        raise UserError(
            "Standard input is not a pipe: clients start this command themselves.",
            hint="--print claude, codex, vscode or json shows their configuration; --http serves over HTTP.",
        )
    wire = take_standard_streams()
    _require_extra()
    serve_stdio(wire, _served(request, "stdio"))
    return DONE


def _over_http(request: ServeTools, address: str, given: str, verdict_token: str) -> int:
    _require_extra()
    host, port = _address(address)
    token = _token(given)
    if verdict_token and request.serve.lease:
        raise UserError(
            "A verdict ends the attempt of one server, so a lease can't go with it.",
            hint=f"Leave out --lease, or unset {VERDICT_TOKEN}.",
        )
    if verdict_token and _token(verdict_token, VERDICT_TOKEN) == token:
        raise UserError(
            f"{VERDICT_TOKEN} is the same as {TOKEN}: the solver could end its attempt and read the verdict.",
            hint="Choose another one, for example from `openssl rand -hex 32`.",
        )
    from gistpoint.tui.connections import server_tls
    from gistpoint.tui.mcp.http import ServerAddress, serve_http

    place = ServerAddress(host, port, request.host_name, request.cert or "", request.key or "")
    _require_safe(place, request)
    server_tls(place.certificate, place.key)  # before the attempt begins, which a bad certificate would end
    served = _served(request, "http")
    if not given:
        print(f"token: {token} (shown once; {TOKEN} sets another)", file=sys.stderr, flush=True)
    serve_http(place, token, served, verdict_token)
    return DONE


def _require_extra() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise UserError(
            "The Model Context Protocol needs packages that are not installed.", hint=extra_hint("mcp")
        )


def _served(request: ServeTools, transport: str) -> ServedAttempt:
    from gistpoint.core.attempts.identity import Role
    from gistpoint.tui.mcp.server import log_visibly

    log_visibly()
    begun = request.serve
    services = build_services(
        request.isolation, role=Role(begun.role or Role.QA), participant=begun.participant
    )
    services.consent.asker = lambda why_not: False  # nobody is at a terminal who could consent
    return served_attempt(services, begun, transport, _print_error_line)


def _print_error_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = whole_number(port)
    if not host or number is None or number > 65_535:
        raise UserError(
            f"--http {text!r} is not HOST:PORT.",
            hint="For example 127.0.0.1:8000; port 0 uses any free port.",
        )
    return host, number


def _token(token: str, variable: str = TOKEN) -> str:
    import secrets

    if token and (
        len(token) < _TOKEN_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise UserError(
            f"{variable} is not a token of at least {_TOKEN_CHARACTERS} printable characters.",
            hint="If you leave it out, a token is made; you can also use `openssl rand -hex 32`.",
        )
    return token or secrets.token_urlsafe(32)


def _require_safe(place: ServerAddress, request: ServeTools) -> None:
    from gistpoint.tui.mcp.http import is_loopback

    if bool(request.cert) != bool(request.key):
        raise UserError("TLS needs both a certificate and its key.", hint="Give --cert and --key.")
    if is_loopback(place.host):
        return
    if not (request.cert or request.behind_proxy):
        raise UserError(
            f"{place.host} may be reached from other machines, and the token would travel unencrypted.",
            hint="Give --cert and --key, or --behind-proxy if a proxy provides TLS.",
        )
    if place.host in ("0.0.0.0", "::") and not place.names:
        raise UserError(
            f"{place.host} is not an address that clients can use.",
            hint="Give --host-name NAME, as in their URLs.",
        )


def _print(request: ServeTools, client: str) -> int:
    from gistpoint.tui.mcp.clients import configuration

    task = build_services(request.isolation).tasks.find(request.serve.task)
    url = f"{'https' if request.cert else 'http'}://{request.http}/mcp" if request.http else ""
    print(configuration(client, _repeated(request, task), url, task.suite.timeout_s), end="")
    return DONE


def _repeated(request: ServeTools, task: Task) -> list[str]:
    """Return the words of this command for a client that starts it.

    The path of a task is made absolute; any other name of a task is replaced with its id.
    """
    given_path = existing_path(request.serve.task)
    words = ["mcp", task.id if given_path is None else str(given_path.absolute())]
    given = {
        "--attempt": request.serve.attempt,
        "--lease": request.serve.lease,
        "--budgets": request.serve.budgets,
        "--participant": request.serve.participant,
        "--role": request.serve.role,
        "--sandbox": request.isolation.sandbox,
    }
    flags = {
        "--trust-client": request.serve.trust_client,
        "--allow-unsandboxed": request.isolation.allow_unsandboxed,
    }
    words += [word for name, value in given.items() if value for word in (name, value)]
    return [*words, *(name for name, is_given in flags.items() if is_given)]


MCP = CliCommand(
    ServeTools,
    mcp,
    {
        "serve": OptionTable(
            {
                "task": argument("TASK", TASK_HELP),
                "attempt": option("resume an unfinished attempt that was served this way", metavar="ID"),
                "lease": option(
                    "continue one attempt under this name, for clients that start a server for each call",
                    metavar="NAME",
                ),
                "budgets": option(
                    "budgets such as 16/4, instead of the task's own", metavar="USES[/SUBMISSIONS]"
                ),
                "participant": option("a pseudonym, recorded with the attempt"),
                "role": option("what the attempt is for (default: qa)", choices=_ROLES),
                "trust_client": option(
                    "the client has no other tools that reach this machine; --role baseline needs this"
                ),
            }
        ),
        "http": option("serve over HTTP to clients that have the token", metavar="HOST:PORT"),
        "host_name": option("another name of the server in clients' URLs", metavar="NAME"),
        "cert": option("serve TLS, with this certificate", metavar="FILE"),
        "key": option("the certificate's key", metavar="FILE"),
        "behind_proxy": option("a proxy in front of the server provides TLS"),
        "client": option(
            "print the configuration for this client, and start nothing",
            "--print",
            choices=("claude", "codex", "vscode", "json"),
        ),
        "isolation": ISOLATION,
    },
    about=(
        "Serves one attempt at a task to a client of the Model Context Protocol, which starts this command"
        " itself; --print shows its configuration. The attempt begins at the first call."
    ),
)
