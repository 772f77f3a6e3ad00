"""Plugins: what other packages in gistpoint's own environment add, each declared by an entry point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gistpoint.core.errors import UserError

if TYPE_CHECKING:
    from importlib import metadata

GROUPS = (
    "gistpoint.backends",
    "gistpoint.exporters",
    "gistpoint.formats",
    "gistpoint.kinds",
    "gistpoint.operators",
    "gistpoint.task_exporters",
)
"""Every group of entry points that gistpoint reads."""

HINT = "Ask whoever made the plugin, or uninstall its package."


Check = Callable[[Any], str]
"""Returns in a few words why an object is not what its group needs; empty if it is."""


class PluginError(UserError):
    """A plugin can't be loaded; the message names it, its package and the reason `why`."""

    def __init__(self, entry: metadata.EntryPoint, why: str) -> None:
        package, self.why = package_of(entry), why
        where = f"{entry.group}, from {package}" if package else entry.group
        super().__init__(f"The plugin {entry.name!r} ({where}) can't be loaded: {self.why}.", hint=HINT)


def declared(group: str) -> list[metadata.EntryPoint]:
    """Return the entries of a group by name; none is loaded."""
    from importlib import metadata

    return sorted(metadata.entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def package_of(entry: metadata.EntryPoint) -> str:
    """Return name and version of the package that declares an entry; empty if it is unknown."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""


def instance_of(kind: type) -> Check:
    """Return the check that an object is an instance of a class."""

    def check(loaded: Any) -> str:
        return "" if isinstance(loaded, kind) else f"it is a {type(loaded).__name__}, not a {kind.__name__}"

    return check


def is_callable(loaded: Any) -> str:
    """Return in a few words that an object can't be called; empty if it can."""
    return "" if callable(loaded) else f"it is a {type(loaded).__name__}, and can't be called"


def load(entry: metadata.EntryPoint, check: Check) -> Any:
    """Return the object that an entry names.

    Raises `PluginError` for whatever its package raises, an exit of the program included, and if the check fails.
    """
    try:
        loaded = entry.load()
        why = check(loaded)
    except (Exception, SystemExit) as error:  # another package's code: its exception explains why it does not work
        raise PluginError(entry, f"{type(error).__name__}: {error}") from error
    if why:
        raise PluginError(entry, why)
    return loaded


def load_all(group: str, check: Check) -> tuple[list[Any], list[PluginError]]:
    """Return the objects of the plugins of a group, in the order of the names, and why others can't be loaded."""
    found: list[Any] = []
    broken: list[PluginError] = []
    for entry in declared(group):
        try:
            found.append(load(entry, check))
        except PluginError as error:
            broken.append(error)
    return found, broken
