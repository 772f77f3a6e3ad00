"""Builds of packages without wheels, and the refusal of some requirements and outputs."""

from __future__ import annotations

import base64
import json
import socket
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelves import Shelf, built_by_itself

from gistpoint.core.errors import CancelledError, EnvironmentBuildError
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import CancelToken
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.builds import MOST_NESTED, BuildOutput, Builds, check_wheel
from gistpoint.sandbox.environments.interpreters import own_version
from gistpoint.sandbox.environments.resolver import UvResolver, installed_in
from gistpoint.sandbox.environments.store import EnvironmentStore


@pytest.fixture
def builds(shelf: Shelf, tmp_path: Path) -> Builds:
    return Builds(EnvironmentStore(tmp_path / "cache"), PlainBackend(), own_version())


@pytest.fixture
def resolve(shelf: Shelf, tmp_path: Path) -> Callable[..., EnvironmentPins]:
    def resolve_folder(folder: Path, *extra: str) -> EnvironmentPins:
        resolver = UvResolver(EnvironmentStore(tmp_path / "cache"), PlainBackend())
        return resolver.resolve(folder, extra_requirements=extra, exclude_newer=None, pytest_args=())

    return resolve_folder


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server on loopback; the fixture fails if anything connects to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


def names_of(lock: tuple[str, ...]) -> list[str]:
    return [line.partition("==")[0] for line in lock]


def test_an_sdist_is_built_once_and_kept_by_its_content(shelf, builds, tmp_path):
    count = f"with open({str(tmp_path / 'builds')!r}, 'a') as file:\n    file.write('x')\n"
    shelf.sdist("wheelless", "1.5", built_by_itself("wheelless", "1.5", before=count))
    lock = builds.pin(["wheelless"]).lines
    first = builds.wheel("wheelless", "1.5")
    times = len((tmp_path / "builds").read_text())
    assert builds.wheel("wheelless", "1.5") == first
    assert builds.wheel("wheelless", "1.5", (first.sdist,)) == first
    assert builds.environments.of_lock(lock, builds).folder.is_dir()
    assert len((tmp_path / "builds").read_text()) == times
    assert lock == (f"wheelless==1.5 --hash=sha256:{first.sdist}",)


def test_a_version_with_a_wheel_is_taken_before_a_newer_one_without(shelf, builds):
    shelf.wheel("both", "1.0")
    shelf.sdist("both", "2.0", built_by_itself("both", "2.0"))
    assert builds.pin(["both"]).lines[0].startswith("both==1.0 ")
    assert builds.pin(["both>1"]).lines[0].startswith("both==2.0 ")


def test_what_a_built_wheel_needs_is_pinned_with_it(shelf, builds):
    shelf.wheel("needed", "2.5")
    shelf.wheel("optional", "1.0")
    needs = ("needed", "optional; extra == 'more'", "second")
    shelf.sdist("first", "1.0", built_by_itself("first", needs=needs))
    shelf.sdist("second", "1.0", built_by_itself("second"))
    pinned = builds.pin(["first[more]"])
    assert names_of(pinned.lines) == ["first", "needed", "optional", "second"]
    assert pinned.parents["second"] == {"first"}
    assert names_of(builds.pin(["first"]).lines) == ["first", "needed", "second"]


def test_what_builds_a_package_may_be_built_itself(shelf, builds):
    helper = "\n\ndef get_requires_for_build_wheel(settings=None):\n    return ['late']\n"
    shelf.sdist("tool", "1.0", built_by_itself("tool"))
    shelf.sdist("late", "1.0", built_by_itself("late"))
    tree = built_by_itself("thing", before="import tool\nassert tool.built", requires=("tool",), after=helper)
    tree["itself.py"] = tree["itself.py"].replace(
        "with zipfile", "import late\n    assert late.built\n    with zipfile"
    )
    shelf.sdist("thing", "1.0", tree)
    assert check_wheel(builds.wheel("thing", "1.0").path, "thing", "1.0")["Name"] == "thing"


def test_builds_that_need_one_another_come_to_an_end(shelf, builds):
    deep = replace(builds, within=("one", "two", "three", "four"))
    assert len(deep.within) == MOST_NESTED
    with pytest.raises(
        EnvironmentBuildError, match="one needs two needs three needs four needs five to be built"
    ):
        deep.wheel("five", "1.0")
    shelf.sdist("itself", "1.0", built_by_itself("itself", requires=("itself",)))
    with pytest.raises(EnvironmentBuildError, match="itself needs itself"):
        builds.wheel("itself", "1.0")


def test_setup_py_is_built_by_setuptools(shelf, builds, write):
    module = "class Legacy:\n    def build_wheel(self, folder, config_settings=None):\n        scope = {}\n"
    module += "        exec(open('setup.py').read(), scope)\n        return scope['build_wheel'](folder)\n"
    module += "__legacy__ = Legacy()\n"
    shelf.wheel("setuptools", "80.0", more={"setuptools/__init__.py": "", "setuptools/build_meta.py": module})
    folder = write({"setup.py": built_by_itself("thing", needs=("needed>=1",))["itself.py"]})
    assert builds.repository_metadata(folder, "thing")["Requires-Dist"] == ["needed>=1"]


def test_a_backend_that_prepares_metadata_is_asked_for_no_wheel(shelf, builds, write):
    prepare = (
        "\n\ndef prepare_metadata_for_build_wheel(folder, settings=None):\n"
        "    os.mkdir(folder + '/x.dist-info')\n"
    )
    prepare += "    with open(folder + '/x.dist-info/METADATA', 'w') as file:\n        file.write('Name: prepared\\n')\n"  # noqa: E501
    folder = write(
        built_by_itself("thing", after=prepare + "    return 'x.dist-info'\n\n\ndel build_wheel\n")
    )
    assert builds.repository_metadata(folder, "thing")["Name"] == "prepared"


def test_a_build_that_fails_names_the_package_and_keeps_its_log(shelf, builds, write):
    shelf.sdist(
        "broken", "1.0", built_by_itself("broken", before="raise RuntimeError('no \\x1b[31mcompiler')")
    )
    with pytest.raises(EnvironmentBuildError) as caught:
        builds.wheel("broken", "1.0")
    assert caught.value.message.startswith("broken 1.0 has to be built, and its build in plain failed: ")
    assert caught.value.message.endswith("RuntimeError: no ␛[31mcompiler")
    log = next((builds.environments.cache / "logs").iterdir())
    assert str(log) in caught.value.hint
    assert "Choose a version that has a wheel" in caught.value.hint
    assert "RuntimeError" in log.read_text()
    assert not [path for path in (builds.environments.cache / "wheels").glob("*") if path.is_dir()]


def test_if_the_build_of_a_source_fails_the_hint_says_to_fix_it(shelf, builds, write):
    folder = write(built_by_itself("thing", before="raise RuntimeError('no compiler')"))
    with pytest.raises(EnvironmentBuildError, match="thing has to be built") as caught:
        builds.repository_metadata(folder, "thing")
    assert "Fix the build, or list `dependencies`" in caught.value.hint
    assert "has a wheel" not in caught.value.hint


def test_a_build_is_cancelled(shelf, builds, write):
    cancel = CancelToken()
    stop = "import time\ntime.sleep(60)"
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        if line.startswith("Building"):
            cancel.cancel()

    with pytest.raises(CancelledError):
        replace(builds, on_line=on_line, cancel=cancel).repository_metadata(
            write(built_by_itself("thing", before=stop)), "thing"
        )
    assert lines == ["Building the metadata of thing in plain"]


def test_the_sdist_must_be_the_one_that_the_lock_names(shelf, builds, tmp_path):
    shelf.sdist(
        "wheelless",
        "1.5",
        built_by_itself("wheelless", "1.5", before=f"open({str(tmp_path / 'ran')!r}, 'w')"),
    )
    pins = EnvironmentPins(own_version(), lock=(f"wheelless==1.5 --hash=sha256:{'0' * 64}",))
    with pytest.raises(EnvironmentBuildError, match="wheelless"):
        builds.environments.get(pins, PlainBackend())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("where", "address"),
    [
        ("dependencies", "thing @ git+http://127.0.0.1:{port}/x.git"),
        *(
            (where, "thing @ http://127.0.0.1:{port}/x.tar.gz")
            for where in (
                "dependencies",
                "dependency group",
                "extra",
                "build",
                "build late",
                "metadata",
                "wheel",
            )
        ),
    ],
)
def test_no_address_in_what_comes_from_outside_is_followed(shelf, resolve, write, listener, where, address):
    shelf.wheel("plain")
    line = address.format(port=listener.getsockname()[1])
    project = '[project]\nname = "mine"\nversion = "1"\n'
    if where == "dependencies":
        folder = write({"pyproject.toml": f"{project}dependencies = [{line!r}]\n"})
    elif where == "dependency group":
        folder = write({"pyproject.toml": f"{project}[dependency-groups]\ntest = [{line!r}]\n"})
    elif where == "extra":
        folder = write({"pyproject.toml": f"{project}[project.optional-dependencies]\ntest = [{line!r}]\n"})
    elif where == "build":
        folder = write(built_by_itself("mine", requires=(line,)))
    elif where == "build late":
        late = f"\n\ndef get_requires_for_build_wheel(settings=None):\n    return [{line!r}]\n"
        folder = write(built_by_itself("mine", after=late))
    elif where == "metadata":
        folder = write(built_by_itself("mine", needs=(line,)))
    else:
        shelf.sdist("wheelless", "1.0", built_by_itself("wheelless", needs=(line,)))
        folder = write({"pyproject.toml": f'{project}dependencies = ["wheelless"]\n'})
    with pytest.raises(EnvironmentBuildError) as caught:
        resolve(folder)
    assert repr(line) in caught.value.message


NO_REQUIREMENTS = (
    "-r /etc/passwd", "--index-url http://127.0.0.1", "-e .", "./thing", "/etc/passwd", "file:///tmp/x", "",
    'plain; os_name == "a\\n--index-url http://127.0.0.1"', "plain\n-r /etc/passwd", "plain; " + "(" * 10_000,
    "plain @ ./here",
)  # fmt: skip


@pytest.mark.parametrize("line", NO_REQUIREMENTS)
def test_a_requirement_is_a_name_and_nothing_else(shelf, resolve, write, line):
    shelf.wheel("plain")
    text = f'[project]\nname = "mine"\nversion = "1"\ndependencies = [{json.dumps(line)}]\n'
    with pytest.raises(EnvironmentBuildError):
        resolve(write({"pyproject.toml": text}))


def hostile_wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    place = folder / name
    with zipfile.ZipFile(place, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return place


INFO = "thing-1.0.dist-info/METADATA"
METADATA = "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"
WHEEL = "thing-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("other-1.0-py3-none-any.whl", {INFO: METADATA}),
        ("thing-1.1-py3-none-any.whl", {INFO: METADATA}),
        ("thing.whl", {INFO: METADATA}),
        ("thing-1.0-py3-none-any.zip", {INFO: METADATA}),
        (WHEEL, {}),
        (WHEEL, {INFO: METADATA.replace("thing", "other")}),
        (WHEEL, {INFO: METADATA.replace("1.0", "2.0")}),
        (WHEEL, {INFO: METADATA.replace("1.0", "no version")}),
        (WHEEL, {INFO: METADATA, "other-1.0.dist-info/METADATA": METADATA}),
        (WHEEL, {INFO: METADATA, "../out.py": ""}),
        (WHEEL, {INFO: METADATA, "/out.py": ""}),
        (WHEEL, {INFO: METADATA, "a/../../out.py": ""}),
        (WHEEL, {INFO: METADATA, "a\\..\\out.py": ""}),
        (WHEEL, {INFO: METADATA + "Requires-Dist: a @ http://127.0.0.1/\n"}),
        (WHEEL, {INFO: METADATA + "Requires-Dist: -r /etc/passwd\n"}),
        (WHEEL, {INFO: METADATA + "x" * (5 << 20)}),
    ],
)
def test_a_wheel_that_is_not_what_was_asked_for(tmp_path, name, files):
    with pytest.raises(EnvironmentBuildError):
        check_wheel(hostile_wheel(tmp_path, name, files), "thing", "1.0")


def test_links_bombs_and_damage_in_a_wheel(tmp_path):
    link = zipfile.ZipInfo("thing/link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as archive:
        archive.writestr(INFO, METADATA)
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(EnvironmentBuildError, match="not an archive that can be unpacked"):
        check_wheel(tmp_path / WHEEL, "thing", "1.0")
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as archive:
        archive.writestr(INFO, METADATA)
        archive.writestr("bomb", "")
        archive.getinfo("bomb").file_size = 2 << 30
    with pytest.raises(EnvironmentBuildError, match="when unpacked"):
        check_wheel(tmp_path / WHEEL, "thing", "1.0")
    (tmp_path / WHEEL).write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(EnvironmentBuildError, match="damaged"):
        check_wheel(tmp_path / WHEEL, "thing", "1.0")


def test_a_build_that_hands_out_another_wheel_is_refused(shelf, builds):
    shelf.sdist("thing", "1.0", built_by_itself("other"))
    with pytest.raises(EnvironmentBuildError, match=r"not of thing 1\.0"):
        builds.wheel("thing", "1.0")


@given(st.lists(st.binary(max_size=40) | st.builds(lambda v: json.dumps(v).encode(), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["requires", "file", "part", "end", "x"]), inner, max_size=4),
    max_leaves=9,
))))  # fmt: skip
def test_any_line_may_come_over_the_pipe(lines):
    with tempfile.TemporaryDirectory() as into:
        handed = BuildOutput(Path(into))
        with handed:
            for line in lines:
                handed.feed(line)
        assert all(isinstance(item, str) for item in handed.requirements)
        file = handed.save_file()
        assert [path.name for path in Path(into).iterdir()] == ["part" if file is None else file.name]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "/tmp/x", "a/b", "-x", "a\n", "a" * 300, ".hidden", "part\0"]
)
def test_a_file_that_is_handed_out_stays_where_it_is_put(tmp_path, name):
    handed = BuildOutput(tmp_path)
    with handed:
        for answer in ({"file": name}, {"part": base64.b64encode(b"x").decode()}, {"end": True}):
            handed.feed(json.dumps(answer).encode())
    assert handed.save_file() is None
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_a_file_that_is_handed_out_can_be_asked_for_again(tmp_path):
    handed = BuildOutput(tmp_path)
    with handed:
        for answer in ({"file": "a-1.whl"}, {"part": base64.b64encode(b"x").decode()}, {"end": True}):
            handed.feed(json.dumps(answer).encode())
    assert handed.save_file() == handed.save_file() == tmp_path / "a-1.whl"


@pytest.mark.parametrize("group", ["console_scripts", "gui_scripts"])
@pytest.mark.parametrize("lead", ["../" * 20, ""], ids=["relative", "absolute"])
def test_a_wheel_writes_nothing_outside_of_its_environment(shelf, builds, tmp_path, group, lead):
    shelf.wheel("planted", entry_points=f"[{group}]\n{lead}{tmp_path}/planted = planted:version\n")
    with pytest.raises(EnvironmentBuildError):
        builds.environments.of_lock(builds.pin(["planted"]).lines, builds)
    assert not (tmp_path / "planted").exists()


def test_a_wheel_runs_nothing_here_as_it_is_installed(shelf, builds, tmp_path):
    """An environment's interpreter would run lines of *.pth and sitecustomize at its start."""
    canary = f"open({str(tmp_path / 'canary')!r}, 'a').write('x')\n"
    more = {
        "planted.pth": f"import sys; {canary}",
        "sitecustomize.py": canary,
        "usercustomize.py": canary,
    }
    shelf.wheel("planted", more=more)
    lock = builds.pin(["planted"]).lines
    environment = builds.environments.of_lock(lock, builds)
    assert "planted" in installed_in(environment.folder)
    assert list(environment.folder.glob("lib/python*/site-packages/__pycache__/planted.*.pyc"))
    assert builds.environments.of_lock(lock, builds) == environment
    assert not (tmp_path / "canary").exists()
