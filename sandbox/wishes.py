"""Which backend the user asks for: on the command line, else in their own `config.toml`; never in a repository."""

from __future__ import annotations

import tomllib
from pathlib import Path

from gistpoint.core.errors import SandboxUnavailableError

FILE, KEY = "config.toml", "sandbox"


def wished_backend(config: Path) -> str | None:
    """Return what the key `sandbox` of the config folder's `config.toml` names, None where it names nothing.

    A file that can't be read is an error, not a wish for nothing: isolation is never stepped down in silence.
    Raises `SandboxUnavailableError`.
    """
    path = config / FILE
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SandboxUnavailableError(
            f"{path} can't be read, and it may name a sandbox: {error}.", hint="Mend it, or move it away."
        ) from error
    value = values.get(KEY)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise SandboxUnavailableError(
            f"{path}: the key '{KEY}' must be the name of a sandbox.", hint=f'Such as {KEY} = "bwrap".'
        )
    return value
