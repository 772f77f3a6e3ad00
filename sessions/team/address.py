"""The address of a team's store, and which store this user has chosen: a database, or files alone."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.sessions.team import FILE

_SCHEMES = ("postgresql", "postgres")
_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "service")
_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")
"""Hosts on this machine; none at all is the local socket."""
_REDIRECTIONS = ("PGSERVICE", "PGHOSTADDR")
"""What the environment may name in place of an address's host."""
_VERIFIED = "verify-full"
_SHAPE = "It looks like postgresql://USER@HOST/DATABASE."


class TeamStoreError(UserError):
    """The team's store can't be used as asked."""


class UnreachableError(TeamStoreError):
    """The team's store does not answer now; what is written meanwhile stays in files and is sent later."""


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where a team's store is. It never holds a password: libpq takes that from PGPASSWORD, .pgpass or a service."""

    host: str
    """Empty for the local socket; an absolute path is the folder of a socket."""
    database: str
    user: str = ""
    port: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Whether what is sent surely never leaves this machine, whatever libpq's environment names."""
        host = (self.host or os.environ.get("PGHOST", "")).lower()
        if "service" in self.options or any(map(os.environ.get, _REDIRECTIONS)) or "," in host:
            return False
        return host in _LOOPBACK or host.startswith("/")

    @property
    def parameters(self) -> dict[str, str]:
        """The connection's parameters as libpq takes them, TLS included."""
        found = {"dbname": self.database, **self.options}
        for name, value in (("host", self.host), ("user", self.user), ("port", str(self.port or ""))):
            if value:
                found[name] = value
        if not self.local:
            found["sslmode"] = _VERIFIED
        return found

    @property
    def url(self) -> str:
        """The address as `parse_address` reads it."""
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        socket = self.host.startswith("/") or ":" in self.host  # or an IPv6 address
        options = {**({"host": self.host} if socket else {}), **self.options}
        place = f"{'' if socket else self.host}{f':{self.port}' if self.port else ''}"
        asked = f"?{urlencode(options)}" if options else ""
        return f"postgresql://{user}{place}/{quote(self.database, safe='')}{asked}"

    def __str__(self) -> str:
        """Return the address as it is shown, without options."""
        place = f"{self.user}@{self.host}" if self.user else self.host
        port = f":{self.port}" if self.port else ""
        return f"postgresql://{place}{port}/{self.database}"


def parse_address(text: str) -> StoreAddress:
    """Return the address that a URL names. Raises `TeamStoreError`, whose message never contains a password."""
    try:
        url = urlsplit(text)
        port = url.port
        options = dict(parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query)))
    except ValueError:
        raise TeamStoreError("The address of the store is no URL.", hint=_SHAPE) from None
    if url.scheme not in _SCHEMES:
        raise TeamStoreError("The address of the store does not begin with postgresql://.", hint=_SHAPE)
    if url.password is not None or "password" in options or "passfile" in options:
        raise TeamStoreError(
            "The address of the store holds a password, which would be stored in a file of gistpoint.",
            hint="Leave it out: PGPASSWORD, ~/.pgpass or a service file give it to PostgreSQL's library.",
        )
    host = options.pop("host", "") or unquote(url.hostname or "")
    for name in options:
        if name not in _OPTIONS:
            raise TeamStoreError(
                f"The store's address has the unknown option {name[:40]!r}.{did_you_mean(name, _OPTIONS)}",
                hint=f"It may have {', '.join(_OPTIONS)}.",
            )
    database = unquote(url.path.strip("/"))
    if not database and "service" not in options:
        raise TeamStoreError("The address of the store names no database.", hint=_SHAPE)
    address = StoreAddress(host, database, unquote(url.username or ""), port, options)
    if not address.local and options.get("sslmode", _VERIFIED) != _VERIFIED:
        raise TeamStoreError(
            f"The store on {host} would be used with sslmode={options['sslmode'][:20]}, which does not prove that it "
            "is the server it says it is.",
            hint=f"Leave sslmode out: it is {_VERIFIED} for every other machine. "
            "sslrootcert names the file of your authority.",
        )
    return address


def chosen_address(config: Path) -> StoreAddress | None:
    """Return the store that the user has chosen, None for files alone. Raises `TeamStoreError`."""
    path = config / FILE
    try:
        url = tomllib.loads(path.read_text(encoding="utf-8")).get("url")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TeamStoreError(
            f"{FILE} in the config folder can't be read: {error}.",
            hint="`gistpoint store use` writes it anew.",
        ) from error
    if not isinstance(url, str):
        raise TeamStoreError(f"{FILE} in the config folder has no url.", hint="`gistpoint store use` writes it anew.")
    return parse_address(url)


def choose(config: Path, url: str | None) -> None:
    """Remember the store of a URL, which `parse_address` has accepted; None for files alone."""
    path = config / FILE
    if url is None:
        path.unlink(missing_ok=True)
        return
    config.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{FILE}.{os.getpid()}.tmp")
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    part.write_text(f'url = "{quoted}"\n', encoding="utf-8")
    part.replace(path)
