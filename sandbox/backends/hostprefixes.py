"""What the host has installed for its own Pythons: a copy of the package under repair may be among it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_INSTALLED = (
    "lib/python*/site-packages",
    "lib/python*/dist-packages",
    "lib/python*/ensurepip/_bundled",
    "local/lib/python*/site-packages",
    "local/lib/python*/dist-packages",
    "local/lib/python*/ensurepip/_bundled",
    "share/python-wheels",
)


def installed_below(prefix: Path) -> Iterator[Path]:
    """Yield the folders below `prefix` that hold installed packages, none of them a link."""
    for pattern in _INSTALLED:
        for folder in sorted(prefix.glob(pattern)):
            if folder.is_dir() and not folder.is_symlink():
                yield folder
