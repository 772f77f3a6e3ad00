from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.sandbox.environments import interpreters
from gistpoint.sandbox.environments.locking import read_lock
from gistpoint.sandbox.environments.projects import read_project
from gistpoint.sandbox.environments.resolver import entry_points_of
from gistpoint.sandbox.layout import write_metadata


@pytest.mark.parametrize(
    ("files", "roots"),
    [
        ({"src/thing/__init__.py": ""}, ("src",)),
        ({"thing/__init__.py": "", "tests/test_a.py": ""}, (".",)),
        ({"thing.py": ""}, (".",)),
        ({"src/__init__.py": "", "src/thing.py": ""}, (".",)),
        ({"src/lib.c": "", "thing/__init__.py": ""}, (".",)),
        (
            {"code/thing.py": "", "pyproject.toml": '[tool.setuptools]\npackage-dir = {"" = "code"}\n'},
            ("code",),
        ),
        (
            {"a/x.py": "", "pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["a", "gone"]\n'},
            ("a",),
        ),
        (
            {"a/x/y.py": "", "pyproject.toml": '[tool.hatch.build.targets.wheel]\npackages = ["a/x"]\n'},
            ("a",),
        ),
        (
            {"a/x/y.py": "", "pyproject.toml": '[tool.poetry]\npackages = [{include = "x", from = "a"}]\n'},
            ("a",),
        ),
        ({"a/x.py": "", "setup.cfg": "[options]\npackage_dir =\n    =a\n"}, ("a",)),
        ({"x.py": "", "pyproject.toml": '[tool.setuptools.packages.find]\nwhere = ["../.."]\n'}, (".",)),
    ],
)
def test_import_roots(write, files, roots):
    assert read_project(write(files)).import_roots == roots


def test_a_modern_project(write):
    text = """
[project]
name = "thing"
version = "1.2"
requires-python = ">=3.9"
dependencies = ["one>=1"]
scripts = {thing = "thing:main"}
[project.optional-dependencies]
tests = ["two"]
docs = ["sphinx"]
[project.entry-points.pytest11]
thing = "thing.plugin"
[dependency-groups]
base = ["three"]
test = ["four", {include-group = "base"}, {include-group = "test"}]
"""
    project = read_project(write({"pyproject.toml": text}))
    assert (project.name, project.version, project.requires_python) == ("thing", "1.2", ">=3.9")
    assert project.requirements == ("one>=1",)
    assert project.test_requirements == ("four", "three", "two")
    assert project.plugins == ("thing",)
    assert entry_points_of(project.entry_points, "console_scripts") == ("thing",)
    assert project.metadata()["entry_points"] == project.entry_points


def test_an_sdist_tells_what_its_build_computed(write):
    info = "Metadata-Version: 2.2\nName: thing\nVersion: 4.5\nRequires-Dist: one\n"
    info += 'Requires-Dist: two; extra == "test"\nProvides-Extra: test\n'
    text = '[project]\nname = "thing"\ndynamic = ["version", "dependencies"]\n'
    project = read_project(write({"PKG-INFO": info, "pyproject.toml": text}))
    assert (project.version, project.requirements, project.test_requirements) == ("4.5", ("one",), ("two",))


def test_what_only_the_build_backend_knows(write):
    project = read_project(write({"setup.py": "", "thing/__init__.py": '__version__ = "0.9"\n'}))
    assert (project.requirements, project.described_in, project.version) == (None, "setup.py", "0.9")


def test_a_folder_without_any_description(write):
    project = read_project(write({"thing.py": ""}))
    assert (project.name, project.requirements, project.version) == ("repository", (), "0")


@pytest.mark.parametrize("text", ["[project\n", "a = " + "[" * 100_000, "a" + ".a" * 10_000 + " = [" * 2])
def test_a_broken_pyproject(write, text):
    with pytest.raises(EnvironmentBuildError, match="not valid TOML"):
        read_project(write({"pyproject.toml": text}))


def test_metadata_that_can_not_be_compared_is_no_requirement_of_this_surrounding(write):
    info = "Metadata-Version: 2.2.\u00b2\nName: thing\nVersion: 1\nProvides-Extra: test\n"
    lines = (
        "good",
        'odd; os_name ~= "x"',
        'odd; nothing == "x"',
        f"odd; {'(' * 5000}",
        'needed; extra == "test"',
    )
    info += "".join(f"Requires-Dist: {line}\n" for line in lines)
    project = read_project(write({"PKG-INFO": info}))
    assert project.test_requirements == ("needed",)
    assert "good" in (project.requirements or ())


@pytest.mark.parametrize(
    "text", ["project = 1", "[project]\nname = 1\ndependencies = [1]\n", "[tool]\nsetuptools = 3"]
)
def test_tables_of_the_wrong_shape(write, text):
    assert read_project(write({"pyproject.toml": text})).name == "repository"


def test_metadata_can_not_lead_out(tmp_path):
    write_metadata(tmp_path / "m", {"name": "../../x", "version": "/1"})
    assert [path.name for path in (tmp_path / "m").iterdir()] == [".._.._x-_1.dist-info"]
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_locks():
    text = "a==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via\n    #   -r -\n    #   B.c\n"
    text += "b-c==2 ; x \\\n    --hash=sha256:cc\n"
    lines, parents = read_lock(text)
    assert lines == ["a==1 --hash=sha256:aa --hash=sha256:bb", "b-c==2 ; x --hash=sha256:cc"]
    assert parents == {"a": {"b-c"}, "b-c": set()}
    with pytest.raises(EnvironmentBuildError, match="can't be pinned"):
        read_lock("a @ file:///somewhere/a.whl\n")


@pytest.mark.parametrize("script", ["#!/bin/sh\nsleep 60\n", "no interpreter", ""])
def test_a_candidate_that_does_not_answer_leaves_the_others(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = tmp_path / "python"
    candidate.write_text(script)
    candidate.chmod(0o755 if script else 0o644)
    own = Path(sys.executable)
    monkeypatch.setattr(interpreters, "_ANSWER_S", 5)
    monkeypatch.setattr(interpreters, "own_version", lambda: "0.0")
    monkeypatch.setattr(interpreters, "_candidates", lambda version: iter([candidate, own]))
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert interpreters.find_interpreter.__wrapped__(version).path == own.resolve()
