"""The locations of the program's files, and the safe opening of files that others may have placed there.

Files are in the platform's data, config and cache folders, or in folders below `GISTPOINT_HOME`. In any of
them, and in a shared folder, there may be a pipe, a device or a link instead of a file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple

from gistpoint.core.nesting import is_nested

if TYPE_CHECKING:
    from io import BufferedReader

SETTINGS_FILE = "config.toml"
"""The file of the user's settings, in the config folder."""
UNSENT_TEXTS = "unsent-texts"
"""The folder of texts that were typed and not sent, in the data folder."""


def path_of(name: str) -> Path:
    """Return a path with `~` expanded as in a shell; unchanged if the user does not exist."""
    path = Path(name)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


# Not a dataclass, because `dataclasses` imports `inspect`, which takes a sixth of `gistpoint --help`'s time.
class Locations(NamedTuple):
    """The folders of one user, each created when needed."""

    data: Path
    config: Path
    cache: Path

    @classmethod
    def of_user(cls) -> Locations:
        """Return the folders of the current user."""
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
        """The folder of tasks made or imported."""
        return self.data / "tasks"

    @property
    def attempts(self) -> Path:
        """The folder of attempts' journals."""
        return self.data / "attempts"

    @property
    def runs(self) -> Path:
        """The folder of agents' runs, with a folder for each run."""
        return self.data / "runs"

    @property
    def reviews(self) -> Path:
        """The folder of run reviews, with a file for each reviewer."""
        return self.data / "reviews"

    @property
    def imports(self) -> Path:
        """The folder of results imported from public data sets, with a file for each data set."""
        return self.data / "imports"

    @property
    def unkept_corruptions(self) -> Path:
        """The folder of models' rejected corruptions, with a file for each corruption."""
        return self.data / "unkept-corruptions"

    @property
    def validations(self) -> Path:
        """The folder of task validations and their drafts, with a file for each validator."""
        return self.data / "validations"

    @property
    def glances(self) -> Path:
        """The folder of blind readings of tasks' functions, with a file for each reader."""
        return self.data / "glances"

    @property
    def judgements(self) -> Path:
        """The folder of judgements of runs, with a file for each model and person."""
        return self.data / "judgements"

    @property
    def external_results(self) -> Path:
        """The folder of other harnesses' results that were judged again, with a file for each person."""
        return self.data / "external-results"

    @property
    def demo(self) -> Path:
        """The folder of the demo's unpacked tasks."""
        return self.cache / "demo"

    @property
    def environments(self) -> Path:
        """The folder of repositories' environments, by the hash of their lock."""
        return self.cache / "environments"

    @property
    def runtimes(self) -> Path:
        """The folder of runtimes: the part of this machine that runs can see."""
        return self.cache / "runtimes"

    @property
    def campaigns(self) -> Path:
        """The folder of campaigns' verdicts on their candidates, with a file for each campaign."""
        return self.data / "campaigns"

    @property
    def libraries(self) -> Path:
        """The folder of measured libraries from which tasks are made."""
        return self.cache / "libraries"

    @property
    def lists(self) -> Path:
        """The folder of the indexes from which lists are shown, with a file for each kind of row."""
        return self.cache / "lists"

    @property
    def left_places(self) -> Path:
        """The folder of solvers' last positions, with a file for each attempt; not part of its record."""
        return self.cache / "left-places"

    @property
    def used_commands(self) -> Path:
        """The file with the number of uses of each command in the palette."""
        return self.data / "commands.json"

    @property
    def proofs(self) -> Path:
        """The folder of proofs that this machine wrote its journals; never shared or in the data folder."""
        if self.config == self.data:  # macOS has one folder for both
            return self.data.with_name(f"{self.data.name}-heads")
        return self.config / "heads"

    @property
    def unsent_texts(self) -> Path:
        """The folder of texts that were typed and not sent, with a file for each subject and person."""
        return self.data / UNSENT_TEXTS

    @property
    def logs(self) -> Path:
        """The folder of crash logs."""
        return self.data / "logs"


# Opening files that others may have placed


LARGEST_SETTINGS = 1 << 20
"""The maximum number of bytes in a file that people write by hand."""
LARGEST_RECORDS = 1 << 27
"""The maximum number of bytes in a file that the program itself writes, such as a log."""
_MANY_PARTS = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""Matches a dotted key with so many parts that `tomllib`, which takes quadratic time, would need hours."""

_LONGEST_TOML, _MOST_LINES = 1 << 24, 250_000
"""The maximum bytes and lines of a TOML document; a task with 40,000 failing tests has half as much.

Each line may be a table, which takes a thousand bytes and 10 µs: a file of 128 MB would fill the memory.
"""
_DEEPEST = 100
"""The depth from which a TOML document is refused; documents by people are nested less than ten deep."""


class OddFileError(OSError):
    """A file is refused: a pipe or a device, a link where none belongs, or too large."""


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600, *, links: bool = True) -> int:
    """Return a descriptor of a regular file, opened without waiting for the other end of a pipe.

    Unless `links`, the last part of the path must not be a link, which could lead to any of the user's files.
    Raises `OSError`: `OddFileError` for such a link, a pipe or a device, `IsADirectoryError` for a folder.
    """
    try:
        file = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW), mode)
    except OSError as error:
        if error.errno == errno.ELOOP and not links:
            raise OddFileError(error.errno, "it is a link", str(path)) from error
        if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
            raise OddFileError(error.errno, "it is not a regular file", str(path)) from error
        raise
    kind = os.fstat(file).st_mode
    if S_ISREG(kind):
        return file
    os.close(file)
    if S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OddFileError(errno.EINVAL, "it is not a regular file", str(path))


def opened_regular(path: Path, *, links: bool = True) -> BufferedReader:
    """Return a regular file opened for reading, without waiting for the other end of a pipe.

    Unless `links`, the last part of the path must not be a link. Raises `OSError`: `OddFileError` for such a
    link, a pipe or a device, `IsADirectoryError` for a folder.
    """
    return os.fdopen(open_regular(path, links=links), "rb")


def read_regular(path: Path, most: int = LARGEST_RECORDS, *, links: bool = True) -> bytes:
    """Return the bytes of a regular file.

    `links` and errors are as in `open_regular`; raises `OddFileError` if there are more than `most` bytes.
    """
    with opened_regular(path, links=links) as file:
        data = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    if data is None or len(data) > most:
        raise OddFileError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return data


def read_regular_text(
    path: Path, most: int = LARGEST_SETTINGS, *, links: bool = True, errors: str = "strict"
) -> str:
    """Return the UTF-8 text of a regular file, with universal newlines.

    `most` and `links` are as in `read_regular`. Raises `OSError` as it does, and `ValueError` for bytes that
    are not UTF-8, unless `errors` allows them.
    """
    text = read_regular(path, most, links=links).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def mark_used(folder: Path) -> None:
    """Update the time of a cache folder, by which `admin clean --unused` decides whether it is in use.

    Nothing changes if the cache belongs to another user.
    """
    with contextlib.suppress(OSError):
        os.utime(folder)


def lies_in(path: Path, root: Path) -> bool:
    """Return whether a path is in a folder after following all links; False for circular links."""
    try:
        return not is_circular(path) and path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def is_circular(path: Path) -> bool:
    """Return whether the links in a path form a cycle, which `resolve` ignores from Python 3.13 on."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML document by key. Raises `tomllib.TOMLDecodeError` for any fault."""
    import tomllib

    if len(text) > _LONGEST_TOML or text.count("\n") > _MOST_LINES:
        raise tomllib.TOMLDecodeError(
            f"It is longer than {_LONGEST_TOML:,} characters or {_MOST_LINES:,} lines"
        )
    if (many := _MANY_PARTS.search(text)) is not None:
        line = text.count("\n", 0, many.start()) + 1
        raise tomllib.TOMLDecodeError(f"A key has too many parts (at line {line}, column 1)")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("It is nested too deeply") from error
    except ValueError as error:
        raise tomllib.TOMLDecodeError("It contains an invalid number or date") from error
    # Dotted keys in tables within each other nest sixty times as deep as the parser recurses.
    if is_nested(values, _DEEPEST):
        raise tomllib.TOMLDecodeError("It is nested too deeply")
    return values


def read_toml(path: Path, most: int = LARGEST_SETTINGS, *, links: bool = True) -> dict[str, Any]:
    """Return the values of a TOML file by key.

    `most` and `links` are as in `read_regular`. Raises `OSError` as it does, and `ValueError` for text that
    is not UTF-8 or not TOML.
    """
    return parsed_toml(read_regular_text(path, most, links=links))
