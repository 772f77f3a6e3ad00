"""Patches of other programs are applied to a task's tree as Git applies them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from small_trees import tree_of

from gistpoint.core.diffs import DiffError
from gistpoint.core.tasks.trees import patched
from gistpoint.core.trees import SourceTree

NAMES = ("a.py", "b.py", "c d.py", "lib/a.py", "lib/ü.py", "lib b/x.py")
DETECTION = ((), ("-M",), ("-C", "-C"), ("-M", "-B"), ("-C", "-C", "-B"), ("-C10%", "-C", "-B20%", "-M10%"))
EDITS = 4


def git(folder: Path, *arguments: str, given: bytes = b"", check: bool = True) -> bytes:
    options = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false")
    command = ("git", *options, *arguments)
    return subprocess.run(command, cwd=folder, input=given, capture_output=True, check=check).stdout


def lines(chance: random.Random) -> str:
    text = "".join(f"{chance.randrange(30)}\n" for _ in range(chance.randrange(12)))
    return text if chance.random() < 0.8 else text.removesuffix("\n")


def edited(text: str, chance: random.Random) -> str:
    found = text.split("\n")
    for _ in range(chance.choice((0, 1, 1, 2))):
        found[chance.randrange(len(found))] = chance.choice(("x", "y", "x\ny", "\r", "é"))
    return "\n".join(found)


def change(folder: Path, chance: random.Random) -> None:
    """Edit, copy, rename, swap, add and remove files at random."""
    for _ in range(chance.randint(1, EDITS)):
        files = [path for path in sorted(folder.rglob("*.py")) if path.is_file()]
        if not files:
            return
        one, other = chance.choice(files), chance.choice(files)
        text, target = one.read_text(), folder / chance.choice(NAMES)
        what = chance.choice(("edit", "copy", "rename", "swap", "write", "remove"))
        target.parent.mkdir(exist_ok=True)
        if what == "edit":
            one.write_text(edited(text, chance))
        elif what == "copy":
            target.write_text(edited(text, chance))
        elif what == "rename":
            one.unlink()
            target.write_text(edited(text, chance))
        elif what == "swap":
            one.write_text(edited(other.read_text(), chance))
            other.write_text(edited(text, chance))
        elif what == "write":
            target.write_text(lines(chance))
        else:
            one.unlink()


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*.py") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def as_patched(tree: SourceTree, patch: bytes) -> dict[str, bytes]:
    found = {path: tree.read(path) for path in tree.files()} | dict(patched(tree, patch.decode()))
    return {path: data for path, data in found.items() if data is not None}


@pytest.mark.parametrize("seed", range(40))
def test_patches_are_applied_as_git_applies_them(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in chance.sample(NAMES, chance.randint(2, 5)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(lines(chance) * 2)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before", "--allow-empty")
    before = contents(folder)
    change(folder, chance)
    git(folder, "add", "-A")
    after = contents(folder)
    patches = {git(folder, "diff", "--cached", "--text", *options) for options in DETECTION} - {b""}
    for patch in sorted(patches):
        assert as_patched(tree_of(before, tmp_path), patch) == after, patch.decode()


SWAPPED = b"""diff --git a/b.py b/a.py
similarity index 100%
rename from b.py
rename to a.py
diff --git a/a.py b/b.py
similarity index 100%
rename from a.py
rename to b.py
"""
COPIED = b"diff --git a/a.py b/b.py\nsimilarity index 100%\ncopy from a.py\ncopy to b.py\n"
RENAMED = COPIED.replace(b"copy ", b"rename ")


def test_moved_files_are_those_of_the_tree(tmp_path: Path) -> None:
    tree = tree_of({"a.py": "1\n", "b.py": "2\n"}, tmp_path)
    assert patched(tree, SWAPPED.decode()) == {"a.py": b"2\n", "b.py": b"1\n"}
    for patch in (COPIED, RENAMED):
        with pytest.raises(DiffError, match=r"already has a file 'b\.py'"):
            patched(tree, patch.decode())
    assert patched(tree_of({"a.py": "1\n"}, tmp_path), COPIED.decode()) == {"b.py": b"1\n"}
    assert patched(tree_of({"a.py": "1\n"}, tmp_path), RENAMED.decode()) == {"a.py": None, "b.py": b"1\n"}
    with pytest.raises(DiffError, match="no file"):
        patched(tree_of({"b.py": ""}, tmp_path), COPIED.decode())


def test_an_empty_file_is_removed_whatever_its_name(tmp_path: Path) -> None:
    for name in ("a b/a", "x b/x b/x", "a b/b/a", " b/ "):
        removal = f"diff --git a/{name} b/{name}\ndeleted file mode 100644\nindex e69de29..0000000\n"
        assert patched(tree_of({name: ""}, tmp_path), removal) == {name: None}
