from __future__ import annotations

import subprocess
import threading
from dataclasses import replace

import pytest

from gistpoint.core.errors import CancelledError, EnvironmentBuildError
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import CancelToken
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.cache import build_once, remove_frozen
from gistpoint.sandbox.environments.interpreters import find_interpreter, own_version
from gistpoint.sandbox.environments.resolver import UvResolver, installed_in
from gistpoint.sandbox.environments.store import EnvironmentStore, runner_distributions


@pytest.fixture
def pins(shelf, write, tmp_path):
    shelf.wheel("needed", "2.5")
    shelf.wheel("pytest_extra", "1.0", ("pytest",), "[pytest11]\nextra = pytest_extra\n")
    folder = write(
        {"pyproject.toml": '[project]\nname = "thing"\nversion = "3.1"\ndependencies = ["needed>=2"]\n'}
    )
    resolver = UvResolver(EnvironmentStore(tmp_path / "first"), PlainBackend())
    return resolver.resolve(
        folder, extra_requirements=("pytest-extra",), exclude_newer=None, pytest_args=("-x",)
    )


def test_resolution_pins_by_version_and_hash(pins):
    names = [line.partition("==")[0] for line in pins.lock]
    assert names == ["iniconfig", "needed", "pluggy", "pytest", "pytest-extra"]
    assert all(" --hash=sha256:" in line and "://" not in line for line in pins.lock)
    assert pins.plugins == ("extra",)
    assert pins.metadata == {"name": "thing", "version": "3.1"}
    assert pins.pytest_args == ("-x",)
    assert pins.resolved.count("-") == 2


def test_an_environment_holds_the_lock_and_works(pins, tmp_path):
    lines: list[str] = []
    environment = EnvironmentStore(tmp_path / "cache").get(pins, PlainBackend(), on_line=lines.append)
    assert set(installed_in(environment.folder)) == {
        "iniconfig",
        "needed",
        "pluggy",
        "pytest",
        "pytest-extra",
    }
    told = subprocess.run(
        [
            environment.folder / "bin/python",
            "-I",
            "-c",
            "import needed, sys; print(needed.version, sys.prefix)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["2.5", str(environment.folder)]
    assert any("needed" in line for line in lines)


def test_an_environment_is_built_once_whoever_asks(pins, tmp_path):
    store = EnvironmentStore(tmp_path / "cache")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(store.get(pins, PlainBackend()).folder))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    made = found[0].stat().st_mtime_ns
    assert EnvironmentStore(tmp_path / "cache").get(pins, PlainBackend()).folder.stat().st_mtime_ns == made


def test_plugins_and_arguments_do_not_change_the_environment(pins, tmp_path):
    store = EnvironmentStore(tmp_path / "cache")
    assert store.key(pins) == store.key(replace(pins, plugins=(), pytest_args=(), metadata={}))
    assert store.key(pins) != store.key(replace(pins, lock=pins.lock[1:]))


def test_nothing_in_it_may_be_written_and_nothing_is_linked(pins, tmp_path):
    folder = EnvironmentStore(tmp_path / "cache").get(pins, PlainBackend()).folder
    paths = [path for path in folder.rglob("*") if not path.is_symlink()]
    assert len(paths) > 10
    for path in paths:
        assert path.stat().st_mode & 0o222 == 0, path
        assert path.is_dir() or path.stat().st_nlink == 1, path


def test_a_wrong_hash_names_the_requirement_and_leaves_nothing(pins, tmp_path):
    wrong = tuple(f"needed==2.5 --hash=sha256:{'0' * 64}" if "needed" in line else line for line in pins.lock)
    with pytest.raises(EnvironmentBuildError) as caught:
        EnvironmentStore(tmp_path / "cache").get(replace(pins, lock=wrong), PlainBackend())
    assert "needed==2.5" in caught.value.message
    assert "ash" in caught.value.log
    log = next((tmp_path / "cache/logs").iterdir())
    assert str(log) in caught.value.hint
    assert [path.suffix for path in (tmp_path / "cache/environments").iterdir()] == [".lock"]


def test_a_requirement_that_does_not_exist_is_named(shelf, write, tmp_path):
    folder = write(
        {"pyproject.toml": '[project]\nname = "thing"\nversion = "1"\ndependencies = ["nowhere"]\n'}
    )
    with pytest.raises(EnvironmentBuildError, match="nowhere"):
        UvResolver(EnvironmentStore(tmp_path / "cache"), PlainBackend()).resolve(
            folder, extra_requirements=(), exclude_newer=None, pytest_args=()
        )


def test_a_cancelled_build_leaves_nothing(pins, tmp_path):
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        EnvironmentStore(tmp_path / "cache").get(pins, PlainBackend(), cancel=cancel)
    assert [path.suffix for path in (tmp_path / "cache/environments").iterdir()] == [".lock"]


def test_a_python_that_is_not_there(pins, tmp_path):
    with pytest.raises(EnvironmentBuildError, match=r"Python 3\.99, which the task"):
        EnvironmentStore(tmp_path / "cache").get(replace(pins, python="3.99"), PlainBackend())


@pytest.mark.parametrize(
    "change",
    [
        {"lock": ("evil @ http://127.0.0.1:9/x.tar.gz --hash=sha256:" + "0" * 64,)},
        {"lock": ("--index-url=http://127.0.0.1:9",)},
        {"lock": ("-r /etc/passwd",)},
        {"python": "./python"},
        {"import_roots": ("../..",)},
    ],
)
def test_pins_are_checked_again_before_anything_is_done(tmp_path, change):
    good = EnvironmentPins(own_version(), ("pytest==8.4.0 --hash=sha256:" + "0" * 64,))
    with pytest.raises(EnvironmentBuildError, match=r"'environment\."):
        EnvironmentStore(tmp_path / "cache").get(replace(good, **change), PlainBackend())
    assert not (tmp_path / "cache").exists()


def test_an_interpreter_is_found_by_its_version_alone(tmp_path):
    program = tmp_path / "python3.11"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    for version in (str(program), "../python3.11", "python3.11", "3.11 ", "--version"):
        with pytest.raises(EnvironmentBuildError, match="not a version of Python"):
            find_interpreter(version)
    assert not (tmp_path / "ran").exists()


def test_a_removed_environment_is_built_again(pins, tmp_path):
    store = EnvironmentStore(tmp_path / "cache")
    folder = store.get(pins, PlainBackend()).folder
    remove_frozen(folder)
    assert not folder.exists()
    assert store.get(pins, PlainBackend()).folder.is_dir()


def test_only_pytest_and_what_it_needs_come_from_our_own_environment(tmp_path):
    environment = EnvironmentStore(tmp_path / "cache").get(EnvironmentPins(), PlainBackend())
    assert set(installed_in(environment.folder)) == set(runner_distributions())
    assert {"pytest", "pluggy", "iniconfig", "packaging", "pygments"} == set(runner_distributions())
    code = "import pytest, importlib.util as u; assert not u.find_spec('textual') and not u.find_spec('gistpoint')"
    subprocess.run([environment.folder / "bin/python", "-I", "-c", code], check=True)


def test_no_run_of_pytest_alone_compiles_what_pytest_imports(tmp_path):
    environment = EnvironmentStore(tmp_path / "cache").get(EnvironmentPins(), PlainBackend())
    code = """
import os, sys
import pytest
specs = [getattr(module, "__spec__", None) for module in list(sys.modules.values())]
sources = {spec.origin: spec.cached for spec in specs if spec is not None}
inside = [source for source in sources if str(source).startswith(sys.prefix)]
assert any("pygments" in source for source in inside), inside
without = [source for source in inside if not os.path.exists(sources[source])]
assert not without, without
"""
    subprocess.run([environment.folder / "bin/python", "-I", "-B", "-c", code], check=True)


def test_build_once_gives_up_what_failed(tmp_path):
    def fail(folder):
        folder.mkdir()
        (folder / "half").touch()
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        build_once(tmp_path / "cache" / "it", fail)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["it.lock"]


@pytest.mark.parametrize(
    ("name", "chain"),
    [
        ("pluggy", "pytest needs pluggy"),
        ("pytest", "pytest"),
        ("Ini.Config", None),
        ("helper", "pytest-extra needs helper"),
    ],
)
def test_parts_of_the_runner_are_refused(shelf, write, tmp_path, name, chain):
    shelf.wheel("helper", "1.0")
    shelf.wheel("pytest_extra", "1.0", ("pytest", "helper"), "[pytest11]\nextra = pytest_extra\n")
    folder = write({"pyproject.toml": f'[project]\nname = "{name}"\nversion = "1"\n'})
    resolver = UvResolver(EnvironmentStore(tmp_path / "cache"), PlainBackend())

    def resolve():
        return resolver.resolve(
            folder, extra_requirements=("pytest-extra",), exclude_newer=None, pytest_args=()
        )

    if chain is None:
        assert resolve().lock
    else:
        with pytest.raises(EnvironmentBuildError) as caught:
            resolve()
        assert f"({chain})" in caught.value.message


def test_the_target_itself_is_never_installed(shelf, write, tmp_path):
    shelf.wheel("thing", "1.0")
    shelf.wheel("friend", "1.0", ("thing",))
    text = '[project]\nname = "thing"\nversion = "2"\n[dependency-groups]\ntest = ["friend", "thing[more]"]\n'
    text += '[project.optional-dependencies]\nmore = ["needed"]\n'
    shelf.wheel("needed", "2.5")
    pins = UvResolver(EnvironmentStore(tmp_path / "cache"), PlainBackend()).resolve(
        write({"pyproject.toml": text}), extra_requirements=(), exclude_newer=None, pytest_args=()
    )
    names = {line.partition("==")[0] for line in pins.lock}
    assert {"friend", "needed"} <= names
    assert "thing" not in names


def test_a_requirement_by_address_is_refused(shelf, write, tmp_path):
    shelf.wheel("needed", "2.5")
    address = (shelf.folder / "needed-2.5-py3-none-any.whl").as_uri()
    folder = write({"pyproject.toml": '[project]\nname = "thing"\nversion = "2"\n'})
    with pytest.raises(EnvironmentBuildError):
        UvResolver(EnvironmentStore(tmp_path / "cache"), PlainBackend()).resolve(
            folder, extra_requirements=(f"needed @ {address}",), exclude_newer=None, pytest_args=()
        )
