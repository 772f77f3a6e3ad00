"""The files that run next to untrusted code, each in a separate plain process."""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path

import pytest
from launching import events, launch, whole

import gistpoint.sandbox.payload
from gistpoint.sandbox.gistruns.runner import LAUNCHED

INJECT = Path(gistpoint.sandbox.payload.__file__).resolve().parent


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "gist").mkdir()
    return tmp_path / "gist"


@pytest.fixture
def codebase(tmp_path: Path) -> Path:
    package = tmp_path / "codebase" / "pkg"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("from pkg.deep.core import area\n")
    (package / "deep" / "__init__.py").write_text("")
    (package / "deep" / "core.py").write_text(
        "def half(x):\n    return x / 2\n\n\n"
        "def area(a, b):\n    for _ in range(2):\n        half(a)\n    return a * b\n"
    )
    (package / "__main__.py").write_text("from pkg import area\nprint(area(2, 3))\n")
    return tmp_path / "codebase"


def write(place: Path, text: str) -> Path:
    gist = place / "gist.py"
    gist.write_text(textwrap.dedent(text))
    return gist


@pytest.mark.parametrize("path", sorted(INJECT / name for name in LAUNCHED), ids=lambda path: path.name)
def test_files_stand_alone(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.partition(".")[0] in {*sys.stdlib_module_names, "pytest"}


def test_lines_of_the_gist_alone_are_recorded(place: Path) -> None:
    source = """
    import json
    def twice(x):
        if x > 5:
            return None
        return x * 2
    class A:
        def never(self):
            return 1
        def go(self):
            return [twice(n) for n in range(3)]
    print(json.dumps(A().go()), sum(map(twice, range(3))))
    """
    gist = write(place, source)
    done, told = launch(place, argv=[str(gist)], lines=str(gist))
    assert done.stdout == "[0, 2, 4] 6\n"
    assert whole(told, "lines") == [2, 3, 4, 6, 7, 8, 10, 11, 12]


def test_lines_in_threads_and_generators_are_recorded(place: Path) -> None:
    source = """
    import threading
    def numbers():
        yield 1
        yield 2
    def work():
        total = 0
        for n in numbers():
            total += n
        out.append(total)
    out = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    """
    gist = write(place, source)
    _, told = launch(place, argv=[str(gist)], lines=str(gist))
    assert whole(told, "lines") == list(range(2, 15))


ATTACKS = {
    "plain": "import pkg",
    "submodule": "from pkg.deep import core",
    "importlib": "import importlib; importlib.import_module('pkg.deep.core')",
    "finder taken off": "import sys; del sys.meta_path[0]; sys.path.insert(0, {root!r}); import pkg",
    "finders replaced": (
        "import sys, importlib.machinery as m; sys.meta_path[:] = [m.PathFinder];"
        " sys.path.insert(0, {root!r}); __import__('importlib').import_module('pkg')"
    ),
    "by path": (
        "import importlib.util as u; s = u.spec_from_file_location('other', {root!r} + '/pkg/deep/core.py');"
        " u.module_from_spec(s); s.loader.exec_module(u.module_from_spec(s))"
    ),
    "read": "exec(open({root!r} + '/pkg/deep/core.py').read())",
    "read by number": "import os; os.read(os.open({root!r} + '/pkg/deep/core.py', os.O_RDONLY), 99)",
    "through a link": "import os; os.symlink({root!r} + '/pkg', 'linked'); open('linked/__init__.py')",
    "runpy": "import runpy; runpy.run_path({root!r} + '/pkg/deep/core.py')",
    "copied": "import shutil; shutil.copy({root!r} + '/pkg/__init__.py', 'copy.py')",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_the_codebase_is_out_of_reach(attack: str, place: Path, codebase: Path) -> None:
    gist = write(place, attack.format(root=str(codebase)) + "\nprint('reached')\n")
    done, told = launch(
        place, argv=[str(gist)], owned=["pkg"], forbidden=[str(codebase)], path=[str(codebase)]
    )
    assert "reached" not in done.stdout
    assert done.returncode != 0
    assert {kind for kind, _ in events(told)} & {"import", "read"}


def test_a_refusal_that_is_swallowed_is_on_record(place: Path, codebase: Path) -> None:
    gist = write(
        place, "try:\n    import pkg\nexcept ImportError:\n    pass\nimport json\nopen('own.txt', 'w')\n"
    )
    done, told = launch(place, argv=[str(gist)], owned=["pkg"], forbidden=[str(codebase)])
    assert done.returncode == 0
    assert events(told) == [("import", "pkg")]


def test_trace_of_a_module_run(place: Path, codebase: Path) -> None:
    done, told = launch(place, argv=["-m", "pkg"], path=[str(codebase)], trace_root=str(codebase))
    assert done.stdout == "6\n"
    found = whole(told, "trace")
    assert found["files"] == [
        "pkg/__init__.py",
        "pkg/deep/__init__.py",
        "pkg/deep/core.py",
        "pkg/__main__.py",
    ]
    assert found["modules"]["pkg/__main__.py"] == "pkg.__main__"
    assert found["modules"]["pkg/deep/core.py"] == "pkg.deep.core"
    calls = {(f["path"], f["qualname"]): (f["calls"], f["run"]) for f in found["functions"]}
    assert calls["pkg/deep/core.py", "half"] == (2, False)
    assert calls["pkg/deep/core.py", "area"] == (1, False)
    assert found["calls"] == sum(count for count, _ in calls.values()) == 3
    assert found["depth"] == 2
    assert found["lines"]["pkg/deep/core.py"] == [1, 2, 5, 6, 7, 8]
    assert [tuple(place) for place in found["order"] if place[0] == "pkg/deep/core.py"] == [
        ("pkg/deep/core.py", 1),
        ("pkg/deep/core.py", 5),
        ("pkg/deep/core.py", 0),
    ]


def test_a_generator_that_goes_on_is_one_call(place: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "gen.py").write_text("def g():\n    yield 1\n    yield 2\n\n\nlist(g())\n")
    _, told = launch(place, argv=[str(root / "gen.py")], trace_root=str(root))
    found = whole(told, "trace")
    assert [(f["qualname"], f["calls"]) for f in found["functions"]] == [("g", 1)]
    assert found["depth"] == 1


def test_each_test_is_reported_with_what_it_printed_and_raised(place: Path) -> None:
    gist = place / "test_gist.py"
    gist.write_text(
        textwrap.dedent(
            """
            import sys
            import pytest
            @pytest.fixture
            def broken():
                raise KeyError("x")
            def test_out():
                print("seen")
                print("also", file=sys.stderr)
            def test_bad():
                assert 1 == 2, "not equal"
            def test_fixture(broken):
                pass
            @pytest.mark.skip
            def test_skipped():
                pass
            """
        )
    )
    _, told = launch(place, argv=["pytest", "-q", "-p", "no:cacheprovider", "--assert=plain", str(gist)])
    tests = {note["id"].partition("::")[2]: note for note in told if note.get("kind") == "outcome"}
    assert (tests["test_out"]["stdout"], tests["test_out"]["stderr"]) == ("seen\n", "also\n")
    assert (tests["test_bad"]["phase"], tests["test_fixture"]["phase"]) == ("call", "setup")
    assert tests["test_bad"]["raised"] == ["builtins.AssertionError", "not equal"]
    assert tests["test_fixture"]["raised"] == ["builtins.KeyError", "'x'"]
    assert tests["test_skipped"]["phase"] == "setup"
    assert (told[-1]["e"], told[-1]["exit"]) == ("finish", 1)
    assert [record["n"] for record in told] == list(range(1, len(told) + 1))


def test_nothing_leads_out_of_the_machine(place: Path) -> None:
    source = """
    import socket
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
    for attempt in (
        lambda: socket.getaddrinfo("example.org", 80),
        lambda: socket.create_connection(("192.0.2.1", 80), timeout=2),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.2", 9)),
    ):
        try:
            attempt()
        except OSError as error:
            print(type(error).__name__)
    """
    done, told = launch(place, argv=[str(write(place, source))])
    assert done.stdout == "gaierror\nOSError\nOSError\n", done.stderr
    assert events(told) == [("network", "example.org"), ("network", "192.0.2.1"), ("network", "192.0.2.2")]


def test_an_exception_is_told_and_shown(place: Path) -> None:
    done, told = launch(place, argv=[str(write(place, "raise KeyError('x')"))])
    assert done.returncode == 1
    assert "KeyError" in done.stderr
    assert told[-1] == {"kind": "end", "raised": ["builtins.KeyError", "'x'"]}
