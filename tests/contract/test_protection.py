"""A run may change nothing in its tree, on each backend, except what the original's own suite changes."""

from __future__ import annotations

import pytest
from working_backends import on_one_backend

from gistpoint.core.generation.intake import take_in
from gistpoint.core.kinds.protecting import NOTHING
from gistpoint.core.outcomes import RunStatus, Writable
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.attacks.table import TREES
from gistpoint.sandbox.attacks.trying import run_attacked
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.testruns import SuiteRunner

FILES = {
    "tests/test_a.py": """
import os
from pathlib import Path
HERE = Path(__file__).parent
def test_reads():
    assert (HERE / "data" / "golden.txt").read_text() == "right"
def test_writes_elsewhere(tmp_path):
    (tmp_path / "file").write_text("x")
    Path(os.environ["HOME"], "file").write_text("x")
""",
    "tests/data/golden.txt": "right",
    "pkg/__init__.py": "",
    "made/keep.txt": "",
    **{f"{folder}/keep.txt": "" for folder in "abcdefgh"},
}
HEAD = """import os, sqlite3, subprocess
from pathlib import Path
HERE = Path(__file__).parent
def test_b():
    """
GOLDEN = "tests/data/golden.txt"
MADE = Writable(("made",))


@pytest.fixture
def taken_in(backend, environments, make_tree):
    def take(test: str, **more: object) -> Protection:
        tree = make_tree({**FILES, "tests/test_b.py": test})
        repository = Repository(Source("folder", "tiny", "1"), tree, EnvironmentPins(python="", **more))
        intake = take_in(repository, SuiteRunner(backend, environments), runs=1)
        assert intake.protection is not None
        return intake.protection

    return take


CHANGES = {
    "Path('a/new.txt').write_text('x'); os.unlink('a/new.txt')": Writable(("a",)),
    "os.mkdir('b/new'); Path('b/new/file').touch()": Writable(("b",)),
    "subprocess.run('echo x > c/by-child', shell=True, check=True)": Writable(("c",)),
    "sqlite3.connect('d/base.db').execute('create table t (x)')": Writable(("d",)),
    "Path('e/keep.txt').write_text('right')": Writable((), ("e/keep.txt",)),
    "os.utime('f/keep.txt', (1, 1))": Writable((), ("f/keep.txt",)),
    "os.replace('g/keep.txt', 'g/now.txt')": Writable(("g",), ("g/keep.txt",)),
    "os.chmod('h', 0o700); Path('h/x').touch()": Writable(("h",), ("h",)),
}


def test_what_the_suite_itself_changes_is_found_out(taken_in, backend):
    bodies = "".join(f"def test_{number}():\n    {body}\n" for number, body in enumerate(CHANGES))
    found = taken_in(HEAD.partition("def ")[0] + bodies)
    hidden = (
        ("h/keep.txt",) if backend.name == "docker" else ()
    )  # its root may not enter a folder with mode 0700
    paths = [path for change in CHANGES.values() for path in change.paths]
    assert found.writable == Writable(
        tuple(folder for change in CHANGES.values() for folder in change.folders), (*paths, *hidden)
    )


@pytest.mark.parametrize(
    ("body", "writable"), [("pass", NOTHING), ("Path('top.txt').write_text('x')", Writable((".",)))]
)
def test_nothing_and_the_tree_itself_are_found_out(taken_in, body, writable):
    assert taken_in(HEAD + body + "\n").writable == writable


def test_what_it_only_tries_is_not_writable(taken_in, backend):
    body = "try: Path('.benchmarks').mkdir()\n    except OSError: pass\n"
    succeeds = backend.name == "plain"
    assert taken_in(HEAD + body).writable == (Writable((".",)) if succeeds else NOTHING)


def test_a_suite_that_can_not_be_held_to_it_is_not_protected_and_says_so(taken_in, backend):
    found = taken_in(HEAD + "os.rename('made', 'moved'); os.rename('moved', 'made')\n")
    if backend.name == "plain":  # it does not refuse anything, so nothing fails
        assert found.writable is not None
    else:
        assert found.writable is None
        assert "tests/test_b.py::test_b" in found.reason


@on_one_backend
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("os.chmod('.', 0o700)", "changes too many of its files"),
        ("(HERE / 'data/golden.txt').open('a').close()", "tests/test_b.py::test_b"),
    ],
)
def test_other_suites_that_can_not_be_held_to_it(taken_in, body, reason):
    found = taken_in(HEAD + body + "\n")
    assert found.writable is None
    assert reason in found.reason


def test_what_build_steps_change_is_theirs(taken_in):
    steps = ("echo 'VALUE = 7' > pkg/built.py", "sed -i s/right/right/ tests/data/golden.txt")
    found = taken_in("from pkg.built import VALUE\ndef test_b(): assert VALUE == 7\n", build_steps=steps)
    assert found.writable == Writable(("pkg", "tests/data"), (GOLDEN,))


FOLDERS = Writable((".", "tests", "tests/data", "tests/inner"))
OTHERS = {
    "a file": Writable((), ("tests/inner/test_inner.py",)),
    "what is not there": Writable(
        ("absent", "mod.py"), ("absent/file", "../../outside", "/etc", "tests/../mod.py")
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    for part in (folder, *folder.parents[:2]):
        part.chmod(0o755)
    return folder


@pytest.mark.parametrize("attack", TREES, ids=lambda attack: attack.name)
def test_attacks_where_every_folder_is_writable(attack, backend, place, environments):
    """An added package that hides a module can't be distinguished from what the suite may do."""
    reached = bool(run_attacked(backend, attack, place, environments, FOLDERS).passed)
    assert reached is (attack.name == "shadow-helper")


@pytest.mark.parametrize("writable", OTHERS)
@pytest.mark.parametrize("name", ["rewrite-tests", "replace-folder", "write-otherwise"])
def test_attacks_where_something_else_is_writable(name, writable, backend, place, environments):
    (attack,) = (attack for attack in TREES if attack.name == name)
    assert not run_attacked(backend, attack, place, environments, OTHERS[writable]).passed


CHANGING = """
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
    allowed = []
    for attempt in (lambda: os.rename("made/keep.txt", "made/kept"), lambda: os.unlink("made/keep.txt"),
                    lambda: Path("made/keep.txt").write_text("x"), lambda: os.rename("made", "moved"),
                    lambda: os.chmod("tests", 0o777), lambda: Path("new").touch(), lambda: Path("tests/new").touch(),
                    lambda: os.truncate("pkg/__init__.py", 0), lambda: os.rename("pkg", "gkp")):
        try: allowed.append(attempt())
        except OSError: continue
    assert not allowed
"""


def test_what_is_writable_can_be_changed_and_nothing_else(run, backend):
    files = {**FILES, "tests/test_a.py": CHANGING, "own/inner/file": "x", "made/inner/file": "x"}
    report = run(files, writable=Writable(("made",), ("own", GOLDEN)))
    if backend.name == "plain":
        assert report.status is RunStatus.INVALID
        assert report.reason.startswith("The run changed made and ")
    else:
        assert report.status is RunStatus.FINISHED, report
        assert not report.failed, [result.message for result in report.failed]


LINKED = """
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


def test_links_in_a_writable_folder_stay_what_they_lead_to(run, backend, tmp_path):
    folder = tmp_path / "linked"
    for path, text in {**FILES, "tests/test_a.py": LINKED}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "made" / "golden").symlink_to("../tests/data/golden.txt")
    (folder / "made" / "data").symlink_to("../tests/data")
    write_tree(folder, tmp_path / "linked.tar")
    report = run(SourceTree.open(tmp_path / "linked.tar"), writable=MADE)
    if backend.name == "plain":
        assert report.reason == "The run changed made/golden, which must not change during a run."
    else:
        assert report.status is RunStatus.FINISHED, report
        assert not report.failed, [result.message for result in report.failed]


def test_a_run_that_changed_nothing_is_not_accused(run):
    report = run({**FILES, "tests/test_b.py": "import pkg\ndef test_b(): pass\n"}, writable=NOTHING)
    assert report.status is RunStatus.FINISHED, report.reason
    assert len(report.passed) == 3


def test_the_limit_of_the_disk_holds_in_writable_folders(run, backend):
    test = "def test_b():\n    for n in range(64): open(f'made/{n}', 'wb').write(bytes(1 << 20))\n"
    small = RunLimits(workspace=16 << 20, temporary=16 << 20)
    report = run({**FILES, "tests/test_b.py": test}, writable=MADE, limits=small)
    assert "tests/test_b.py::test_b" not in report.passed or backend.name == "plain"
