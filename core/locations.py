"""Where the program stores files: the platform's data, config and cache folders, or folders below `GISTPOINT_HOME`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SETTINGS_FILE = "config.toml"
"""The user's own settings, in the config folder."""


def path_of(name: str) -> Path:
    """Return a typed path with `~` expanded as in a shell; unchanged if there is no such user."""
    path = Path(name)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


@dataclass(frozen=True, slots=True)
class Locations:
    """The folders of one user; each is created when it is needed."""

    data: Path
    config: Path
    cache: Path

    @classmethod
    def of_user(cls) -> Locations:
        """Return the folders of the user who runs the program."""
        home = os.environ.get("GISTPOINT_HOME")
        if home:
            root = path_of(home).absolute()
            return cls(root / "data", root / "config", root / "cache")
        import platformdirs

        return cls(
            platformdirs.user_data_path("gistpoint", appauthor=False),
            platformdirs.user_config_path("gistpoint", appauthor=False),
            platformdirs.user_cache_path("gistpoint", appauthor=False),
        )

    @property
    def tasks(self) -> Path:
        """Tasks that were made or imported."""
        return self.data / "tasks"

    @property
    def attempts(self) -> Path:
        """Journals of attempts."""
        return self.data / "attempts"

    @property
    def runs(self) -> Path:
        """Runs of agents, a folder each."""
        return self.data / "runs"

    @property
    def reviews(self) -> Path:
        """Reviews of runs, a file for each reviewer."""
        return self.data / "reviews"

    @property
    def imports(self) -> Path:
        """Results of importing public data sets, a file each."""
        return self.data / "imports"

    @property
    def unkept_corruptions(self) -> Path:
        """Rejected corruptions by models, a file each."""
        return self.data / "unkept-corruptions"

    @property
    def validations(self) -> Path:
        """Validations of tasks, a file for each validator, and their drafts."""
        return self.data / "validations"

    @property
    def glances(self) -> Path:
        """Functions of tasks read blind, a file for each reader."""
        return self.data / "glances"

    @property
    def external_results(self) -> Path:
        """Results of other harnesses, judged again: a file for each person who had them judged."""
        return self.data / "external-results"

    @property
    def demo(self) -> Path:
        """The demo's tasks, unpacked."""
        return self.cache / "demo"

    @property
    def environments(self) -> Path:
        """Environments of repositories, by the hash of their lock."""
        return self.cache / "environments"

    @property
    def runtimes(self) -> Path:
        """Runtimes: the part of this machine that runs can see."""
        return self.cache / "runtimes"

    @property
    def campaigns(self) -> Path:
        """Verdicts of campaigns on their candidates, a file each."""
        return self.data / "campaigns"

    @property
    def libraries(self) -> Path:
        """Measured libraries that tasks are made from."""
        return self.cache / "libraries"

    @property
    def left_places(self) -> Path:
        """Where solvers were when they left attempts, a file each; no part of what is recorded."""
        return self.cache / "left-places"

    @property
    def used_commands(self) -> Path:
        """How often each command of the palette was chosen."""
        return self.data / "commands.json"

    @property
    def proofs(self) -> Path:
        """What shows that this machine wrote a journal: never in the data folder, never shared or exported."""
        if self.config == self.data:  # macOS has one folder for both
            return self.data.with_name(f"{self.data.name}-heads")
        return self.config / "heads"

    @property
    def logs(self) -> Path:
        """Logs of crashes."""
        return self.data / "logs"
