"""The pins of an environment and their permitted values, checked before anything is installed.

Pins come with tasks from other people, and are used as arguments of uv, as an interpreter's name and as
paths; they are also checked when a task is read.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gistpoint.core.text import visible_line


@dataclass(frozen=True, slots=True)
class ImagePins:
    """A Docker image that is the environment instead of a lock; the repository is in one of its folders."""

    name: str
    """The name in a registry, without a tag."""
    digest: str
    """The digest in a registry (`sha256:` and 64 hexadecimal digits), or without one, the image's id."""
    platform: str
    """The platform, `linux/amd64` or `linux/arm64`."""
    workdir: str
    """The folder from which the tree was taken, empty at the start of every run."""
    python: str
    """The path of the interpreter in the image."""
    environment: tuple[str, ...] = ()
    """The image's variables for runs, as `NAME=value`; only names in `PASSED_ON` are possible."""

    @property
    def reference(self) -> str:
        """The reference, `NAME@sha256:DIGEST`."""
        return f"{self.name}@{self.digest}"


PASSED_ON = (
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "MPLBACKEND",
    "OMP_NUM_THREADS",
)
"""The image's variables that its programs may need; none configures Python or is known to contain secrets."""
PLATFORMS = ("linux/amd64", "linux/arm64")


@dataclass(frozen=True, slots=True)
class EnvironmentPins:
    """The pinned environment of a repository's suite, the same wherever and whenever it is built."""

    python: str = "3.11"
    lock: tuple[str, ...] = ()
    """The requirement lines `name==version` with hashes, including pytest and its plugins."""
    resolved: str = ""
    """The date of the resolution, in ISO 8601."""
    import_roots: tuple[str, ...] = (".",)
    """The folders of the tree from which its packages are imported, such as `src`."""
    plugins: tuple[str, ...] = ()
    """The pytest plugins to load by name; none is loaded by its entry point."""
    pytest_args: tuple[str, ...] = ()
    build_steps: tuple[str, ...] = ()
    """The shell commands to run in the workspace before the tests of every run, in the same isolation."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """`name` and `version` of the distribution under repair, and `entry_points`, for importlib.metadata."""
    image: ImagePins | None = None
    """The image that replaces the lock; None for an environment installed from the lock."""


PYTHON = re.compile(r"3\.[0-9]{1,3}")
"""The pattern of an interpreter's version: other names that uv or pyenv accept may be paths or addresses."""
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"[A-Za-z0-9](?:[A-Za-z0-9._!+-]*[A-Za-z0-9])?"
_TEXT = r"(?:[A-Za-z0-9.,_+!*-]| (?!-))*+"  # no hyphen after a space, which would begin an option
_TOKENS = (rf"'{_TEXT}'", rf'"{_TEXT}"', r"[a-z_]++", r"[<>=!~]++", r"[()]")  # those of PEP 508's markers
_LINE = re.compile(
    rf"(?P<name>{_NAME})==(?P<version>{_VERSION})"
    rf"(?: *;(?P<marker>(?: *+(?:{'|'.join(_TOKENS)}))++))?"
    r"(?P<hashes>(?: +--hash=sha256:[0-9a-f]{64})+)"
)
_QUOTED = 120
IMAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,254}")
"""The name of an image, possibly with the port of its registry."""
IMAGE_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class LockLine:
    """One pinned distribution of a lock."""

    name: str
    version: str
    hashes: tuple[str, ...]
    """The hexadecimal SHA-256 of each file that may be installed for it; never empty."""
    marker: str = ""
    """The PEP 508 marker of the environments that need it; empty for all."""

    def __str__(self) -> str:
        marker = f" ; {self.marker}" if self.marker else ""
        return f"{self.name}=={self.version}{marker}" + "".join(
            f" --hash=sha256:{digest}" for digest in self.hashes
        )


def read_lock_line(text: str) -> LockLine | None:
    """Return the distribution that a line of a lock pins; None unless the line is valid.

    A line is `name==version`, then a marker or nothing, then at least one hash.
    """
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    hashes = tuple(word.removeprefix("--hash=sha256:") for word in match["hashes"].split())
    return LockLine(match["name"], match["version"], hashes, (match["marker"] or "").strip())


def fault_in(pins: EnvironmentPins) -> str:
    """Return a sentence with the key and value of the first unusable pin; empty if all are usable."""
    if not PYTHON.fullmatch(pins.python) and (pins.python or pins.lock):
        return _fault("python", "not a version of Python such as '3.11'", pins.python)
    return (
        _first_fault("lock", pins.lock, "not a line of the form name==version --hash=sha256:...", _is_pinned)
        or _first_fault("import_roots", pins.import_roots, "not a folder inside the repository", is_inside)
        or _fault_in_arguments(pins.pytest_args)
        or _first_fault("plugins", pins.plugins, "not the name of a pytest plugin", _is_plugin)
        or (_fault_in_image(pins, pins.image) if pins.image is not None else "")
    )


def _fault_in_image(pins: EnvironmentPins, image: ImagePins) -> str:
    if pins.lock:
        return (
            "the keys 'environment.lock' and 'environment.image' exclude each other: an image is the"
            " environment."
        )
    if not PYTHON.fullmatch(pins.python):
        return _fault("python", "not a version of Python such as '3.11'", pins.python)
    checks = (
        ("name", image.name, "not the name of an image", bool(IMAGE_NAME.fullmatch(image.name))),
        (
            "digest",
            image.digest,
            "not a digest such as 'sha256:...'",
            bool(IMAGE_DIGEST.fullmatch(image.digest)),
        ),
        ("platform", image.platform, f"none of {', '.join(PLATFORMS)}", image.platform in PLATFORMS),
        ("workdir", image.workdir, "not a folder of an image below its root", is_image_path(image.workdir)),
        ("python", image.python, "not the path of an interpreter outside the workdir", is_interpreter(image)),
    )
    for key, value, what, holds in checks:
        if not holds:
            return _fault(f"image.{key}", what, value)
    return _first_fault(
        "image.environment", image.environment, "not a variable that is passed on", _is_passed_on
    )


def quoted(text: str) -> str:
    """Return text from outside, quoted for messages: one line, visible, and bounded."""
    return repr(visible_line(text if len(text) <= _QUOTED else text[:_QUOTED] + "…"))


def _first_fault(key: str, values: Iterable[str], what: str, holds: Callable[[str], bool]) -> str:
    return next(
        (_fault(f"{key}[{n}]", what, value) for n, value in enumerate(values) if not holds(value)), ""
    )


def _fault(key: str, what: str, value: str) -> str:
    return f"the key 'environment.{key}' is {what}: {quoted(value)}."


def _is_pinned(line: str) -> bool:
    return read_lock_line(line) is not None


def is_inside(root: str) -> bool:
    """Return whether `root` is a printable relative path without `..` and without the separator of PATH."""
    return (
        root.isprintable()
        and not root.startswith("/")
        and os.pathsep not in root
        and ".." not in root.split("/")
    )


def is_image_path(path: str) -> bool:
    """Return whether `path` is absolute, normalised, printable, and not the root."""
    return path.isprintable() and path.startswith("/") and posixpath.normpath(path) == path and len(path) > 1


def is_interpreter(image: ImagePins) -> bool:
    """Return whether the image's interpreter has a usable path outside of the workdir.

    The workdir is empty when a run starts.
    """
    return is_image_path(image.python) and not f"{image.python}/".startswith(f"{image.workdir}/")


def _is_passed_on(variable: str) -> bool:
    name, equals, _ = variable.partition("=")
    return bool(equals) and name in PASSED_ON and "\0" not in variable


_PLACES = ("-c", "--config-file", "--rootdir", "--confcutdir")
"""The options by which pytest would run the suite of another folder."""
_SETTINGS = ("-o", "--override-ini")
_OPTIONS = (*_PLACES, *_SETTINGS, "-p", "--pdbcls")
_WITH_VALUE = "kmrW"
"""Pytest's other short options whose value can follow in the same word. Unknown letters count as flags."""
_ARGUMENTS, _IMPORTED = "addopts", "pythonpath"
"""The settings that contain further arguments, and folders from which modules are imported."""


def plugins_in(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the names of the plugins that `-p` options in pytest's arguments load, as they are written.

    Includes those in the setting `addopts` of `-o` options.
    """
    return (name for option, name in _options_in(arguments) if option == "-p" and not name.startswith("no:"))


def folders_in(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the folders that pytest's arguments add to the import path, by the setting `pythonpath`."""
    return (folder for option, folder in _options_in(arguments) if option == _IMPORTED)


def _fault_in_arguments(arguments: tuple[str, ...]) -> str:
    for option, value in _options_in(arguments):
        if not value:  # the value could be a word that a run adds
            return _fault("pytest_args", "an option without its value", option)
        if option == "@":
            return _fault("pytest_args", "further arguments in a place where they are not checked", value)
        if option == "--pdbcls":
            return _fault("pytest_args", "a debugger, which could run the tests in its own way", value)
        if option in (*_PLACES, _IMPORTED) and not _is_place(value):
            return _fault("pytest_args", "not a place inside the repository", value)
    return ""


def _options_in(arguments: Iterable[str], *, nested: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each option in pytest's arguments that can load code or leave the repository, and its value.

    Every word is read as an option, also after `--` and where it could be a value, because pytest reads some
    options in this way, before all others (decision 198). The option is `@` for arguments that can't be read
    here: in a file, or in a setting in a setting.
    """
    for option, value in _words_read(arguments):
        name, _, setting = (part.strip() for part in value.partition("="))
        if option not in _SETTINGS or not value:
            yield option, value
        elif name == _IMPORTED:
            yield from ((_IMPORTED, folder) for folder in _split(setting))
        elif name == _ARGUMENTS and nested:
            yield "@", value
        elif name == _ARGUMENTS:
            yield from _options_in(_split(setting), nested=True)


def _words_read(arguments: Iterable[str]) -> Iterator[tuple[str, str]]:
    words = tuple(arguments)
    for at, word in enumerate(words, 1):
        if word.startswith("@"):
            yield "@", word
        option, value = _read(word)
        if option in _OPTIONS:
            yield option, ("".join(words[at : at + 1]) if value is None else value).strip()


def _read(word: str) -> tuple[str, str | None]:
    """Return the option in a word, and its value; None if the value is the next word.

    Any long option is returned, because pytest accepts no abbreviations. Of short options in one word, the
    first that is in `_OPTIONS` is returned; flags may precede it, and its value follows it, with or without
    `=`, as in `-qcx.ini`. The option is empty if the word has none.
    """
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    letters = word.removeprefix("-")
    for at, letter in enumerate(letters if word.startswith("-") else ""):
        if f"-{letter}" in _OPTIONS:
            return f"-{letter}", letters[at + 1 :].removeprefix("=") or None
        if letter in _WITH_VALUE:
            break
    return "", None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # pytest refuses it as well
        return text.split()


def _is_place(path: str) -> bool:
    # Pytest replaces variables of the environment in some paths.
    return path == os.devnull or (bool(path) and "$" not in path and is_inside(path))


def _is_plugin(name: str) -> bool:
    return name.isprintable() and name[:1] not in ("", "-", " ")
