"""Commands without a file in the codebase: `python -c CODE`, and console scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gistpoint.core.entrypoints.command import Entrypoint, EntrypointKind

_OBJECT = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)(?P<rest>(?:\.[A-Za-z_]\w*)*)")


def entry_points(metadata: Mapping[str, str], group: str) -> dict[str, str]:
    """Return a distribution's entry points of a group, by name; empty if its metadata is broken."""
    import configparser  # not needed before the first paint (decision 37)

    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(metadata.get("entry_points", ""))
    except configparser.Error:
        return {}
    return dict(parser.items(group)) if parser.has_section(group) else {}


def console_scripts(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return a distribution's console scripts, `module:object` by name; empty if its metadata is broken.

    Scripts in another form are left out.
    """
    scripts = entry_points(metadata, "console_scripts")
    found = ((name, value.partition("[")[0].strip()) for name, value in scripts.items())
    return {name: value for name, value in found if _OBJECT.fullmatch(value)}


def program_text(entrypoint: Entrypoint, metadata: Mapping[str, str]) -> str:
    """Return the text of the file that starts a command without its own file; empty for other commands.

    Also empty for an unknown console script.
    """
    if entrypoint.kind is EntrypointKind.CODE:
        return f"{entrypoint.own[0]}\n"
    if entrypoint.kind is not EntrypointKind.CONSOLE:
        return ""
    found = _OBJECT.fullmatch(console_scripts(metadata).get(entrypoint.own[0], ""))
    if found is None:
        return ""
    called = f"{found['name']}{found['rest']}()"
    return f"import sys\n\nfrom {found['module']} import {found['name']}\n\nsys.exit({called})\n"
