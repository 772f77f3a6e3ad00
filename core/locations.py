"""Where the program keeps things: the platform's data, config and cache folders, or all below `GISTPOINT_HOME`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


def path_of(name: str) -> Path:
    """Return the path that somebody has typed, with `~` as a shell reads it: as it stands if there is no such user."""
    path = Path(name)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


@dataclass(frozen=True, slots=True)
class Locations:
    """The folders of one user; none is made before it is needed."""

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
        """Tasks that were made or brought here."""
        return self.data / "tasks"

    @property
    def attempts(self) -> Path:
        """Journals of attempts."""
        return self.data / "attempts"

    @property
    def reviews(self) -> Path:
        """What reviewers said about runs, a file each."""
        return self.data / "reviews"

    @property
    def imports(self) -> Path:
        """What came of the records of public data sets, a file each."""
        return self.data / "imports"

    @property
    def unkept_corruptions(self) -> Path:
        """What models made of functions that no task came of, a file each."""
        return self.data / "unkept-corruptions"

    @property
    def validations(self) -> Path:
        """What validators said about tasks, a file each, and their drafts."""
        return self.data / "validations"

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
        """What runs are shown of this machine, laid out."""
        return self.cache / "runtimes"

    @property
    def campaigns(self) -> Path:
        """What campaigns found out about their candidates, a file each."""
        return self.data / "campaigns"

    @property
    def libraries(self) -> Path:
        """What is known of libraries that tasks are made of."""
        return self.cache / "libraries"

    @property
    def logs(self) -> Path:
        """Logs of crashes."""
        return self.data / "logs"
