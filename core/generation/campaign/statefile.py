"""What a campaign has found out so far: one line per verdict, on the disk before it counts.

A campaign that was stopped, in whatever way, reads it and goes on behind the last whole line.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.generation.campaign.verdicts import Verdict

FORMAT = "gistpoint.campaign"
VERSION = 1


class StateFileError(UserError):
    """The state of a campaign can't be read, or another process is writing it."""


class StateFile:
    """The verdicts and tasks of one campaign, by key; a context that holds the file's lock."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """Open the state of the campaign that `about` describes, and make it where there is none.

        Raises `StateFileError` for a file of something else, and while another process has it open.
        """
        self.path = path
        self.verdicts: dict[str, Verdict] = {}
        self.controls: dict[str, dict[str, Any]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise StateFileError(
                f"Another process is making tasks with these settings: {path} is locked.",
                hint="Wait for it, or choose another --seed.",
            ) from error
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise
        if self._empty:
            self._append({"format": FORMAT, "version": VERSION, **about})

    def __enter__(self) -> StateFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict; it is on the disk when this returns. One that is known is left as it is."""
        if verdict.key not in self.verdicts:
            self._append({"type": "verdict", **verdict.to_json()})
            self.verdicts[verdict.key] = verdict

    def add_control(self, key: str, comparison: Mapping[str, Any]) -> None:
        """Keep what the whole suite said of a specimen."""
        self._append({"type": "control", "key": key, "comparison": dict(comparison)})
        self.controls[key] = dict(comparison)

    def _append(self, value: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> None:
        self._file.seek(0)
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self._file.truncate(whole)
        lines = data[:whole].splitlines()
        self._empty = not lines
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
                if number == 1:
                    self._check_head(value)
                elif value["type"] == "verdict":
                    verdict = Verdict.from_json(value)
                    self.verdicts[verdict.key] = verdict
                elif value["type"] == "control":
                    self.controls[value["key"]] = value["comparison"]
            except (ValueError, KeyError, TypeError) as error:
                raise StateFileError(
                    f"Line {number} of {self.path} can't be read: {error}.",
                    hint="Move the file away to begin again; tasks that were made stay.",
                ) from error

    def _check_head(self, value: Mapping[str, Any]) -> None:
        if value["format"] != FORMAT or value["version"] != VERSION:
            raise ValueError(f"it is {value['format']} version {value['version']}, not {FORMAT} version {VERSION}")
