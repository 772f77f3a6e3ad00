"""Images made by `docker import` from files on this machine, in the layouts of published benchmarks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.backends.docker.engine import Engine
from gistpoint.sandbox.backends.docker.layers import (
    Entry,
    folder_entries,
    root_entries,
    with_parents,
    write_layer,
)
from gistpoint.sandbox.backends.runtime import RuntimeCache

_OURS = ("gistpoint", "sandbox", "etc/passwd", "etc/group")


@dataclass(frozen=True)
class Layout:
    """The location of an image's interpreter and repository, and how the repository is installed."""

    name: str
    prefix: str
    workdir: str
    develop: bool
    """Whether it is installed by an egg-link, as by `setup.py develop`, or else by a finder, as by pip."""
    variables: Mapping[str, str] = field(default_factory=dict)


SWE_BENCH = Layout(
    "swe-bench", "opt/miniconda3/envs/testbed", "/testbed", True, {"PATH": "/opt/miniconda3/bin:/bin"}
)
REPO_EXEC = Layout(
    "repo-exec", "usr/local", "/repo", False, {"PATH": "/usr/local/bin:/bin", "API_TOKEN": "hidden"}
)


def import_image(
    engine: Engine,
    layout: Layout,
    environment: Environment,
    folder: Path,
    *,
    project: str,
    package: str,
    root: str = ".",
    more: Mapping[str, str] | None = None,
    changes: tuple[str, ...] = (),
) -> str:
    """Import an image of an environment's interpreter and packages and the repository in `folder`.

    `root` is the folder of the repository that contains `package`; `more` contains further files by path.
    Returns the image's name, which has a tag.
    """
    site = f"{layout.prefix}/lib/python{environment.version}/site-packages"
    where = layout.workdir if root == "." else f"{layout.workdir}/{root}"
    texts = {"etc/passwd": "root:x:0:0::/:/bin/sh\n", "etc/group": "root:x:0:\n", **(more or {})}
    texts[f"{layout.workdir[1:]}/.git/config"] = "[core]\n"
    texts |= {f"{site}/{name}": text for name, text in _installed(layout, where, project, package).items()}
    entries = [
        replace(entry, path=entry.path.replace("usr/local", layout.prefix, 1))
        for entry in root_entries(environment, RuntimeCache().of(environment))
        if entry.path not in _OURS and not (entry.path == "usr/local" and entry.is_folder)
    ]
    entries += folder_entries(
        environment.folder / "lib" / f"python{environment.version}" / "site-packages", site
    )
    entries += folder_entries(folder, layout.workdir[1:])
    entries += [Entry(path, data=text.encode()) for path, text in texts.items()]
    name = f"localhost/gistpoint-foreign/{layout.name}:{project}"
    settings = [f"ENV {key}={value}" for key, value in layout.variables.items()]
    with tempfile.TemporaryFile() as tar:
        write_layer(with_parents(entries), tar)
        tar.seek(0)
        engine.client.api.import_image_from_data(tar, repository=name, changes=[*settings, *changes])
    return name


def _installed(layout: Layout, where: str, project: str, package: str) -> dict[str, str]:
    """Return the files in site-packages that point to the repository."""
    if layout.develop:
        return {
            "easy-install.pth": f"{where}\n",
            f"{project}.egg-link": f"{where}\n../\n",
        }
    finder = f"__editable___{project}_1_0_finder"
    info = f"{project}-1.0.dist-info"
    return {
        f"__editable__.{project}-1.0.pth": f"import {finder}; {finder}.install()\n",
        f"{finder}.py": _FINDER.replace("MAPPED", repr({package: f"{where}/{package}"})),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n",
        f"{info}/direct_url.json": json.dumps(
            {"url": f"file://{layout.workdir}", "dir_info": {"editable": True}}
        ),
    }


_FINDER = """import sys
from importlib.machinery import PathFinder
from os.path import dirname

MAPPING = MAPPED


class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return PathFinder.find_spec(name, [dirname(MAPPING[name])])
        return None


def install():
    sys.meta_path.append(Finder)
"""
