"""Attacks have their expected results on the backends, and succeed where nothing stops them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from examples import sampled
from working_backends import on_one_backend, on_the_other_backends

from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import NEVER
from gistpoint.core.text import visible_line
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.attacks.stage import Stage, staged
from gistpoint.sandbox.attacks.table import ANSWERS, ATTACKS, ESCAPES, REPORTS, Attack, Expected
from gistpoint.sandbox.attacks.trying import SUITE, daemons, source_of, suite_files, try_attack
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.testruns import SuiteRunner


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as made:
        yield made


MARKED = [attack for attack in ATTACKS if attack.expected(PlainBackend()) is Expected.MARKED]
"""The attacks that no backend stops; submissions are searched for them."""


ISOLATED = [attack for attack in ATTACKS if attack not in (*MARKED, *REPORTS, *ANSWERS)]
FORGED = [attack for attack in REPORTS if attack not in MARKED]
"""The attacks whose result depends on the reader of the report, which a backend only transmits."""


@pytest.mark.parametrize("attack", ISOLATED, ids=lambda attack: attack.name)
def test_it_comes_to_what_the_table_says(attack, backend, stage, environments):
    finding = try_attack(backend, attack, stage, environments)
    assert finding.as_promised, finding


@on_one_backend
@pytest.mark.parametrize("attack", FORGED, ids=lambda attack: attack.name)
def test_a_forged_report_comes_to_what_the_table_says(attack, backend, stage, environments):
    finding = try_attack(backend, attack, stage, environments)
    assert finding.as_promised, finding


@on_the_other_backends
@pytest.mark.parametrize("attack", sampled(FORGED, 3), ids=lambda attack: attack.name)
def test_some_forged_reports_come_to_the_same_elsewhere(attack, backend, stage, environments):
    finding = try_attack(backend, attack, stage, environments)
    assert finding.as_promised, finding


@on_one_backend
@pytest.mark.parametrize("attack", MARKED, ids=lambda attack: attack.name)
def test_one_that_is_not_stopped_is_marked(attack, backend, stage, environments):
    finding = try_attack(backend, attack, stage, environments)
    assert finding.expected is Expected.MARKED
    assert finding.as_promised, finding


def bare(attack: Attack, stage: Stage, seconds: float, **more: object) -> tuple[bytes, int | None]:
    """Run an attack without a backend; return the bytes that it wrote to the pipe, and its exit status.

    It is killed after `seconds` or more than 2 MiB; the status is None if it was still running then.
    """
    reading, writing = os.pipe()
    given = {"results": writing, "token": stage.token, **attack.given, **more}
    code = source_of(attack)
    with subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(given)], pass_fds=(writing,), stdout=subprocess.DEVNULL,
        cwd=stage.base, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(writing)
        os.set_blocking(reading, False)
        seen, deadline = b"", time.monotonic() + seconds
        while time.monotonic() < deadline and process.poll() is None and len(seen) < 2 << 20:
            time.sleep(0.02)
            with contextlib.suppress(BlockingIOError):
                seen += os.read(reading, 1 << 20)
        with contextlib.suppress(BlockingIOError):
            seen += os.read(reading, 1 << 20)
        ended = process.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    os.close(reading)
    return seen, ended


CONTROLS: dict[str, Callable[[Attack, Stage], bool]] = {
    "fork-bomb": lambda attack, stage: stage.token.encode() in bare(attack, stage, 20, count=80)[0],
    "memory": lambda attack, stage: stage.token.encode() in bare(attack, stage, 20, hold=0)[0],
    "memory-sum": lambda attack, stage: stage.token.encode() in bare(attack, stage, 20, hold=0)[0],
    "loop": lambda attack, stage: bare(attack, stage, 1)[1] is None,
    "output": lambda attack, stage: bare(attack, stage, 1)[1] is None,
    "records": lambda attack, stage: len(bare(attack, stage, 10)[0]) > 1 << 20,
    "trace": lambda attack, stage: True,  # a machine may forbid attaching to another process
    "interfaces": lambda attack, stage: True,  # a machine may have no interface
    "namespace": lambda attack, stage: True,  # a kernel may refuse it to all users
}


@pytest.mark.parametrize("attack", ESCAPES, ids=lambda attack: attack.name)
def test_an_escape_succeeds_where_nothing_stops_it(attack, stage, environments):
    if attack.name == "daemon":
        bare(attack, stage, 3)
        deadline = time.monotonic() + 120
        while not (left := daemons(stage.token)) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert left
    elif attack.expected(PlainBackend()) is Expected.REACHES:
        assert try_attack(PlainBackend(), attack, stage, environments).reached
    else:
        assert CONTROLS[attack.name](attack, stage)


CAUGHT = [attack for attack in REPORTS if attack.expected(PlainBackend()) is Expected.STOPPED]


class Overheard(PlainBackend):
    """A plain backend that records the lines that come over the pipe."""

    lines: list[bytes]

    def run(self, command, *, on_line, cancel=NEVER):
        self.lines = []

        def both(line: bytes) -> None:
            self.lines.append(line)
            on_line(line)

        return super().run(command, on_line=both, cancel=cancel)


NAIVE_REPORTER = """
import json, os
class Results:
    def __init__(self):
        self.fd, self.reports = os.open("reports.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND), []
    def pytest_runtest_logreport(self, report):
        self.reports.append([report.when, report.outcome])
    def pytest_runtest_logfinish(self, nodeid):
        self.put("test", i=1, id=nodeid, reports=self.reports)
        self.reports = []
    def put(self, event, **fields):
        os.write(self.fd, json.dumps({"e": event, **fields}).encode() + b"\\n")
results = Results()
def pytest_configure(config):
    config.pluginmanager.register(results)
"""


@pytest.mark.parametrize("attack", CAUGHT, ids=lambda attack: attack.name)
def test_an_attack_on_the_report_deceives_a_naive_judge(attack, tmp_path, environments):
    """Each judge trusts one thing: the exit status, the report file, a plugin's records, or the pipe."""
    repository = tmp_path / "repository"
    repository.mkdir()
    for path, text in suite_files(attack).items():
        (repository / path).write_text(text)
    (repository / "naive.py").write_text(NAIVE_REPORTER)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "naive",
        "--junitxml=report.xml",
    ]
    environment = {"PATH": os.defpath, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(repository)}
    ran = subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, timeout=300, check=False
    )
    (repository / "reports.jsonl").touch()
    reported = (repository / "reports.jsonl").read_text().splitlines()
    plugin = sum('"failed"' in line for line in reported) == SUITE.count("def test_") - 1
    file = file_shows_a_failure(repository / "report.xml")
    if ran.returncode == 0 or not file or not plugin:
        return  # one of them is already deceived, so the run for the pipe is not needed
    overheard = Overheard()
    write_tree(repository, tmp_path / "tree.tar")
    request = RunRequest(SourceTree.open(tmp_path / "tree.tar"), EnvironmentPins(), timeout_s=300)
    report = SuiteRunner(overheard, environments).run(request)
    told = any(b'"call", "failed"' in line and b'"i": 1' in line for line in overheard.lines)
    failed = {"test_attacked.py::test_it"} & {result.id for result in report.failed}
    assert not told or not failed


def file_shows_a_failure(path: Path) -> bool:
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return False
    return any(case.get("name") == "test_it" and case.find("failure") is not None for case in cases)


def test_escapes_for_the_terminal_stay_raw_in_the_report_and_harmless_on_the_screen(run):
    test = """
import pytest
@pytest.mark.parametrize("x", ["\\x1b[2J\\x1b]0;owned\\x07"], ids=["\\x1b[2Jowned"])
def test_a(x):
    print("\\x1b[31mred")
    assert 0, "\\x1b[2Jgone\\u202e"
"""
    report = run(
        {"test_a.py": test, "conftest.py": "def pytest_make_parametrize_id(val): return 'a\\x1b[2J'\n"}
    )
    texts = [*report.results, *(result.message for result in report.results.values()), report.output]
    assert any("\x1b" in text for text in texts)
    for text in texts:
        assert not set(visible_line(text)) & {chr(code) for code in (*range(32), 0x7F, 0x9B, 0x202E)}


def test_links_and_devices_of_a_tree_do_not_lead_out(run, make_tree, tmp_path, backend):
    import io
    import tarfile

    secret = tmp_path / "secret"
    secret.write_text("the-secret")
    with tarfile.open(tmp_path / "links.tar", "w") as tar:
        test = (
            "from pathlib import Path\n"
            "def test_a():\n"
            "    assert sorted(p.name for p in Path().iterdir()) == ['inner', 'test_a.py']\n"
        )
        for name, text in (("test_a.py", test), ("inner", "x")):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
        for name, target in (
            ("absolute", str(secret)),
            ("up", "../../../../etc/passwd"),
            ("twice", "up/../secret"),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    assert run(SourceTree.open(tmp_path / "links.tar")).passed == {"test_a.py::test_a"}


def test_what_a_run_turns_its_tree_into_is_not_followed_afterwards(run, tmp_path):
    """The run replaces its home and temporary folders with links to a host folder before their removal."""
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o777)
    kept.chmod(0o777)
    (kept / "file").write_text("here")
    test = f"""
import os, shutil
def test_a():
    here = os.getcwd()
    for name in ("home", "tmp"):
        place = os.path.join(os.path.dirname(here), name)
        try:
            shutil.rmtree(place, ignore_errors=True); os.symlink({str(kept)!r}, place)
        except OSError: pass
    os.symlink({str(kept)!r}, "link"); os.link("link", "hard") if hasattr(os, "link") else None
    os.mkfifo("fifo")
"""
    run({"test_a.py": test})
    assert (kept / "file").read_text() == "here"
