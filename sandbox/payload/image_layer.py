"""Prepares a foreign image for runs, as root in one of its containers: `image_layer.py ORDER REPORT`.

ORDER is a JSON object with `workdir`, the folder of the repository, and `user`, the number of the user who
runs commands. Installations that lead into that folder are removed, the folder is emptied, and the user is
added to the system's files. REPORT is the file for the findings, a JSON object that `main` describes; if the
image is unusable, it has only `error` (decision 78).
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import re
import shutil
import site
import sys
import sysconfig
from typing import Any
from urllib.parse import unquote, urlsplit

_OLDEST = (3, 8)
_MOST_TEXT = 1 << 20
_IMPORT = re.compile(r"import[ \t]")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class UnusableError(Exception):
    """The image is unsuitable; the message contains the reason."""


class Workdir:
    """The folder of the repository."""

    def __init__(self, path: str) -> None:
        self.path, self.real = path, os.path.realpath(path)
        names = "|".join(re.escape(name) for name in sorted({self.path, self.real}))
        self._named = re.compile(rf"(?<![\w.-])(?:{names})(?P<below>/[^\s'\";,:]*)?(?![\w.-])")

    def holds(self, path: str) -> bool:
        """Whether `path` leads into the folder, directly or through links."""
        real = os.path.realpath(path)
        return real == self.real or real.startswith(self.real + os.sep)

    def named_in(self, text: str) -> list[str]:
        """Return the paths in the folder that a string names, relative to the folder; `.` for the folder."""
        return [(found["below"] or "/")[1:] or "." for found in self._named.finditer(text)]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_TEXT)
    except OSError:
        return ""


class Links:
    """The editable installations that lead into a workdir, which are found and removed."""

    def __init__(self, workdir: Workdir) -> None:
        self.workdir = workdir
        self.roots: list[str] = []
        """The folders from which the packages of the workdir were imported, relative to the workdir."""
        self.removed: list[str] = []

    def _remove(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        self.removed.append(path)

    def add_root(self, path: str) -> None:
        """Record a folder from which packages are imported, if it is in the workdir."""
        root = os.path.relpath(os.path.realpath(path), self.workdir.real)
        if root not in self.roots and not root.startswith(".."):
            self.roots.append(root)

    def remove_from(self, folder: str) -> None:
        """Remove the editable installations in one folder of installed packages."""
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if os.path.islink(path) and self.workdir.holds(path):
                self.add_root(os.path.dirname(os.path.realpath(path)))
                self._remove(path)
            elif name.endswith(".pth"):
                self._clean(path, folder)
            elif name.endswith(".egg-link"):
                if self.workdir.holds(os.path.join(folder, _text(path).split("\n")[0].strip())):
                    self._remove(path)
            elif name.endswith(".dist-info") and self.is_editable(path):
                self._remove(path)
        for name in sorted(os.listdir(folder)):  # editable finders that no .pth has named
            path = os.path.join(folder, name)
            if (
                name.startswith("__editable__")
                and os.path.isfile(path)
                and self.workdir.named_in(_text(path))
            ):
                self._remove(path)

    def is_editable(self, info: str) -> bool:
        """Whether the folder `info` describes an editable installation of a distribution in the workdir."""
        try:
            origin = json.loads(_text(os.path.join(info, "direct_url.json")))
            url = urlsplit(origin["url"])
            editable = bool(origin["dir_info"]["editable"])
        except (ValueError, KeyError, TypeError):
            return False
        return editable and url.scheme == "file" and self.workdir.holds(unquote(url.path))

    def _clean(self, path: str, folder: str) -> None:
        """Remove the lines of a `.pth` that lead into the workdir, and the modules that such lines start."""
        kept = []
        lines = _text(path).splitlines()
        for line in lines:
            if _IMPORT.match(line):
                if not self._starts_link(line, folder):
                    kept.append(line)
            elif (
                line.strip()
                and not line.startswith("#")
                and self.workdir.holds(os.path.join(folder, line.strip()))
            ):
                self.add_root(os.path.join(folder, line.strip()))
            else:
                kept.append(line)
        if kept == lines:
            return
        if not any(line.strip() for line in kept):
            self._remove(path)
            return
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in kept))
        self.removed.append(path)

    def _starts_link(self, line: str, folder: str) -> bool:
        found = bool(self.workdir.named_in(line))
        for name in sorted(set(_WORD.findall(line))):
            module = os.path.join(folder, name + ".py")
            if not os.path.isfile(module):
                continue
            inner = self.workdir.named_in(_text(module))
            if inner:
                found = True
                for package in inner:
                    package = package[: -len("/__init__.py")] if package.endswith("/__init__.py") else package
                    self.add_root(os.path.dirname(os.path.join(self.workdir.real, package)))
                self._remove(module)
        return found


def _folders(workdir: Workdir) -> list[str]:
    """Return the folders of packages and of sys.path, except those in the workdir or the standard library."""
    standard = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    standard |= {os.path.join(path, "lib-dynload") for path in standard}
    found: list[str] = []
    for path in [*site.getsitepackages(), *sys.path]:
        real = os.path.realpath(path)
        if os.path.isdir(real) and real not in standard and real not in found and not workdir.holds(real):
            found.append(real)
    return found


def _importable(folder: str) -> dict[str, str]:
    """Return the paths in a folder of installed packages, by the top-level names that they define."""
    found: dict[str, str] = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            module = name if any(inner.is_file() or inner.is_dir() for inner in os.scandir(path)) else ""
        else:
            endings = [end for end in importlib.machinery.all_suffixes() if name.endswith(end)]
            module = name[: -max(map(len, endings))] if endings else ""
        if module.isidentifier() and module != "__pycache__":
            found.setdefault(module, path)
    return found


def _distributions(workdir: Workdir) -> list[dict[str, Any]]:
    """Return a description of every installed distribution, sorted by name and version.

    The keys are `name`, `version`, `requires` (lines), `entry_points` (the text of the file) and `own`:
    whether the files of the distribution are in the workdir or lead into it.
    """
    from importlib import metadata  # not there before 3.8

    links, found = Links(workdir), []
    for one in metadata.distributions():
        where = str(getattr(one, "_path", ""))
        found.append(
            {
                "name": str(one.metadata["Name"] or ""),
                "version": str(one.version or ""),
                "requires": [str(line) for line in one.requires or ()],
                "entry_points": one.read_text("entry_points.txt") or "",
                "own": bool(where) and (workdir.holds(where) or links.is_editable(where)),
            }
        )
    return sorted(found, key=lambda one: (one["name"].lower(), one["version"]))


def _require_usable(workdir: Workdir) -> None:
    if not os.path.isdir(workdir.path):
        raise UnusableError(f"the image has no folder {workdir.path}")
    if tuple(sys.version_info[:2]) < _OLDEST:
        raise UnusableError(f"its Python is {sys.version.split()[0]}, and 3.8 or later is needed")
    executable = os.path.realpath(sys.executable)
    for path in (executable, sys.prefix, sys.base_prefix):
        if workdir.holds(path):
            raise UnusableError(f"the interpreter's {path} lies in {workdir.path}, which is emptied for runs")
    above = executable
    while above != "/":
        # The command does not run as root: each folder above the interpreter must let its user pass.
        if not os.stat(above).st_mode & 0o001:
            raise UnusableError(f"only root may use {executable}: {above} is closed to others")
        above = os.path.dirname(above)


def _empty(folder: str) -> None:
    for inner in list(os.scandir(folder)):
        if inner.is_dir(follow_symlinks=False):
            shutil.rmtree(inner.path)
        else:
            os.unlink(inner.path)


def _add_user(number: int) -> None:
    lines = {
        "/etc/passwd": f"solver:x:{number}:{number}::/sandbox/home:/bin/sh\n",
        "/etc/group": f"solver:x:{number}:\n",
    }
    for path, line in lines.items():
        if f":x:{number}:" not in _text(path):
            with open(path, "a", encoding="utf-8") as file:
                file.write(line)


def prepared(order: dict[str, Any]) -> dict[str, Any]:
    """Prepare the image, and return the report that `main` describes.

    Raises `UnusableError` if the image can't be used for runs.
    """
    workdir = Workdir(order["workdir"])
    _require_usable(workdir)
    # Found before anything is removed, because the metadata of editable installations is removed as well.
    found = _distributions(workdir)
    folders = _folders(workdir)
    links = Links(workdir)
    for path in sys.path:
        if workdir.holds(path):
            links.add_root(path)
    for folder in folders:
        links.remove_from(folder)
    names: dict[str, str] = {}
    for folder in folders:
        # As with imports, the first folder of sys.path wins.
        names = {**_importable(folder), **names}
    _empty(workdir.path)
    _add_user(order["user"])
    return {
        "version": "{}.{}".format(*sys.version_info[:2]),
        "full_version": sys.version.split()[0],
        "distributions": found,
        "roots": links.roots,
        "removed": links.removed,
        "importable": names,
    }


def main() -> None:
    """Prepare the image, and write the report.

    The report has `version` (such as `3.9`) and `full_version`, `distributions` (see `_distributions`), the
    `roots` below the workdir from which packages were imported, the files that were `removed` or changed, and
    `importable`, the paths of everything importable from elsewhere, by name. The exit status is 1 if the
    image is unusable, and 0 otherwise.
    """
    try:
        report = prepared(json.loads(sys.argv[1]))
    except UnusableError as error:
        report = {"error": str(error)}
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(report, file)
    os.chmod(sys.argv[2], 0o600)
    sys.exit(1 if "error" in report else 0)


if __name__ == "__main__":
    main()
