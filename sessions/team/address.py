"""The address of a team's store, and the user's choice between a store and files alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.core.locations import read_toml
from gistpoint.core.logs import replace_file
from gistpoint.core.text import whole_number
from gistpoint.sessions.team import FILE

_SCHEMES = ("postgresql", "postgres")
_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "service")
_PLACES = ("host", "port", "user", "dbname")
"""The parts of an address that may also be options, as in PostgreSQL's library."""
_OWN = ("sslcert", "sslkey")
"""The options that are personal to a user."""
_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")
"""Hosts on this machine; an empty host is the local socket."""
_REDIRECTIONS = ("PGSERVICE", "PGHOSTADDR")
"""The environment variables that override the host of an address."""
_VERIFIED = "verify-full"
_HALF_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_SHAPE = "It looks like postgresql://USER@HOST/DATABASE."


class TeamStoreError(UserError):
    """The team's store can't be used as requested."""


class UnreachableError(TeamStoreError):
    """The team's store does not answer; new data stay in files until they can be sent."""


class EmptyStoreError(TeamStoreError):
    """The database answers but has no gistpoint tables."""


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The location of a team's store.

    It contains no password, which libpq reads from PGPASSWORD, .pgpass or a service.
    """

    host: str
    """Empty for the local socket; an absolute path is the folder of a socket."""
    database: str
    user: str = ""
    port: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Whether data never leave this machine, whatever libpq's environment variables contain."""
        host = (self.host or os.environ.get("PGHOST", "")).lower()
        is_redirected = "service" in self.options or any(map(os.environ.get, _REDIRECTIONS))
        if is_redirected or "," in host:
            return False
        return host in _LOOPBACK or host.startswith("/")

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the connection for libpq, by name, including TLS."""
        found = {"dbname": self.database, **self.options}
        for name, value in (("host", self.host), ("user", self.user), ("port", str(self.port or ""))):
            if value:
                found[name] = value
        if not self.local:
            found["sslmode"] = _VERIFIED
        return found

    @property
    def url(self) -> str:
        """The address as a URL, which `parse_address` can read."""
        return self._with(self.options)

    @property
    def for_others(self) -> str:
        """The address for others to use, with USER for their name, and HOST for the server if it is local.

        Omitted parts are read from each person's environment or service file.
        """
        options = {name: value for name, value in self.options.items() if name not in _OWN}
        host = "HOST" if self.local else self.host
        return replace(self, user=self.user and "USER", host=host)._with(options)

    def __str__(self) -> str:
        """Return the address for display, including only the options that locate the store."""
        return self._with({name: value for name, value in self.options.items() if name == "service"})

    def _with(self, options: Mapping[str, str]) -> str:
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        # A socket, an IPv6 address or several hosts can only be given as an option.
        is_option = self.host.startswith("/") or any(mark in self.host for mark in ":,")
        place = self.host
        if is_option:
            place, options = "", {"host": self.host, **options}
        if self.port:
            place += f":{self.port}"
        query = f"?{urlencode(options, safe='/:,')}" if options else ""
        return f"postgresql://{user}{place}/{quote(self.database, safe='')}{query}"


def parse_address(text: str) -> StoreAddress:
    """Return the address in a URL.

    Raises `TeamStoreError` if the URL is invalid, contains a password or an unknown option, or would not
    verify a server on another machine; the message never contains the password.
    """
    url, port, options = _split_url(text)
    host = options.pop("host", "") or unquote(url.hostname or "")
    user = options.pop("user", "") or unquote(url.username or "")
    database = options.pop("dbname", "") or unquote(url.path.strip("/"))
    port = _port(options.pop("port", "")) or port
    is_printable = "".join((host, user, database, *options.values())).isprintable()
    has_blanks = any(mark.isspace() for mark in host)
    if not is_printable or has_blanks or _HALF_ESCAPE.search(text):
        raise _not_a_url()
    _require_known(options)
    if not database and "service" not in options:
        raise TeamStoreError("The address of the store contains no database.", hint=_SHAPE)
    address = StoreAddress(host, database, user, port, options)
    _require_verified(address)
    return address


_SECRETS = frozenset({"password", "passfile"})


def _split_url(text: str) -> tuple[SplitResult, int | None, dict[str, str]]:
    """Return the parts of a URL, its port (None if not given) and its options.

    Raises `TeamStoreError` if it is not a PostgreSQL URL, or contains a password.
    """
    try:
        url = urlsplit(text)
        port = url.port
        options = dict(parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query)))
    except ValueError:
        raise _not_a_url() from None
    if url.scheme not in _SCHEMES:
        raise TeamStoreError("The address of the store does not begin with postgresql://.", hint=_SHAPE)
    if url.password is not None or not _SECRETS.isdisjoint(options):
        raise TeamStoreError(
            "The address of the store contains a password, which would be stored in a file of gistpoint.",
            hint="Leave it out: PGPASSWORD, ~/.pgpass or a service file pass it to PostgreSQL's library.",
        )
    return url, port, options


def _require_verified(address: StoreAddress) -> None:
    """Raise `TeamStoreError` if a server on another machine need not prove its identity."""
    checked = address.options.get("sslmode", _VERIFIED)
    if not address.local and checked != _VERIFIED:
        raise TeamStoreError(
            f"The store on {address.host} would be used with sslmode={checked[:20]}, which does not"
            " verify the server's identity.",
            hint=(
                f"Leave sslmode out: it is {_VERIFIED} for every other machine. sslrootcert names the"
                " file of your certificate authority."
            ),
        )


def _not_a_url() -> TeamStoreError:
    return TeamStoreError("The address of the store is not a URL.", hint=_SHAPE)


def _port(text: str) -> int | None:
    """Return the number of a port; None for an empty string. Raises `TeamStoreError` for any other string."""
    if not text:
        return None
    port = whole_number(text)
    if port is None or not 0 < port < 2**16:
        raise TeamStoreError("The port in the store's address is not a number from 1 to 65535.", hint=_SHAPE)
    return port


def _require_known(options: Iterable[str]) -> None:
    """Raise `TeamStoreError` for an unknown option."""
    for name in options:
        if name not in _OPTIONS:
            raise TeamStoreError(
                "The store's address has the unknown option"
                f" {name[:40]!r}.{did_you_mean(name, _OPTIONS + _PLACES)}",
                hint=f"The known options are {', '.join(_OPTIONS + _PLACES)}.",
            )


def chosen_address(config: Path) -> StoreAddress | None:
    """Return the address of the store that the user has chosen; None for files alone.

    Raises `TeamStoreError` if the file with the choice can't be read, or does not contain a valid address.
    """
    path = config / FILE
    try:
        url = read_toml(path).get("url")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TeamStoreError(
            f"{FILE} in the config folder can't be read: {error}.",
            hint="`gistpoint store use` writes it again.",
        ) from error
    if not isinstance(url, str):
        raise TeamStoreError(
            f"{FILE} in the config folder contains no url.", hint="`gistpoint store use` writes it again."
        )
    return parse_address(url)


def choose(config: Path, url: str | None) -> None:
    """Record the user's choice of a store by its URL, which must be valid; None for files alone."""
    path = config / FILE
    if url is None:
        path.unlink(missing_ok=True)
        return
    config.mkdir(parents=True, exist_ok=True)
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    replace_file(path, f'url = "{quoted}"\n'.encode())
