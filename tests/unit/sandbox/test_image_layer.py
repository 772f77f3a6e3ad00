"""Preparing an image removes installations that point to the repository's folder and keeps all others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gistpoint.sandbox.payload.image_layer import Links, Workdir, _importable


class Site:
    """A folder of installed packages, and the repository that contains some of them."""

    def __init__(self, root: Path) -> None:
        self.workdir, self.folder = root / "testbed", root / "site-packages"
        for folder in (self.workdir / "src" / "shop", self.workdir / "lib", root / "testbed2", self.folder):
            folder.mkdir(parents=True)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("WORKDIR", str(self.workdir)))

    def cleaned(self) -> Links:
        links = Links(Workdir(str(self.workdir)))
        links.remove_from(str(self.folder))
        return links

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def installed(tmp_path: Path) -> Site:
    return Site(tmp_path)


def origin(url: str, *, editable: bool) -> str:
    return json.dumps({"url": url, "dir_info": {"editable": editable}})


STAYING = {
    "other.pth": "WORKDIR2\n",
    "hook.pth": "import hook; hook.start()\n",
    "hook.py": "WHERE = 'WORKDIR2/shop'\n",
    "elsewhere.egg-link": "WORKDIR2\n.\n",
    "numpy/__init__.py": "",
    "copied-1.0.dist-info/direct_url.json": origin("file://WORKDIR", editable=False),
    "other-1.0.dist-info/direct_url.json": origin("file://WORKDIR2", editable=True),
    "broken-1.0.dist-info/direct_url.json": "[",
    "from_git-1.0.dist-info/direct_url.json": json.dumps(
        {"url": "https://example.org/WORKDIR", "vcs_info": {}}
    ),
}


def test_what_leads_elsewhere_stays(installed: Site) -> None:
    installed.write(STAYING)
    before = installed.names()
    links = installed.cleaned()
    assert (links.removed, links.roots) == ([], [])
    assert installed.names() == before


@pytest.mark.parametrize(
    ("files", "root"),
    [
        ({"easy-install.pth": "WORKDIR\n", "shop.egg-link": "WORKDIR\n../\n"}, "."),
        (
            {"__editable__.shop-1.0.pth": "WORKDIR/src\n", "shop-1.0.dist-info/METADATA": "Name: shop\n"},
            "src",
        ),
        ({"_shop.pth": "../testbed/lib\n"}, "lib"),
        (
            {
                "__editable__.shop-1.0.pth": "import __editable___shop_1_0_finder; __editable___shop_1_0_finder.go()",
                "__editable___shop_1_0_finder.py": "MAPPING = {'shop': 'WORKDIR/src/shop'}\nNAMESPACES = {}\n",
            },
            "src",
        ),
        (
            {
                "_shop.pth": "import _editable_impl_shop\n",
                "_editable_impl_shop.py": "F.map_module('shop', 'WORKDIR/src/shop/__init__.py')\n",
            },
            "src",
        ),
        (
            {
                "shop-editable.pth": "import _shop_editable_loader\n",
                "_shop_editable_loader.py": 'install({"shop"}, "WORKDIR/build/cp311", ["ninja"])\n',
            },
            "build",
        ),
        ({"shop.pth": "import sys; sys.path.insert(0, 'WORKDIR/src')\n"}, None),
    ],
)
def test_what_leads_into_the_repository_goes(
    installed: Site, files: Mapping[str, str], root: str | None
) -> None:
    info = {"shop-1.0.dist-info/direct_url.json": origin("file://WORKDIR", editable=True)}
    installed.write({**STAYING, **info, **files})
    links = installed.cleaned()
    assert installed.names() == {name.split("/")[0] for name in STAYING}
    assert {Path(path).name for path in links.removed} == {name.split("/")[0] for name in {**info, **files}}
    assert links.roots == ([root] if root else [])


def test_other_lines_of_a_pth_stay(installed: Site) -> None:
    installed.write({"easy-install.pth": "./other.egg\nWORKDIR\nimport os\n# WORKDIR\n"})
    installed.cleaned()
    kept = (installed.folder / "easy-install.pth").read_text()
    assert kept == f"./other.egg\nimport os\n# {installed.workdir}\n"


def test_links_into_the_repository_go_and_its_files_stay(installed: Site) -> None:
    (installed.folder / "shop").symlink_to(installed.workdir / "src" / "shop")
    (installed.folder / "other").symlink_to(installed.workdir.with_name("testbed2"))
    links = installed.cleaned()
    assert installed.names() == {"other"}
    assert links.roots == ["src"]
    assert (installed.workdir / "src" / "shop").is_dir()


def test_top_level_names_are_those_that_can_be_imported(installed: Site) -> None:
    files = (
        "shop/__init__.py",
        "space/inner/a.py",
        "one.py",
        "fast.cpython-311-x86_64-linux-gnu.so",
        "shop-1.dist-info/RECORD",
    )
    installed.write(dict.fromkeys((*files, "a-b.py", "notes.txt", "__pycache__/one.pyc"), ""))
    (installed.folder / "empty").mkdir()
    found = _importable(str(installed.folder))
    assert set(found) - {"fast"} == {"shop", "space", "one"}
    assert found["shop"] == str(installed.folder / "shop")
