"""Hints for a connection that a server refuses, chosen by the message of PostgreSQL's library.

The library gives no code for a connection that fails, so the message is searched. A server that reports in
another language is quoted, with the general hint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gistpoint.sessions.team.address import StoreAddress, UnreachableError

_KEPT = "Your work stays in files and is sent when the store answers again."
_CHECK_URL = "Compare the address with the one that you were given: `gistpoint store use URL` replaces it."


@dataclass(frozen=True, slots=True)
class StoreRefusal:
    """A pattern that finds certain messages of the library, and the hint for them."""

    message: re.Pattern[str]
    hint: str
    """The advice; `{user}` and `{database}` are replaced by those of the address."""


def _refusal(message: str, hint: str) -> StoreRefusal:
    return StoreRefusal(re.compile(message, re.IGNORECASE), hint)


REFUSALS = (
    _refusal(
        r'database ".*" does not exist',
        f"{_CHECK_URL} If nobody has made the database yet, an administrator of the server runs"
        " `createdb --owner OWNER {database}`, and OWNER runs `gistpoint store init`.",
    ),
    _refusal(
        r'role ".*" does not exist',
        "{database} has no such user: an administrator of the server runs `createuser --pwprompt {user}` and"
        " `GRANT gistpoint_worker TO {user}`. A URL without a user means the user name on this machine.",
    ),
    _refusal(
        r'role ".*" is not permitted to log in',
        "gistpoint_worker and gistpoint_reader are rights, not users: name your own user in the URL.",
    ),
    _refusal(
        r"password authentication failed|no password supplied|empty password",
        "Set PGPASSWORD, or add a line to ~/.pgpass that only you can read:"
        " HOST:PORT:{database}:{user}:PASSWORD.",
    ),
    _refusal(
        r"(peer|ident|certificate) authentication failed",
        "The server accepts {user} only from the system user or certificate with that name. Its"
        " administrator changes that in pg_hba.conf.",
    ),
    _refusal(
        r"no pg_hba\.conf entry|pg_hba\.conf rejects",
        "An administrator of the server adds a line for {user}, {database} and your machine to pg_hba.conf.",
    ),
    _refusal(
        r"permission denied for database",
        "Its owner runs `GRANT CONNECT ON DATABASE {database} TO {user}`.",
    ),
    _refusal(
        r"too many (clients|connections)|connection slots are reserved",
        "Try again when fewer people are connected, or ask for a larger max_connections on the server.",
    ),
    _refusal(
        r"root certificate file .* does not exist|certificate verify failed|unable to get local issuer",
        "Name the file of the certificate authority that signed the server's certificate in the URL:"
        " `?sslrootcert=/path/ca.crt`.",
    ),
    _refusal(
        r"certificate .* does not match host name",
        "Use the name in the server's certificate as the host of the URL.",
    ),
    _refusal(
        r"server does not support SSL",
        "The connection to another machine is always encrypted: an administrator switches on `ssl` there.",
    ),
    _refusal(
        r"could not translate host name|failed to resolve host|name or service not known",
        _CHECK_URL,
    ),
)


def unreachable(address: StoreAddress | str, reason: str) -> UnreachableError:
    """Return the error for a store that could not be reached, for a reason in the library's words."""
    found = next((one for one in REFUSALS if one.message.search(reason)), None)
    if found is None:
        return UnreachableError(f"The store {address} does not answer: {reason}", hint=_KEPT)
    names = {"user": "USER", "database": "DATABASE"}
    if isinstance(address, StoreAddress):
        names |= {"user": address.user or "USER", "database": address.database or "DATABASE"}
    return UnreachableError(
        f"The store {address} can't be connected to: {reason}", hint=found.hint.format_map(names)
    )
