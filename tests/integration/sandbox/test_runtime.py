"""The parts of this machine that a run sees: the named ones, and nothing that is merely next to them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gistpoint.sandbox.backends import runtime
from gistpoint.sandbox.backends.base import Environment
from gistpoint.sandbox.backends.runtime import (
    RuntimeCache,
    RuntimePath,
    programs_alone,
    runtime_of,
    toolchain,
)
from gistpoint.sandbox.environments.interpreters import find_interpreter, own_version

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems show everything")


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    interpreter = find_interpreter(own_version())
    (tmp_path / "environment").mkdir()
    return Environment(tmp_path / "environment", interpreter.path, interpreter.prefix, interpreter.version)


def test_the_library_is_what_its_interpreter_names(tmp_path: Path) -> None:
    for path in (
        "json/__init__.py", "json/tool.py", "site-packages/package/os.py", "dist-packages/os.py", "vendored/os.py",
        "ensurepip/__init__.py", "ensurepip/_bundled/pip.whl", "test/__init__.py", "test/test_os.py",
        "test/support/os_helper.py", "idlelib/run.py", "os.py", "osier.py", "notes.txt",
        "__pycache__/os.cpython-311.pyc",
        "__pycache__/vendored.cpython-311.pyc", "lib-dynload/_json.so", "lib-dynload/vendored.py", "config-3/Makefile",
    ):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    parts = [
        part for part in runtime._library(tmp_path, {"json", "os", "ensurepip", "idlelib"}) if not part.link
    ]
    found = {(Path(part.path).relative_to(tmp_path).as_posix(), part.folder) for part in parts}
    assert found == {
        ("json", True), ("ensurepip/__init__.py", False), ("test/__init__.py", False), ("test/support", True),
        ("os.py", False), ("__pycache__/os.cpython-311.pyc", False), ("lib-dynload/_json.so", False),
    }  # fmt: skip


def test_links_on_the_way_are_shown_as_they_are(tmp_path: Path) -> None:
    real = tmp_path / "usr" / "lib"
    real.mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "alternative").symlink_to(tmp_path / "lib" / "up")
    (real / "up").symlink_to("../lib/libreal.so.1")
    (real / "libreal.so.1").touch()
    parts = {part for part in runtime._shown(tmp_path / "alternative") if part.path.startswith(str(tmp_path))}
    assert parts == {
        RuntimePath(f"{tmp_path}/alternative", link=f"{tmp_path}/lib/up"),
        RuntimePath(f"{tmp_path}/lib", link="usr/lib"),
        RuntimePath(f"{tmp_path}/usr/lib/up", link="../lib/libreal.so.1"),
        RuntimePath(f"{tmp_path}/usr/lib/libreal.so.1"),
    }


def test_links_that_lead_nowhere_or_in_a_circle_show_nothing(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "gone").symlink_to("absent")
    for name in ("circle", "gone"):
        assert not [part for part in runtime._shown(tmp_path / name) if not part.link]


def test_a_program_is_machine_code_or_a_script_for_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "good": "#!/bin/sh -e\n",
        "snake": "#!/usr/bin/python3\nimport package\n",
        "data": "x",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "real").symlink_to(os.path.realpath("/bin/sh"))
    monkeypatch.setattr(runtime, "PLACES", (str(tmp_path),))
    assert [path.name for path in runtime._programs(["good", "snake", "data", "real", "absent"])] == [
        "good",
        "real",
    ]


def test_nothing_else_of_the_system_is_among_it(environment: Environment) -> None:
    found = runtime_of(environment)
    paths = {part.path for part in found.parts}
    assert str(environment.interpreter) in paths
    assert not [
        path for path in paths if "-packages" in path or "_bundled" in path or path.endswith((".whl", ".zip"))
    ]
    whole = {part.path for part in found.system if part.folder}
    assert not [folder for folder in whole if any(Path(folder).rglob("*.py"))]
    assert not [part for part in found.system if part.path.endswith(".py")]
    assert paths.isdisjoint(
        {"/", "/usr", "/usr/lib", "/usr/share", "/opt", "/usr/bin", str(environment.prefix)}
    )


def test_programs_alone_are_without_an_interpreter() -> None:
    found = programs_alone(("bash", "sh", "cat", "find"))
    assert not found.interpreter
    names = {Path(part.path).name for part in found.system}
    assert {"bash", "cat"} <= names
    assert not [name for name in names if "python" in name or "perl" in name]


def test_more_is_shown_only_if_it_is_asked_for(environment: Environment, tmp_path: Path) -> None:
    usual = runtime_of(environment)
    (tmp_path / "more").mkdir()
    found = runtime_of(environment, [tmp_path / "more", *toolchain(environment)])
    assert RuntimePath(str(tmp_path / "more"), folder=True) in found.system
    assert usual.interpreter == found.interpreter
    assert found.key != usual.key
    assert not [part for part in usual.parts if part.path.endswith(("/gcc", "/include", "/perl"))]


class TestCache:
    def test_a_list_is_made_once(
        self, environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache = tmp_path / "runtimes"
        first = RuntimeCache(cache).of(environment)
        monkeypatch.setattr("gistpoint.sandbox.backends.runtime.runtime_of", None)
        assert RuntimeCache(cache).of(environment) == first
        another = replace(environment, folder=tmp_path / "another")
        another.folder.mkdir()
        assert RuntimeCache(cache).of(another) == first

    def test_a_damaged_list_is_made_again(self, tmp_path: Path) -> None:
        cache = tmp_path / "runtimes"
        first = RuntimeCache(cache).of_programs(("cat",))
        (file,) = cache.glob("*.json")
        for text in ("", "[]", "{}", '{"key": "x", "interpreter": [1], "system": []}'):
            file.write_text(text)
            assert RuntimeCache(cache).of_programs(("cat",)) == first
        assert json.loads(file.read_text())["key"] == first.key

    def test_another_list_where_something_changed(self, environment: Environment, tmp_path: Path) -> None:
        other = tmp_path / "bin" / "python3"
        other.parent.mkdir()
        other.write_bytes(environment.interpreter.read_bytes())
        cache = RuntimeCache(tmp_path / "runtimes")
        states = {RuntimeCache(cache.folder)._cached([other], [], lambda: programs_alone(("sh",))).key}
        other.write_bytes(b"another")
        states.add(RuntimeCache(cache.folder)._cached([other], [], lambda: programs_alone(("cat",))).key)
        assert len(states) == 2

    def test_a_layout_holds_files_and_links_and_room_for_folders(self, tmp_path: Path) -> None:
        cache = RuntimeCache(tmp_path / "runtimes")
        found = cache.of_programs(("bash", "cat"))
        folder = cache.laid_out(found, ("/proc",), {"/etc/passwd": "nobody\n"})
        assert cache.laid_out(found, ("/proc",), {"/etc/passwd": "nobody\n"}) == folder
        for part in found.parts:
            here = folder / part.path.lstrip("/")
            assert here.is_symlink() == bool(part.link)
            assert part.link or here.is_dir() == part.folder
            assert not part.folder or not any(here.iterdir())
        assert (folder / "etc" / "passwd").read_text() == "nobody\n"
        assert (folder / "proc").is_dir()
        copied = [Path(part.path) for part in found.parts if not part.link and not part.folder]
        for path in copied:  # bytecode is matched by the time of its source
            assert (folder / path.relative_to("/")).stat().st_mtime_ns == path.stat().st_mtime_ns

    def test_without_a_place_for_it_the_list_is_still_there(
        self, environment: Environment, tmp_path: Path
    ) -> None:
        (tmp_path / "file").touch()
        assert RuntimeCache(tmp_path / "file" / "below").of(environment).interpreter
