"""Metadata of the distribution under repair without its code, for suites that ask `importlib.metadata` about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_SAFE = re.compile(r"[^A-Za-z0-9._+!-]")


def write_metadata(folder: Path, metadata: Mapping[str, str]) -> None:
    """Write `NAME-VERSION.dist-info` below `folder` from the keys `name`, `version` and, if there, `entry_points`."""
    name = _SAFE.sub("_", metadata.get("name", "unknown"))
    version = _SAFE.sub("_", metadata.get("version", "0"))
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    if metadata.get("entry_points"):
        (info / "entry_points.txt").write_text(metadata["entry_points"], "utf-8")
