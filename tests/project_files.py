"""The files of the project, for the tests of its architecture."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from architecture.measures import DATA
from architecture.measures import FOLDERS as TOPS

ROOT = Path(__file__).parents[1]
NAME = "src/gistpoint"
"""The folder of the import name, with the object graph and the links to the four folders."""


@cache
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def tracked() -> tuple[str, ...]:
    """Return tracked files that exist and new ones that are not ignored, without links.

    The test that asks is skipped if there is no git, or only an unpacked archive.
    """
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a clone", allow_module_level=True)
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    paths = [path for path in listed.split("\0") if path]
    return tuple(path for path in paths if (ROOT / path).is_file() and not (ROOT / path).is_symlink())


def source_files(*tops: str) -> list[str]:
    """Return gistpoint's modules, as sorted paths relative to the root; of `NAME`, only its top files."""
    found = [
        path.relative_to(ROOT).as_posix()
        for top in tops or (*TOPS, NAME)
        for path in ((ROOT / top).glob("*.py") if top == NAME else (ROOT / top).rglob("*.py"))
    ]
    return sorted(path for path in found if not path.startswith(DATA) and "__pycache__" not in path)


def module_name(path: str) -> str:
    """Return the import name of one of gistpoint's files."""
    parts = path.removeprefix("src/gistpoint/").removesuffix(".py").removesuffix("__init__").split("/")
    return ".".join(["gistpoint", *filter(None, parts)])


def packages() -> dict[str, str]:
    """Return the folder of every package by its import name, as found on the disk."""
    folders = {
        path.removesuffix("/__init__.py") for path in source_files(*TOPS) if path.endswith("/__init__.py")
    }
    return {"gistpoint": "src/gistpoint", **{f"gistpoint.{f.replace('/', '.')}": f for f in sorted(folders)}}
