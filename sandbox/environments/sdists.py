"""Source distributions: found through the user's index, fetched with their hash checked, and none of their code run."""

from __future__ import annotations

import base64
import hashlib
import http.client
import netrc
import os
import re
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from gistpoint.core.errors import SourceError
from gistpoint.sandbox.environments.projects import Table, table, text_of
from gistpoint.sandbox.environments.uv import WHEELS_ALONE, KnownMetadata, call_uv

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken


_MAX_SDIST = 256 << 20
_BLOCK = 1 << 16
_TIMEOUT_S = 60
_INDEXES = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")


@dataclass(frozen=True, slots=True)
class Sdist:
    """A source distribution as an index describes it."""

    name: str
    version: str
    address: str
    sha256: str
    """Empty if the index gives none."""

    @property
    def file(self) -> str:
        """The name of its file."""
        return Path(urllib.parse.urlparse(self.address).path).name


def from_source(names: Sequence[str]) -> list[str]:
    """Return the arguments by which uv takes `names` from their sdists and all others from wheels.

    A call that has them must tell uv the metadata of `names`, in every version: it would build what it does not know.
    """
    return [*WHEELS_ALONE, *(f"--no-binary={name}" for name in names)]


def locate(pinned: str, name: str, *, python: str | None = None, cancel: CancelToken | None = None) -> Sdist:
    """Ask uv, and so the user's own index, for the sdist of `pinned` (`name==version`). Raises `SourceError`."""
    arguments = ["pip", "compile", "-", "--no-deps", "--format", "pylock.toml", "--no-header", "--quiet"]
    arguments += [*from_source([name]), *(("--python-version", python) if python else ())]
    known = [KnownMetadata(name)]
    result = call_uv(arguments, standard_input=pinned + "\n", known=known, cancel=cancel, timeout_s=300)
    if not result.ok:
        reason = next((line.strip() for line in result.log.splitlines() if "Because" in line), result.log.strip())
        instead = "Give its git repository at a commit instead."
        hint = instead if "no source distribution" in reason else "Is the version right, the index reachable?"
        raise SourceError(f"{pinned} can't be found: {reason[:300]}", hint=hint)
    packages = tomllib.loads(result.output).get("packages", [])
    for package in packages if isinstance(packages, list) else ():
        if canonicalize_name(text_of(package, "name")) == canonicalize_name(name):
            return _described(package)
    raise SourceError(f"{pinned} can't be found: the index does not describe it.")


def _described(package: Table) -> Sdist:
    sdist = table(package, "sdist")
    address = text_of(sdist, "url") or text_of(sdist, "path")
    hashes = table(sdist, "hashes")
    return Sdist(text_of(package, "name"), text_of(package, "version"), address, text_of(hashes, "sha256"))


def download(sdist: Sdist, into: Path, cancel: CancelToken | None = None) -> tuple[Path, str]:
    """Fetch an sdist below `into`; return the archive and its sha256. Raises `SourceError` and `CancelledError`."""
    target = into / sdist.file
    url = sdist.address if "://" in sdist.address else Path(sdist.address).resolve().as_uri()
    if urllib.parse.urlparse(url).scheme not in ("https", "http", "file"):
        raise SourceError(f"The index gives an address that can't be fetched: {url[:200]}.")
    digest, size = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(_request(url), timeout=_TIMEOUT_S) as answer, target.open("wb") as file:
            while block := answer.read(_BLOCK):
                if cancel is not None:
                    cancel.check()
                size += len(block)
                if size > _MAX_SDIST:
                    raise SourceError(f"{target.name} is larger than {_MAX_SDIST >> 20} MiB.")
                digest.update(block)
                file.write(block)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SourceError(f"{target.name} can't be fetched: {error}.", hint="Is the index reachable?") from error
    if sdist.sha256 and digest.hexdigest() != sdist.sha256:
        raise SourceError(f"{target.name} is not what its index describes: its sha256 is {digest.hexdigest()}.")
    return target, digest.hexdigest()


def _request(url: str) -> urllib.request.Request:
    """Return a request with what the user gave uv for that host; a redirection to another one gets none of it."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(urllib.parse.urlunsplit(parts._replace(netloc=host)))
    login = _login(parts) or next((_login(index) for index in _indexes() if _same_host(index, parts)), None)
    login = login or _netrc_login(parts.hostname or "")
    if login and parts.scheme in ("http", "https"):
        code = base64.b64encode(":".join(login).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {code}")
    return request


def _indexes() -> Iterator[urllib.parse.SplitResult]:
    """Yield the addresses of indexes in the environment, with the logins that are given for them by name."""
    for variable in _INDEXES:
        for word in os.environ.get(variable, "").split():
            name, _, address = word.rpartition("=") if re.match(r"[A-Za-z0-9_.-]+=", word) else ("", "", word)
            parts = urllib.parse.urlsplit(address)
            key = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
            user, password = os.environ.get(f"{key}_USERNAME", ""), os.environ.get(f"{key}_PASSWORD", "")
            if name and (user or password):
                login = f"{urllib.parse.quote(user, '')}:{urllib.parse.quote(password, '')}@"
                parts = parts._replace(netloc=login + parts.netloc.rpartition("@")[2])
            yield parts


def _same_host(one: urllib.parse.SplitResult, other: urllib.parse.SplitResult) -> bool:
    return (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)


def _login(parts: urllib.parse.SplitResult) -> tuple[str, str] | None:
    if not parts.username and not parts.password:
        return None
    return urllib.parse.unquote(parts.username or ""), urllib.parse.unquote(parts.password or "")


def _netrc_login(host: str) -> tuple[str, str] | None:
    try:
        found = netrc.netrc(os.environ.get("NETRC") or None).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    return (found[0], found[2] or "") if found else None
