"""Environments of repositories: built once by uv from a lock, kept by its content, never changed afterwards.

The package under repair is in none of them: it is imported from the workspace, so that there is one copy of it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.builder import UvResult, call_uv
from gistpoint.sandbox.envcache import build_once, remove_frozen
from gistpoint.sandbox.hostenvironment import host_environment
from gistpoint.sandbox.interpreters import find_interpreter

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken
    from gistpoint.core.ports import EnvironmentPins

_LAYOUT = "1"
_NAMED = re.compile(r"`([A-Za-z0-9._-]+(?:==[^`]+)?)`")
_BECAUSE = re.compile(r"Because ([A-Za-z0-9._-]+)")


class EnvironmentStore:
    """The environments below one cache folder."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._folder = cache / "environments"

    def get(
        self,
        pins: EnvironmentPins,
        *,
        on_line: Callable[[str], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Environment:
        """Return the environment of `pins`, built if it is not there yet; an empty lock means pytest alone.

        Raises `EnvironmentBuildError`, which names the requirement and carries the builder's log, and
        `CancelledError`.
        """
        if not pins.lock:
            return host_environment(self._cache)
        interpreter = find_interpreter(pins.python)

        def build(folder: Path) -> None:
            self._build(folder, pins, interpreter.path, on_line, cancel)

        folder = build_once(self._folder / self.key(pins), build, cancel)
        return Environment(folder, interpreter.path, interpreter.prefix, interpreter.version)

    def key(self, pins: EnvironmentPins) -> str:
        """Return the name of the folder that holds the environment of `pins` on this machine."""
        parts = (_LAYOUT, str(find_interpreter(pins.python).path), pins.python, *pins.lock)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]

    def remove_all(self) -> int:
        """Remove every environment and return how many there were; runs that use one must have ended."""
        folders = [path for path in self._folder.glob("*") if path.is_dir()] if self._folder.is_dir() else []
        for folder in folders:
            remove_frozen(folder)
        return len(folders)

    def _build(
        self,
        folder: Path,
        pins: EnvironmentPins,
        interpreter: Path,
        on_line: Callable[[str], None] | None,
        cancel: CancelToken | None,
    ) -> None:
        made = call_uv(
            ["venv", "--no-project", "--relocatable", "--python", str(interpreter), str(folder)],
            on_line=on_line,
            cancel=cancel,
        )
        if not made.ok:
            raise self._failure(made, pins)
        # Copies, not links: an environment that code could write to must not reach uv's cache.
        synced = call_uv(
            ["pip", "sync", "--python", str(folder / "bin" / "python"), "--require-hashes", "--link-mode", "copy",
             "--compile-bytecode", "--no-allow-empty-requirements", "-"],
            standard_input="\n".join(pins.lock) + "\n",
            on_line=on_line,
            cancel=cancel,
        )  # fmt: skip
        if not synced.ok:
            raise self._failure(synced, pins)

    def _failure(self, result: UvResult, pins: EnvironmentPins) -> EnvironmentBuildError:
        kept = self._cache / "logs" / f"{self.key(pins)}.log"
        return build_failure(result, pins.lock, kept)


def build_failure(result: UvResult, lock: tuple[str, ...], kept: Path | None) -> EnvironmentBuildError:
    """Word a failed call of uv: the requirement that it names, its reason, and where the log is."""
    culprit = culprit_of(result.log, lock)
    named = f" because of the requirement {culprit}" if culprit else ""
    lines = [line.strip(" ×├╰─▶") for line in result.log.splitlines() if line.strip(" ×├╰─▶")]
    causes = [line.removeprefix("cause: ") for line in lines if line.startswith("cause:") or "Because" in line]
    reason = next(iter(causes or [line for line in lines if line.startswith("error")]), "")
    hint = "Look at the log"
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(result.log, "utf-8")
        hint += f" in {kept}"
    message = f"The environment could not be built{named}: {(reason or (lines or ['uv gave no reason'])[-1])[:400]}"
    hint += "; a requirement can be added or replaced, or an earlier date given for the resolution."
    return EnvironmentBuildError(message, hint=hint, log=result.log)


def culprit_of(log: str, lock: tuple[str, ...]) -> str:
    """Return the requirement that uv's log blames, or an empty text."""
    names = {line.partition("==")[0].strip().lower(): line.split(" ")[0] for line in lock}
    for match in _NAMED.finditer(log):
        name = match.group(1).partition("==")[0].lower()
        if "==" in match.group(1) or name in names:
            return names.get(name, match.group(1))
    because = _BECAUSE.search(log)
    return because.group(1) if because else ""
