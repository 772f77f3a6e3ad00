"""The installed package consists of the files in the folders, and needs the documented versions."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from project_files import DATA, ROOT, TOPS, packages, pyproject, tracked


def test_packages_are_the_folders() -> None:
    setuptools = pyproject()["tool"]["setuptools"]
    assert setuptools["packages"] == sorted(packages())
    assert setuptools["package-dir"] == {
        "gistpoint": "src/gistpoint",
        **{f"gistpoint.{top}": top for top in sorted(TOPS)},
    }


def test_links_under_src_lead_to_the_folders() -> None:
    for top in TOPS:
        link = ROOT / "src" / "gistpoint" / top
        assert link.is_symlink()
        assert link.readlink().as_posix() == f"../../{top}"


@pytest.mark.slow
def test_wheel_holds_what_the_folders_hold(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for path in tracked():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
    for top in TOPS:
        (source / "src" / "gistpoint" / top).symlink_to(f"../../{top}")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path / "dist"),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {f"gistpoint/{path}" for path in tracked() if path.startswith(tuple(f"{top}/" for top in TOPS))}
    wanted |= {path.removeprefix("src/") for path in tracked() if path.startswith("src/gistpoint/")}
    assert names == wanted | {"gistpoint/_version.py"}
    version = f'__version__ = "{pyproject()["tool"]["setuptools_scm"]["fallback_version"]}"'
    assert version in zipfile.ZipFile(wheel).read("gistpoint/_version.py").decode()
    assert version in (ROOT / "src" / "gistpoint" / "__init__.py").read_text(encoding="utf-8")
    for folder in DATA:
        assert any(name.startswith(f"gistpoint/{folder}") for name in names), folder


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_is_built_has_the_version_of_its_tag(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())

    def git(*words: str) -> None:
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    def version() -> str:
        command = [sys.executable, "-m", "setuptools_scm"]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "One")
    assert re.fullmatch(r"0\.1\.0\.dev1\+g[0-9a-f]+", version())
    git("tag", "v0.7.0")
    assert version() == "0.7.0"
    git("commit", "-qm", "Two", "--allow-empty")
    assert re.fullmatch(r"0\.7\.1\.dev1\+g[0-9a-f]+", version())


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the list is that of Python 3.11 (decision 67)")
def test_constraints_are_the_versions_of_what_is_installed_and_of_nothing_else() -> None:
    constraints = pyproject()["tool"]["uv"]["constraint-dependencies"]
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]*==[0-9][^ ,*]*", line) for line in constraints)
    installed = runpy.run_path(str(ROOT / ".ci" / "constraints"))["installed"]()
    assert constraints == [f"{name}=={version}" for name, version in installed.items()], (
        "run `uv run .ci/constraints`"
    )


def test_the_page_of_the_matrix_shows_the_recorded_results() -> None:
    matrix = runpy.run_path(str(ROOT / ".ci" / "matrix"))
    assert matrix["PAGE"].read_text(encoding="utf-8") == matrix["page"](matrix["results"]()), (
        "run `.ci/matrix --table`"
    )


def test_classifiers_name_the_versions_that_the_matrix_has_run() -> None:
    matrix = runpy.run_path(str(ROOT / ".ci" / "matrix"))
    found = matrix["results"]()
    ran = {name[:4] for name, one in found.items() if name[0] == "3" and one["outcome"] == "passed"}
    named = {line[-4:] for line in pyproject()["project"]["classifiers"] if re.search(r" :: 3\.\d+$", line)}
    assert named - {"3.11"} <= ran


def test_a_copy_without_symbolic_links_says_so(tmp_path: Path) -> None:
    """In git with `core.symlinks=false` and in zip files, a link is a file that contains its target."""
    package = tmp_path / "src" / "gistpoint"
    shutil.copytree(ROOT / "src" / "gistpoint", package, ignore=shutil.ignore_patterns("__pycache__", *TOPS))
    for top in TOPS:
        (package / top).write_text(f"../../{top}")
    environment = {"PYTHONPATH": str(tmp_path / "src"), "PATH": os.defpath}
    for command in (["-c", "import gistpoint"], ["-m", "gistpoint", "--help"]):
        done = subprocess.run(
            [sys.executable, "-S", *command], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("ImportError: gistpoint was unpacked without its symbolic links"), done.stderr
        assert "core.symlinks=true" in last


def test_every_dependency_says_what_it_is_for() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    groups = [*pyproject()["project"]["dependencies"]]
    for extra in pyproject()["project"].get("optional-dependencies", {}).values():
        groups += extra
    for group in pyproject()["dependency-groups"].values():
        groups += [line for line in group if isinstance(line, str)]
    for requirement in groups:
        lines = [line for line in text.splitlines() if line.strip().startswith(f'"{requirement}"')]
        assert any(re.search(r"# \w+", line) for line in lines), requirement


def test_lock_file_is_ignored() -> None:
    assert "uv.lock" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "uv.lock" not in tracked()


def _texts() -> list[tuple[str, str]]:
    texts = []
    for path in tracked():
        data = (ROOT / path).read_bytes()
        if b"\0" not in data:
            texts.append((path, data.decode("utf-8", "replace")))
    return texts


def test_no_tracked_file_names_a_registry_or_a_place_of_one_machine() -> None:
    hosts = ["py" + "pi.org", "python" + "hosted.org", "registry." + "npmjs"]
    places = re.compile(
        "(?<![\\w./])/(?:"
        + "|".join(["work", "root", "home/[a-z]", "tmp/wt", "Users/[A-Za-z]"])
        + ")(?:/|\\b)"
    )
    for path, text in _texts():
        for host in hosts:
            assert host not in text, f"{path} names {host}"
        found = places.search(text)
        assert found is None, f"{path} names {found.group() if found else ''}"
