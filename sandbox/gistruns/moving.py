"""The files of an entrypoint that is run elsewhere, to test whether it depends on location (decision 26)."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from gistpoint.core.code.nodes import inside
from gistpoint.core.code.parsing import parse
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.entrypoints.command import Entrypoint, EntrypointKind
from gistpoint.core.trees import SourceTree


def moved_files(tree: SourceTree, entrypoint: Entrypoint) -> tuple[dict[str, bytes], Entrypoint]:
    """Return the files to be written to the new location, by path, and the entrypoint as it is called there.

    A test is moved with the `conftest.py` of each folder above it, and with modules in test folders that are
    not tests themselves, including those in inner packages. A script is moved alone; a module or a console
    script has no files to be moved. For several tests, see `_moved_tests`.
    """
    if entrypoint.kind is EntrypointKind.TESTS:
        return _moved_tests(tree, entrypoint)
    if entrypoint.kind not in (EntrypointKind.TEST, EntrypointKind.SCRIPT):
        return {}, entrypoint
    source = tree.read(entrypoint.target)
    if entrypoint.kind is EntrypointKind.SCRIPT:
        return {"moved.py": source}, replace(entrypoint, target="moved.py")
    originals: dict[str, str] = {}
    parts = PurePosixPath(entrypoint.target).parent.parts
    place = ""
    for depth in range(len(parts) + 1):
        folder = "/".join(parts[:depth])
        place = "/".join(f"moved_{level}" for level in range(1, depth + 1))
        for name in _support_files(tree, folder):
            originals[posixpath.join(place, name)] = posixpath.join(folder, name)
    target = posixpath.join(place, "test_moved.py")
    originals[target] = entrypoint.target
    return _contents(tree, originals), replace(entrypoint, target=target)


def _contents(tree: SourceTree, originals: Mapping[str, str]) -> dict[str, bytes]:
    """Return the moved files by their new paths, given the path that each has in the tree."""
    moved = frozenset(originals.values())
    return {place: _with_absolute_imports(tree, path, moved) for place, path in originals.items()}


_RELATIVE_HEAD = re.compile(rb"from[\s\\]*\.[.\w\s\\]*?\bimport\b")
_LINE_END = re.compile(rb"\r\n|\r|\n")


def _with_absolute_imports(tree: SourceTree, path: str, moved: Collection[str]) -> bytes:
    """Return the text of a moved file after making its relative imports of files that stay behind absolute.

    A gist has no relative imports, so they do not make a test depend on its location (decision 26). A file
    that Python can't parse is returned unchanged.
    """
    data = tree.read(path)
    if _RELATIVE_HEAD.search(data) is None:
        return data
    try:
        nodes = [node for node in inside(ast.ImportFrom, parse(data)) if node.level]
    except (SyntaxError, ValueError):
        return data
    starts = [0, *(end.end() for end in _LINE_END.finditer(data))]
    # From the last to the first, so that the positions of the others remain valid.
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        name = _left_behind(tree, path, node, moved)
        head = _RELATIVE_HEAD.match(data, starts[node.lineno - 1] + node.col_offset)
        if not name or head is None:
            continue
        # Line numbers are kept, because the test may print one.
        line_ends = b"\\\n" * head[0].count(b"\n")
        data = data[: head.start()] + f"from {name} ".encode() + line_ends + b"import" + data[head.end() :]
    return data


def _left_behind(tree: SourceTree, path: str, node: ast.ImportFrom, moved: Collection[str]) -> str:
    """Return the absolute name of a relative import's module; empty if the module is moved too.

    The result is also empty if the import leads out of all packages, which fails on the original as well.
    """
    package = PurePosixPath(path).parent.parts
    base = package[: len(package) - (node.level - 1)]
    inner = node.module.split(".") if node.module else []
    if not base or not _is_package(tree, base):
        return ""
    place = "/".join(base)
    wanted = [inner] if inner else [[alias.name] for alias in node.names]
    if f"{place}/__init__.py" in moved and all(_is_moved(tree, place, names, moved) for names in wanted):
        return ""
    top = len(base)
    while top > 1 and _is_package(tree, base[: top - 1]):
        top -= 1
    return ".".join((*base[top - 1 :], *inner))


def _is_package(tree: SourceTree, folders: Sequence[str]) -> bool:
    return tree.is_file("/".join((*folders, "__init__.py")))


def _is_moved(tree: SourceTree, base: str, names: Sequence[str], moved: Collection[str]) -> bool:
    """Whether the module that `names` lead to below `base` is moved too; also true if there is none."""
    below = "/".join((base, *names))
    files = [path for path in (f"{below}.py", f"{below}/__init__.py") if tree.is_file(path)]
    return all(path in moved for path in files)


def _moved_tests(tree: SourceTree, entrypoint: Entrypoint) -> tuple[dict[str, bytes], Entrypoint]:
    """Return the Python files of several tests for the new location, by path, and the entrypoint there.

    There are none for doctests, whose files stay in packages, or if a path is not one of tests. A single file
    is renamed, as for one test. Folders, and several files, keep their names.
    """
    paths = list(dict.fromkeys(word.partition("::")[0] for word in entrypoint.selected))
    if entrypoint.doctests or not all(map(_is_of_tests, paths)):
        return {}, entrypoint
    if len(paths) == 1 and paths[0].endswith(".py"):
        return _moved_file(tree, entrypoint, paths[0])
    folders = tuple(f"{path}/" for path in paths)
    taken = {path for path in tree.files(".py") if path in paths or path.startswith(folders)}
    for folder in _folders_above(taken):
        taken |= {posixpath.join(folder, name) for name in _support_files(tree, folder)}
    return _contents(tree, {path: path for path in sorted(taken)}), entrypoint


def _folders_above(paths: Iterable[str]) -> set[str]:
    """Return all folders above the paths; the root is the empty string."""
    found = set[str]()
    for path in paths:
        found.update(str(parent) for parent in PurePosixPath(path).parents)
    return (found - {"."}) | {""} if found else found


def _is_of_tests(path: str) -> bool:
    """Whether a file, or the whole content of a folder, belongs to the tests."""
    return is_test_path(path if path.endswith(".py") else f"{path}/module.py")


def _moved_file(tree: SourceTree, entrypoint: Entrypoint, path: str) -> tuple[dict[str, bytes], Entrypoint]:
    """Return the files for tests in one file, which is renamed, and the entrypoint with the new name."""
    files, moved = moved_files(tree, replace(entrypoint, kind=EntrypointKind.TEST, target=path))
    selected = frozenset(entrypoint.selected)
    words = [
        moved.target + word.removeprefix(path) if word in selected else word for word in entrypoint.arguments
    ]
    return files, replace(entrypoint, target=moved.target, arguments=tuple(words))


def remove_data_of_tests(tree: SourceTree, folder: Path) -> None:
    """Remove the tests' data files, which only a checkout has and no gist can read."""
    for path in tree.files():
        if path.endswith(".py"):
            continue
        if is_test_path(posixpath.join(posixpath.dirname(path), "module.py")):
            (folder / path).unlink(missing_ok=True)


def _support_files(tree: SourceTree, folder: str) -> Iterator[str]:
    """Yield, relative to `folder`, its `conftest.py` and, in a folder of tests, modules for its tests."""
    in_tests = bool(folder) and is_test_path(f"{folder}/module.py")
    files = [name for name, kind in tree.entries(folder) if kind == "file"]
    if "conftest.py" in files:
        yield "conftest.py"
    if not in_tests:
        return
    yield from filter(_may_be_imported, files)
    # Modules of inner packages are included, because a gist can contain them (decision 26).
    for path in tree.files(".py"):
        below = path.removeprefix(f"{folder}/")
        is_deeper = below != path and "/" in below
        if is_deeper and _may_be_imported(posixpath.basename(path)):
            yield below


def _may_be_imported(name: str) -> bool:
    """Whether a file is a module that is neither a test nor a `conftest.py`."""
    stem, dot, suffix = name.rpartition(".")
    if dot + suffix != ".py" or stem == "conftest":
        return False
    return not stem.startswith("test_") and not stem.endswith("_test")


def moved_names(called: Entrypoint) -> dict[str, str]:
    """Return the replacements for a moved file's temporary names in outputs; empty if no file was renamed."""
    if not called.files or posixpath.basename(called.target) not in ("test_moved.py", "moved.py"):
        return {}
    name = posixpath.basename(called.target)
    modules = {called.target.removesuffix(".py").replace("/", "."), name.removesuffix(".py")}
    return {called.target: "<file>", name: "<file>", **{f"{module}.": "<module>." for module in modules}}
