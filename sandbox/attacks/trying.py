"""Trying one attack on one backend, and seeing from outside what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.ports import EnvironmentPins, RunRequest, Writable
from gistpoint.core.suspicion.submission import marks
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.attacks.commands import run_command
from gistpoint.sandbox.attacks.table import SMALL, Attack, Expected, Proof
from gistpoint.sandbox.attacks.trees import run_attacked
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Invocation, Places, Stop
from gistpoint.sandbox.testruns import Environments, SuiteRunner

if TYPE_CHECKING:
    from gistpoint.sandbox.attacks.stage import Stage

_HERE = Path(__file__).parent
_SLACK = 100
SUITE = """import unittest

import mod
import pytest


def test_before():
    pass


def test_it():
    wanted = object()
    assert mod.f() == wanted


def test_raises():
    with pytest.raises(ValueError):
        mod.f()


class TestCase(unittest.TestCase):
    def test_case(self):
        self.assertEqual(1, 2)


def test_approx():
    assert 2.0 == pytest.approx(1.0)


def test_helper():
    mod.assert_same(1, 2)


def test_after():
    assert 0
"""
HARMLESS = "def f():\n    pass\n\n\ndef assert_same(left, right):\n    assert left == right\n"
ATTACKED, TESTS = "mod.py", "test_attacked.py"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one attack on one backend."""

    attack: Attack
    backend: str
    reached: bool
    detail: str = ""
    suspicious: tuple[str, ...] = ()
    """Why a submission of it would be read before its pass counts."""

    @property
    def as_promised(self) -> bool:
        """Whether that is what the table says."""
        expected = self.attack.expected(self.backend)
        if expected is Expected.MARKED:
            return self.reached and bool(self.suspicious)
        return expected is Expected.EITHER or self.reached is (expected is Expected.REACHES)


def source_of(attack: Attack) -> str:
    """Return the text of an attack's file."""
    folder = {Proof.PASSED: "reports", Proof.CHANGED: "trees", Proof.EXECUTED: "commands"}.get(attack.proof, "escapes")
    suffix = "sh" if attack.proof is Proof.EXECUTED else "py"
    return (_HERE / folder / f"{attack.file}.{suffix}").read_text("utf-8")


def suite_files(attack: Attack) -> Mapping[str, str]:
    """Return the repository in which an attack on the report takes place: all tests but `test_before` fail in it."""
    if attack.file.startswith("conftest"):
        return {"conftest.py": source_of(attack), ATTACKED: HARMLESS, TESTS: SUITE}
    return {ATTACKED: source_of(attack), TESTS: SUITE}


def try_attack(backend: Backend, attack: Attack, stage: Stage, environments: Environments) -> Finding:
    """Run `attack` on `backend` under small limits and return what it reached."""
    if attack.proof is Proof.PASSED:
        return _try_report(backend, attack, stage, environments)
    if attack.proof is Proof.CHANGED:
        report = run_attacked(backend, attack, stage.base, environments, Writable())
        return Finding(attack, backend.name, bool(report.passed), report.reason)
    if attack.proof is Proof.EXECUTED:
        told = run_command(backend, attack, stage)
        return Finding(attack, backend.name, stage.token[::-1] in told.output, told.stop.value)
    stage.reset()
    given = _given(attack, stage)
    tree = stage.base / "tree"
    _lay(tree, attack, stage)
    lines: list[bytes] = []
    began = time.monotonic()
    ended = _run(backend, attack.file, attack, given, stage, lines)
    took = time.monotonic() - began
    if attack.then:
        lines.clear()
        ended = _run(backend, attack.then, attack, given, stage, lines)
    reached = _reached(attack, stage, lines, ended, took)
    detail = ended.stop.value if ended.stop is not Stop.EXITED else (ended.output.strip().splitlines() or [""])[-1]
    return Finding(attack, backend.name, reached, detail[:200])


def _lay(tree: Path, attack: Attack, stage: Stage) -> None:
    (tree / "attacks").mkdir(parents=True, exist_ok=True)
    tree.chmod(0o755)
    for name in filter(None, (attack.file, attack.then)):
        (tree / "attacks" / f"{name}.py").write_bytes((_HERE / "escapes" / f"{name}.py").read_bytes())
    with contextlib.suppress(FileExistsError):
        (tree / "link").symlink_to(stage.files["secret"])


def _given(attack: Attack, stage: Stage) -> dict[str, object]:
    victim = stage.fresh_victim().pid
    version = stage.environment.version
    given: dict[str, object] = {
        "victim": victim,
        "victim_mark": f"victim-{stage.token}",
        "program": os.getpid(),
        "outside": str(stage.base / "outside"),
        "private": str(stage.base / "home" / "private"),
        "key": int(stage.token[:7], 16),
        "site": str(stage.environment.folder / "lib" / f"python{version}" / "site-packages"),
        "vendors": str(stage.vendors),
        **attack.given,
    }
    if attack.file not in ("read_file", "read_link", "read_environment", "connect", "import_vendored"):
        given["token"] = stage.token
    if attack.file == "read_file":
        given["target"] = str(stage.files[str(attack.given["target"])])
    if "address" in given:
        given["address"] = stage.addresses[str(attack.given["address"])]
    return given


def _run(
    backend: Backend, file: str, attack: Attack, given: Mapping[str, object], stage: Stage, lines: list[bytes]
) -> Ended:
    def invocation(places: Places) -> Invocation:
        told = json.dumps({**given, "results": places.results_fd})
        arguments = (places.python, "-B", f"{places.workspace}/attacks/{file}.py", told)
        environment = {"PATH": "/usr/bin:/bin", "HOME": places.home, "TMPDIR": places.temporary}
        return Invocation(arguments, environment)

    command = Command(stage.base / "tree", stage.environment, invocation, attack.timeout_s, limits=SMALL)
    return backend.run(command, on_line=lambda line: lines.append(line) if len(lines) < 1000 else None)


def _reached(attack: Attack, stage: Stage, lines: list[bytes], ended: Ended, took: float) -> bool:
    match attack.proof:
        case Proof.TOLD:
            secret = stage.secret_of(str(attack.given.get("target", "")))
            return any(secret in line for line in lines)
        case Proof.KILLED:
            time.sleep(0.1)
            return stage.victim is not None and stage.victim.poll() is not None
        case Proof.WRITTEN:
            return (stage.base / "outside" / "written").exists()
        case Proof.OPENED:
            return stat.S_IMODE((stage.base / "home" / "private").stat().st_mode) != 0o600
        case Proof.OUTLIVED:
            return _end_daemons(stage.token)
        case Proof.RAN_ON:
            return ended.stop is Stop.EXITED or took > 2 * attack.timeout_s + 10
        case Proof.FLOODED:
            return len(ended.output) > SMALL.output + _SLACK
        case Proof.PASSED | Proof.CHANGED | Proof.EXECUTED:
            raise AssertionError("these are tried in another way")


def _end_daemons(mark: str) -> bool:
    """End the processes that the daemon attack left, and return whether there were any."""
    found = False
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        if not daemons(mark):
            return False
        time.sleep(0.1)
    for pid in daemons(mark):
        found = True
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return found


def daemons(mark: str) -> list[int]:
    """Return the processes whose last argument is `mark`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes().endswith(f"\0{mark}\0".encode()):
                found.append(int(entry.name))
    return found


def _try_report(backend: Backend, attack: Attack, stage: Stage, environments: Environments) -> Finding:
    folder = stage.base / "suites" / attack.file
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in suite_files(attack).items():
        (folder / path).write_text(text)
    tar = stage.base / "suites" / f"{attack.file}.tar"
    if not tar.exists():
        write_tree(folder, tar)
    tree = SourceTree.open(tar)
    request = RunRequest(tree, EnvironmentPins(), timeout_s=attack.timeout_s)
    report = SuiteRunner(backend, environments).run(request)
    believed = {id.rpartition("::")[2] for id in report.passed} - {"test_before"}
    given = tree.with_files({ATTACKED: HARMLESS.encode()})
    suspicious = marks(given, tree.with_files({ATTACKED: tree.read(ATTACKED)}), given, [TESTS])
    return Finding(attack, backend.name, bool(believed), report.reason or ", ".join(sorted(believed)), suspicious)
