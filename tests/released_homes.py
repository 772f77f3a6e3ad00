"""Homes that each release wrote, as backups in `tests/data/releases`, and what must be found in each.

`uv run tests/released_homes.py VERSION` writes the backup of a release with the `gistpoint` of PATH: both recorded
demos are played in a new home. Its row in `RELEASES` is written by hand. Neither ever changes afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PLACE = Path(__file__).parent / "data" / "releases"


@dataclass(frozen=True)
class ReleasedHome:
    """A home that a version wrote."""

    version: str
    solved: dict[str, bool]
    """Whether each attempt solved its task, by the attempt's id."""

    @property
    def archive(self) -> Path:
        return PLACE / f"{self.version}.tar.zst"


RELEASES = (ReleasedHome("before-0.1.0", {"01m8n43bpvvcwarp40cs": True, "01m8n42byvjmtn4pkycs": True}),)
"""One row for each release, oldest first. The first home was written before the first release."""


def write(version: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "GISTPOINT_HOME": home}
        for words in (
            ["demo", "--play", "--speed", "1000"],
            ["demo", "--play", "whole-railway", "--speed", "1000"],
            ["admin", "backup", str(PLACE / f"{version}.tar.zst")],
            ["attempt", "list"],
        ):
            subprocess.run(["gistpoint", *words], env=environment, check=True)


if __name__ == "__main__":
    write(sys.argv[1])
