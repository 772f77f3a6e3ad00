"""Plugins: additions by other packages in gistpoint's environment, declared by entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gistpoint.core.errors import UserError
from gistpoint.core.text import shortened

if TYPE_CHECKING:
    from importlib import metadata

GROUPS = (
    "gistpoint.backends",
    "gistpoint.exporters",
    "gistpoint.formats",
    "gistpoint.kinds",
    "gistpoint.operators",
    "gistpoint.scaffolds",
    "gistpoint.task_exporters",
)
"""The groups of entry points that gistpoint reads."""

_GROUP_LINE = b"[gistpoint."
"""The beginning of the line that names one of the groups in a package's file of entries."""
_PACKAGES = ("dist-info", "egg-info")
"""The suffixes of the folders that describe packages; an egg's folder is named `EGG-INFO`."""
Found = TypeVar("Found")

HINT = "Ask the author of the plugin, or uninstall its package."


Check = Callable[[Any], str]
"""Returns why an object does not fit its group, in a few words; empty if it does."""


class PluginError(UserError):
    """A plugin can't be loaded; the message names it, its package and the reason `why`."""

    def __init__(self, entry: metadata.EntryPoint, why: str) -> None:
        package, self.why = package_of(entry), why
        where = f"{entry.group}, from {package}" if package else entry.group
        super().__init__(f"The plugin {entry.name!r} ({where}) can't be loaded: {self.why}.", hint=HINT)


def declared(group: str) -> list[metadata.EntryPoint]:
    """Return the entries of a group from all readable packages, ordered by name, without loading them."""
    if not _may_be_declared():
        return []
    from importlib import metadata

    try:
        found = list(metadata.entry_points(group=group))
    except Exception:  # from any package, even one without a plugin
        found = [
            entry for entries in _readable_entries().values() for entry in entries if entry.group == group
        ]
    return sorted(found, key=lambda entry: (entry.name, entry.value))


def _may_be_declared() -> bool:
    """Return whether a package may declare a plugin: whether its file of entries names one of the groups.

    `importlib.metadata` takes several times as long to read all packages' entries, and would delay the first
    paint (decision 216). True if packages may be outside of the folders on the path.
    """
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    try:
        return any(_names_a_group(Path(place)) for place in sys.path)
    except OSError:
        return True


def _names_a_group(place: Path) -> bool:
    """Return whether a package in a folder names a group. Raises `OSError` if its packages can't be read."""
    if not place.exists():
        return False
    for package in place.iterdir():
        if package.name.lower().endswith(_PACKAGES):
            with suppress(FileNotFoundError, NotADirectoryError):
                if _GROUP_LINE in (package / "entry_points.txt").read_bytes():
                    return True
    return False


def named(group: str, name: str) -> metadata.EntryPoint | None:
    """Return the entry of a group with a name, without loading it; None if there is none.

    Raises `PluginError` if several packages declare it, because their order must not decide which was meant.
    """
    found = [entry for entry in declared(group) if entry.name == name]
    if len({entry.value for entry in found}) > 1:
        raise PluginError(found[0], f"{package_of(found[1]) or 'another package'} declares it as well")
    return found[0] if found else None


def unreadable() -> dict[str, str]:
    """Return why the entries of some packages can't be read, by package; empty if all can be read."""
    from importlib import metadata

    try:
        metadata.entry_points()
    except Exception:
        why: dict[str, str] = {}
        _readable_entries(why)
        return why
    return {}


def _readable_entries(why_not: dict[str, str] | None = None) -> dict[str, list[metadata.EntryPoint]]:
    """Return the readable entries of each package, and add the reasons for others to `why_not`."""
    from importlib import metadata

    found: dict[str, list[metadata.EntryPoint]] = {}
    for package in metadata.distributions():
        try:
            name = str(package.metadata["Name"])
        except Exception:
            name = "a package without a name"
        try:
            # If several packages have the same name, Python imports the first.
            found.setdefault(name, list(package.entry_points))
        except Exception as error:
            if why_not is not None:
                why_not[name] = described(error)
    return found


def package_of(entry: metadata.EntryPoint) -> str:
    """Return the name and the version of the package that declares an entry; empty if unknown."""
    if entry.dist is None:
        return ""
    try:
        name, version = entry.dist.name, entry.dist.version
    except Exception:
        return ""
    return f"{name} {version}" if name and version else str(name or "")


def described(error: BaseException) -> str:
    """Return the type and the bounded text of another package's exception; its `__str__` may fail."""
    try:
        text = str(error)
    except Exception:
        text = "its text can't be read"
    return shortened(f"{type(error).__name__}: {text}", _LONGEST)


_LONGEST = 500
"""The maximum number of characters in an exception's text."""


def instance_of(kind: type) -> Check:
    """Return a check that an object is an instance of a class."""

    def check(loaded: Any) -> str:
        return "" if isinstance(loaded, kind) else f"it is a {type(loaded).__name__}, not a {kind.__name__}"

    return check


def is_callable(loaded: Any) -> str:
    """Return why an object can't be called, in a few words; empty if it can."""
    return "" if callable(loaded) else f"it is a {type(loaded).__name__}, which can't be called"


def load(entry: metadata.EntryPoint, check: Check) -> Any:
    """Load an entry point, and return its object.

    Raises `PluginError` if the check fails, and for anything that the package raises except
    `KeyboardInterrupt`. That need not be an `Exception`: it might be an exit of the program, or a panic of a
    package in another language.
    """
    try:
        loaded = entry.load()
        why = check(loaded)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it is another package's code, whose exception explains the failure
        raise PluginError(entry, described(error)) from error
    if why:
        raise PluginError(entry, why)
    return loaded


class PluginFailedError(UserError):
    """A loaded plugin has failed; the message names it, its package and the exception."""

    def __init__(self, entry: metadata.EntryPoint, error: BaseException) -> None:
        package = package_of(entry)
        where = f"{entry.group}, from {package}" if package else entry.group
        super().__init__(f"The plugin {entry.name!r} ({where}) failed: {described(error)}.", hint=HINT)


def guarded(entry: metadata.EntryPoint, call: Callable[[], Found]) -> Found:
    """Call a plugin's code and return its result.

    Raises `PluginFailedError` for anything that the code raises, including `SystemExit`, except `UserError`
    and `KeyboardInterrupt`.
    """
    try:
        return call()
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise PluginFailedError(entry, error) from error


def pieces_of(
    entry: metadata.EntryPoint, write: Callable[..., Iterable[Any]], fault_of: Check, *given: Any
) -> Iterator[Any]:
    """Yield the pieces that a plugin's function `write` yields for the arguments `given`.

    Raises `PluginFailedError` if `fault_of` finds a fault in a piece, and in the same cases as `guarded`.
    """
    pieces = guarded(entry, lambda: iter(write(*given)))
    while (piece := guarded(entry, lambda: next(pieces, _END))) is not _END:
        if fault := fault_of(piece):
            raise PluginFailedError(entry, TypeError(fault))
        yield piece


_END = object()
"""Marks the end of the pieces."""


def load_all(group: str, check: Check) -> tuple[list[Any], list[PluginError]]:
    """Return the objects of a group's plugins, ordered by name, and the errors of those that failed."""
    found: list[Any] = []
    broken: list[PluginError] = []
    for entry in declared(group):
        try:
            found.append(load(entry, check))
        except PluginError as error:
            broken.append(error)
    return found, broken
