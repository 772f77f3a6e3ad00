"""What of its tree a run may change, on each backend: nothing but what the original's own suite changes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gistpoint.core.attempts.protection import NOTHING
from gistpoint.core.generation.intake import Repository, take_in
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import EnvironmentPins, Source, Writable
from gistpoint.core.tasks.protection import Protection
from gistpoint.sandbox.attacks.stage import staged
from gistpoint.sandbox.attacks.table import TREES
from gistpoint.sandbox.attacks.trees import run_attacked
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.testruns import SuiteRunner

QUIET = """
import os
from pathlib import Path
HERE = Path(__file__).parent
def test_reads():
    assert (HERE / "data" / "golden.txt").read_text() == "right"
def test_writes_elsewhere(tmp_path):
    (tmp_path / "file").write_text("x")
    Path(os.environ["HOME"], "file").write_text("x")
"""
FILES = {
    "tests/test_a.py": QUIET,
    "tests/data/golden.txt": "right",
    "tests/data/old.txt": "old",
    "pkg/__init__.py": "",
    "made/keep.txt": "",
}


@pytest.fixture
def taken_in(backend, environments, make_tree):
    def take(test: str, **more: object) -> Protection:
        tree = make_tree({**FILES, "tests/test_b.py": test})
        repository = Repository(Source("folder", "tiny", "1"), tree, EnvironmentPins(python="", **more))
        intake = take_in(repository, SuiteRunner(backend, environments), runs=2)
        assert intake.protection is not None
        return intake.protection

    return take


HEAD = (
    "import os, sqlite3, subprocess, sys\nfrom pathlib import Path\nHERE = Path(__file__).parent\ndef test_b():\n    "
)
GOLDEN = "tests/data/golden.txt"


@pytest.mark.parametrize(
    ("body", "writable"),
    [
        ("pass", NOTHING),
        ("try: Path('.benchmarks').mkdir()\n    except OSError: pass", None),
        ("Path('made/new.txt').write_text('x'); os.unlink('made/new.txt')", Writable(("made",))),
        ("os.mkdir('made/new'); Path('made/new/file').touch()", Writable(("made",))),
        ("subprocess.run('echo x > made/by-child', shell=True, check=True)", Writable(("made",))),
        ("sqlite3.connect('made/base.db').execute('create table t (x)')", Writable(("made",))),
        ("(HERE / 'data/golden.txt').write_text('right')", Writable((), (GOLDEN,))),
        ("os.utime(HERE / 'data/golden.txt', (1, 1))", Writable((), (GOLDEN,))),
        ("(HERE / 'data/golden.txt').open('a').close()", NOTHING if os.name == "nt" else None),
        ("Path('top.txt').write_text('x')", Writable((".",))),
        (
            "os.replace(HERE / 'data/old.txt', HERE / 'data/now.txt')",
            Writable(("tests/data",), ("tests/data/old.txt",)),
        ),
        ("os.chmod('made', 0o700); Path('made/x').touch()", Writable(("made",), ("made",))),
        ("os.rename('made', 'moved'); os.rename('moved', 'made')", None),
    ],
)
def test_what_the_suite_itself_changes_is_found_out(taken_in, body, writable):
    found = taken_in(HEAD + body + "\n")
    if writable is not None:
        assert found.writable == writable, found
    else:  # by backend: some try and fail, which the suite does not mind
        assert found.writable is not None, found


def test_a_suite_that_changes_too_much_is_not_protected_and_says_so(taken_in):
    body = "for n in range(300): os.mkdir(f'made/{n}')\n    for n in range(300): os.rmdir(f'made/{n}')"
    assert taken_in(HEAD + body + "\n").writable == Writable(("made",))
    found = taken_in(HEAD + "os.chmod('.', 0o755)\n")
    assert found.writable is None
    assert "changes too much" in found.reason


def test_what_build_steps_change_is_theirs(taken_in):
    steps = ("echo 'VALUE = 7' > pkg/built.py", "sed -i s/right/right/ tests/data/golden.txt")
    found = taken_in("from pkg.built import VALUE\ndef test_b(): assert VALUE == 7\n", build_steps=steps)
    assert found.writable is not None
    assert "pkg" in found.writable.folders
    assert GOLDEN in found.writable.paths


WRITABLE = {
    "nothing": NOTHING,
    "a folder": Writable(("tests/data",)),
    "the tests' folder": Writable(("tests",)),
    "everything by its folders": Writable((".", "tests", "tests/data", "tests/inner")),
    "a file": Writable((), ("tests/inner/test_inner.py",)),
    "what is not there": Writable(("absent", "mod.py"), ("absent/file", "../../outside", "/etc", "tests/../mod.py")),
}
ALLOWED = {
    # A package that is added to a folder hides a module in it: nothing can tell it from what the suite may add.
    ("the tests' folder", "shadow-helper"),
    ("everything by its folders", "shadow-helper"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    for part in (folder, *folder.parents[:2]):
        part.chmod(0o755)
    return folder


@pytest.mark.parametrize("writable", WRITABLE)
@pytest.mark.parametrize("attack", TREES, ids=lambda attack: attack.name)
def test_attacks_where_something_is_writable(attack, writable, backend, place, environments):
    report = run_attacked(backend, attack, place, environments, WRITABLE[writable])
    reached = bool(report.passed)
    assert reached is ((writable, attack.name) in ALLOWED), report


@pytest.mark.parametrize("attack", TREES, ids=lambda attack: attack.name)
def test_each_succeeds_where_nothing_stops_it(attack, backend, place, environments):
    assert run_attacked(backend, attack, place, environments, None).passed


def test_what_is_writable_can_be_written(run, backend):
    test = """
import os
from pathlib import Path
def test_folder():
    Path("made/new.txt").write_text("x"); os.replace("made/new.txt", "made/newer.txt"); os.unlink("made/newer.txt")
    os.makedirs("made/a/b"); os.rmdir("made/a/b")
    Path("made/link").symlink_to("keep.txt")
def test_paths():
    Path("tests/data/golden.txt").write_text("other"); os.utime("tests/data/golden.txt", (1, 1))
    os.chmod("tests/data/golden.txt", 0o600)
    os.unlink("own/inner/file"); os.rmdir("own/inner"); Path("own/another").touch()
def test_others():
    for attempt in (lambda: Path("new").touch(), lambda: Path("tests/new").touch(), lambda: os.unlink("made/keep.txt"),
                    lambda: os.rename("made/keep.txt", "made/kept"), lambda: Path("made/keep.txt").write_text("x"),
                    lambda: os.rename("made", "moved"), lambda: os.chmod("tests", 0o777), lambda: os.rmdir("empty")):
        try: attempt()
        except OSError: continue
        raise AssertionError
"""
    files = {**FILES, "tests/test_a.py": test, "own/inner/file": "x", "made/inner/file": "x"}
    report = run(files, writable=Writable(("made",), ("own", GOLDEN)))
    if backend.name == "plain":
        assert report.status is RunStatus.INVALID
        assert "The run changed" in report.reason
        return
    assert report.status is RunStatus.FINISHED, report
    held = {"tests/test_a.py::test_folder", "tests/test_a.py::test_paths", "tests/test_a.py::test_others"}
    assert report.passed == held, [result.message for result in report.failed]


def test_links_of_the_tree_stay_what_they_lead_to(run, backend, tmp_path):
    folder = tmp_path / "repository"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "made" / "golden").symlink_to("../tests/data/golden.txt")
    (folder / "made" / "data").symlink_to("../tests/data")
    test = """
import os
from pathlib import Path
def test_read():
    assert Path("made/golden").read_text() == Path("made/data/golden.txt").read_text() == "right"
def test_write():
    for path in ("made/golden", "made/data"):
        for attempt in (os.unlink, lambda path: os.rename(path, "made/else"), lambda path: open(path + "/x", "w")):
            try: attempt(path)
            except OSError: continue
            raise AssertionError(path)
"""
    report = run({"tests/test_a.py": test}, writable=Writable(("made",)))
    expected = {"tests/test_a.py::test_read", "tests/test_a.py::test_write"}
    if backend.name != "plain":
        assert report.passed == expected, [result.message for result in report.failed]
    else:
        assert report.status is RunStatus.INVALID


def test_a_run_that_changed_nothing_is_not_accused(run):
    report = run({**FILES, "tests/test_b.py": "import pkg\ndef test_b(): pass\n"}, writable=NOTHING)
    assert report.status is RunStatus.FINISHED, report.reason
    assert len(report.passed) == 3


def by_name(files: Mapping[str, str]) -> set[str]:
    return set(files)


def test_the_limit_of_the_disk_holds_in_writable_folders(run, backend):
    from gistpoint.sandbox.limits import Limits

    test = """
def test_fill():
    for number in range(64):
        open(f"made/{number}", "wb").write(bytes(1 << 20))
"""
    small = Limits(workspace=16 << 20, temporary=16 << 20)
    report = run({**FILES, "tests/test_b.py": test}, writable=Writable(("made",)), limits=small)
    if backend.name != "plain":
        assert "tests/test_b.py::test_fill" not in report.passed


_ = (replace, staged, Backend)
