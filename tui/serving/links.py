"""The links of participants, which determine who may connect, and to which tasks or study.

Only the hash of a link's token is stored. The token itself is the password and the cookie, so that a
restarted server has no session to remember (decision 98).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import UserError
from gistpoint.core.locations import read_regular, read_toml
from gistpoint.core.logs import replace_file, wait_for
from gistpoint.core.ports import TimeSource

FORMAT, VERSION = "gistpoint.links", 1
TOKEN_BYTES = 32


class LinksError(UserError):
    """Links that can't be read, or a link that does not exist."""


class Assigned(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tasks or the study assigned to a participant."""

    tasks: tuple[str, ...] = ()
    """The ids of the tasks, in order."""
    study: str = ""
    """The absolute path of the study's folder; empty for single tasks."""


class Link(msgspec.Struct, frozen=True):
    """A participant's link."""

    sha256: str
    """The hash of the token, in hexadecimal digits."""
    made_utc_ms: int
    assigned: Assigned


class _File(msgspec.Struct):
    format: str = FORMAT
    version: int = VERSION
    links: dict[str, Link] = msgspec.field(default_factory=dict)


class LinkBook:
    """The links in one file, which only its owner can read.

    Every method reads the file again, since several processes use it.
    """

    def __init__(self, path: Path, clock: TimeSource) -> None:
        self._path, self._clock = path, clock

    def all(self) -> Mapping[str, Link]:
        """Return the links by participant; empty without a file.

        Raises `LinksError` if the file can't be read, or if another version wrote it.
        """
        try:
            found = msgspec.json.decode(read_regular(self._path), type=decodable(_File))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise LinksError(f"{self._path} can't be read: {error}.", hint="Fix it, or remove it.") from error
        if (found.format, found.version) != (FORMAT, VERSION):
            raise LinksError(f"{self._path} was written by another version.", hint="Serve with that version.")
        return found.links

    def assign(self, people: Mapping[str, Assigned], *, renew: Iterable[str] = ()) -> Mapping[str, str]:
        """Assign tasks or a study. Return the tokens of new links by participant.

        The tokens can't be recovered later. Participants keep an existing link unless they are in `renew`.
        Raises `LinksError` if the file can't be read.
        """
        renewed, made = set(renew), dict[str, str]()
        with self._changing() as links:
            for who, assigned in people.items():
                old = links.get(who)
                if old is not None and who not in renewed:
                    links[who] = msgspec.structs.replace(old, assigned=assigned)
                    continue
                made[who] = secrets.token_urlsafe(TOKEN_BYTES)
                links[who] = Link(hash_of(made[who]), self._clock.utc_ms(), assigned)
        return made

    def revoke(self, who: str) -> None:
        """Remove a participant's link. Raises `LinksError` if there is none, or if the file can't be read."""
        with self._changing() as links:
            if links.pop(who, None) is None:
                raise LinksError(f"{who} has no link.", hint="`gistpoint serve links` lists who has one.")

    def holder(self, token: str) -> str:
        """Return the participant with a token; an empty string if there is none.

        Raises `LinksError` if the file can't be read.
        """
        wanted = hash_of(token)
        return next(
            (who for who, link in self.all().items() if secrets.compare_digest(link.sha256, wanted)), ""
        )

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Link]]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with wait_for(self._path.with_suffix(".lock")):
            links = dict(self.all())
            yield links
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(_File(links=links))), mode=0o600)


def hash_of(token: str) -> str:
    """Return the stored form of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_assignments(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the names of tasks by participant, from lines like `P01 = ["TASK", "TASK"]`.

    Raises `LinksError` if the file can't be read or names no participant, or if a participant has no tasks.
    """
    try:
        values = read_toml(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = 'It has lines such as P01 = ["TASK", "TASK"].'
        raise LinksError(f"{path} can't be read: {reason}.", hint=hint) from error
    found = {}
    for who, tasks in values.items():
        if (
            not isinstance(tasks, list)
            or not tasks
            or not all(isinstance(task, str) and task for task in tasks)
        ):
            raise LinksError(
                f"{path}: {who!r} needs a list of tasks.", hint=f'Such as: {who} = ["TASK", "TASK"]'
            )
        found[who] = tuple(tasks)
    if not found:
        raise LinksError(
            f"{path} does not name a participant.", hint='A line such as P01 = ["TASK", "TASK"] is one.'
        )
    return found
