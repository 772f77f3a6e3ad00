"""Pins requirements: every package by version and hash, from wheels, which are built if necessary.

uv prefers a version with a wheel over a newer version without one. Packages that have no wheel at all for
this Python are taken from their sdists. An sdist need not declare its requirements, so a wheel of each such
package is built in isolation, and uv is given its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import quoted, read_lock_line
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.environments.requirement import named_requirement
from gistpoint.sandbox.environments.sdists import from_source
from gistpoint.sandbox.environments.uv import KnownMetadata, UvResult, call_uv

_PINNED = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)")
_WHEELLESS = re.compile(r"Wheels\s+are\s+required\s+for\s+`([A-Za-z0-9._-]+)`")
_NAMED = re.compile(r"`([A-Za-z0-9._-]+(?:==[^`]+)?)`")
_BECAUSE = re.compile(r"Because ([A-Za-z0-9._-]+)")
_MOST_ROUNDS = 100
_COMPILE = (
    "pip",
    "compile",
    "-",
    "--generate-hashes",
    "--no-header",
    "--annotation-style",
    "split",
    "--quiet",
    "--no-emit-index-url",
    "--no-sources",
)
"""The arguments with which uv makes a lock; `read_lock` reads packages' parents from the annotations."""


@dataclass(frozen=True, slots=True)
class BuiltWheel:
    """A wheel that was built on this machine, its metadata, and the sha256 of its sdist."""

    path: Path
    metadata: KnownMetadata
    sdist: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """A lock, and the packages that require each of its packages (`parents`), by canonical name."""

    lines: tuple[str, ...]
    parents: dict[str, set[str]]


def pin(
    requirements: Iterable[str],
    python: str,
    wheel_of: Callable[[str, str], BuiltWheel],
    *,
    exclude_newer: str | None = None,
    cancel: CancelToken = NEVER,
) -> Pinned:
    """Return the lock of `requirements` for a version of Python, such as `3.11`.

    `wheel_of` builds a wheel for a name and a version that have none. Raises `EnvironmentBuildError`, which
    names what can't be pinned, and `CancelledError` if stopped.
    """
    given = "".join(f"{named_requirement(text)}\n" for text in requirements)
    arguments = [*_COMPILE, "--python-version", python]
    if exclude_newer:
        arguments.append(f"--exclude-newer={exclude_newer}")
    sourced: list[str] = []
    built: dict[tuple[str, str], BuiltWheel] = {}
    for _ in range(_MOST_ROUNDS):
        # The entries without a version are for packages that are not built yet: with metadata, uv has no
        # reason to build them, which would run untrusted code on the host (decision 38).
        known = [*map(KnownMetadata, sourced), *(wheel.metadata for wheel in built.values())]
        result = call_uv(
            [*arguments, *from_source(sourced)], standard_input=given, known=known, cancel=cancel
        )
        if not result.ok:
            more = [name for name in wheelless(result) if name not in sourced]
            if not more:
                raise build_failure(result, ())
            sourced += more
            continue
        lines, parents = read_lock(result.output)
        waiting = [key for key in map(_key, lines) if key[0] in sourced and key not in built]
        if not waiting:
            return Pinned(tuple(_checked(line, built) for line in lines), parents)
        # Their true requirements are known only once they are built, so uv is asked again.
        built.update({key: wheel_of(*key) for key in waiting})
    raise EnvironmentBuildError(
        "The requirements lead endlessly from one package without a wheel to another."
    )


def wheelless(result: UvResult) -> list[str]:
    """Return the canonical names of the packages for which uv reports that it found no usable wheel."""
    return list(dict.fromkeys(canonicalize_name(name) for name in _WHEELLESS.findall(result.log)))


def read_lock(text: str) -> tuple[list[str], dict[str, set[str]]]:
    """Return the lines of a compiled lock, each with its hashes, and the parents of each canonical name.

    Raises `EnvironmentBuildError` for a line that is not pinned.
    """
    lines: list[str] = []
    parents: dict[str, set[str]] = {}
    for raw in text.splitlines():
        line = raw.strip().removesuffix("\\").strip()
        begins_entry = _PINNED.match(line) is not None and not raw.startswith((" ", "#"))
        if begins_entry:
            lines.append(line)
            parents.setdefault(_key(line)[0], set())
        elif line.startswith("--hash=") and lines:
            lines[-1] += " " + line
        elif line.startswith("#") and lines:
            parent = line.lstrip("# ").removeprefix("via").strip()
            if parent and not parent.startswith("-"):
                parents[_key(lines[-1])[0]].add(canonicalize_name(parent.partition(" ")[0]))
        elif line:
            raise _not_pinned(line)
    return lines, parents


def build_failure(result: UvResult, lock: tuple[str, ...], kept: Path | None = None) -> EnvironmentBuildError:
    """Return the error for a failed call of uv.

    The error names the requirement that uv's log blames, and the reason. If `kept` is given, the log is
    written to that path, which the hint names.
    """
    culprit = culprit_of(result.log, lock)
    named = f" because of the requirement {culprit}" if culprit else ""
    hint = "Look at the log"
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(result.log, "utf-8")
        hint += f" in {kept}"
    message = f"The environment could not be built{named}: {_reason_in(result.log)[:400]}"
    hint += "; add or replace a requirement, or give an earlier date for the resolution."
    return EnvironmentBuildError(message, hint=hint, log=result.log)


def _reason_in(log: str) -> str:
    """Return the most informative line of uv's log: a cause, otherwise an error, otherwise the last line."""
    stripped = [line.strip(" ×├╰─▶") for line in log.splitlines()]
    lines = list(filter(None, stripped))
    causes = [
        line.removeprefix("cause: ") for line in lines if line.startswith("cause:") or "Because" in line
    ]
    errors = [line for line in lines if line.startswith("error")]
    found = [*(causes or errors), *lines[-1:], "uv did not give a reason"]
    return found[0]


def culprit_of(log: str, lock: tuple[str, ...]) -> str:
    """Return the requirement that uv's log blames; empty if the log blames none."""
    names = {line.partition("==")[0].strip().lower(): line.split(" ")[0] for line in lock}
    for match in _NAMED.finditer(log):
        text: str = match.group(1)
        name = text.partition("==")[0].lower()
        if "==" in text or name in names:
            return names.get(name, text)
    because = _BECAUSE.search(log)
    if because is None:
        return ""
    return because.group(1)


def _key(line: str) -> tuple[str, str]:
    """Return the canonical name and the version at the start of a line of a lock.

    Raises `EnvironmentBuildError` if the line does not begin with them.
    """
    match = _PINNED.match(line)
    if match is None:
        raise _not_pinned(line)
    return canonicalize_name(match.group(1)), match.group(2)


def _checked(line: str, built: Mapping[tuple[str, str], BuiltWheel]) -> str:
    """Return a line of a lock, with the hash of a built wheel's sdist if it has no hash.

    Raises `EnvironmentBuildError` if the line is not valid.
    """
    wheel = built.get(_key(line))
    complete = line
    if wheel is not None and "--hash=" not in line:
        complete = f"{line} --hash=sha256:{wheel.sdist}"
    # The grammar of a lock is defined once and applied here, before anything is installed (decision 38).
    if read_lock_line(complete) is None:
        raise _not_pinned(line)
    return complete


def _not_pinned(line: str) -> EnvironmentBuildError:
    return EnvironmentBuildError(
        f"A requirement can't be pinned by version and hash: {quoted(line)}.",
        hint="Name packages of an index, not addresses or folders.",
    )
