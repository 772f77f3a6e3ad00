"""Tries attacks on backends, and observes from outside whether they succeed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gistpoint.core.errors import InfrastructureError
from gistpoint.core.outcomes import SuiteReport, Writable
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.suspicion.submission import marks
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.attacks.stage import Stage, staged
from gistpoint.sandbox.attacks.table import ATTACKS, SMALL, Attack, AttackEvidence, Expected
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Invocation, Stop
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.shell import READING_PROGRAMS, shell_invocation
from gistpoint.sandbox.layout import MountPaths
from gistpoint.sandbox.testruns import EnvironmentSource, SuiteRunner

_HERE = Path(__file__).parent
_SLACK = 100
_LINES_KEPT = 1000
_DYING_S = 1.0
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
_TESTS = """import configparser
from pathlib import Path

import mod
from tests.helper import same

HERE = Path(__file__).parent


def test_it():
    assert mod.f() == "right"


def test_golden():
    assert mod.f() == (HERE / "data" / "golden.txt").read_text()


def test_helped():
    assert same(mod.f(), "right")


def test_configured():
    settings = configparser.ConfigParser()
    settings.read(HERE.parent / "setup.cfg")
    assert mod.f() == settings["suite"]["expected"]


def test_source():
    assert Path(mod.__file__).read_text().startswith("def f():")
"""
_SURROUNDINGS = {
    "conftest.py": "import mod\n",
    "setup.cfg": "[suite]\nexpected = right\n",
    "tests/__init__.py": "",
    "tests/conftest.py": "",
    "tests/data/golden.txt": "right",
    "tests/helper.py": "def same(one, other):\n    return one == other\n",
    "tests/test_attacked.py": _TESTS,
    "tests/inner/__init__.py": "",
    "tests/inner/test_inner.py": "def test_inner():\n    assert 0\n",
}
_ANSWERED = {
    ATTACKED: "def f(n):\n    return n * n + 1\n",
    "tests/test_mod.py": """import mod
import pytest

WANTED = {1: 2, 2: 5, 3: 10}


@pytest.mark.parametrize("n", WANTED)
def test_it(n):
    wanted = WANTED[n]
    assert mod.f(n) == wanted
""",
}
ANSWERED = f"{ATTACKED}::f"
"""The function whose answers are forged, as `path::qualname`."""
ANSWERED_TESTS = tuple(f"tests/test_mod.py::test_it[{n}]" for n in (1, 2, 3))
_LINES = 3000
"""The number of lines in a file in which a command may look for code to run."""


@dataclass(frozen=True, slots=True)
class AttackFinding:
    """The outcome of one attack on one backend."""

    attack: Attack
    backend: str
    expected: Expected
    reached: bool
    detail: str = ""
    suspicious: tuple[str, ...] = ()
    """Why a submission with this attack would be reviewed before its pass counts; empty if it would not."""

    @property
    def as_promised(self) -> bool:
        """Whether the outcome is as expected."""
        if self.expected is Expected.MARKED:
            return self.reached and bool(self.suspicious)
        return self.expected is Expected.EITHER or self.reached is (self.expected is Expected.REACHES)


def source_of(attack: Attack) -> str:
    """Return the source of an attack."""
    folder = {
        AttackEvidence.PASSED: "reports",
        AttackEvidence.CHANGED: "trees",
        AttackEvidence.CONFIRMED: "answers",
        AttackEvidence.EXECUTED: "commands",
    }.get(attack.proof, "escapes")
    suffix = "sh" if attack.proof is AttackEvidence.EXECUTED else "py"
    return (_HERE / folder / f"{attack.file}.{suffix}").read_text("utf-8")


def suite_files(attack: Attack) -> Mapping[str, str]:
    """Return the files of the repository for an attack on the report or the tree, by path.

    All tests except `test_before` fail on it.
    """
    if attack.proof is AttackEvidence.CHANGED:
        return {**_SURROUNDINGS, ATTACKED: source_of(attack)}
    if attack.file.startswith("conftest"):
        return {"conftest.py": source_of(attack), ATTACKED: HARMLESS, TESTS: SUITE}
    return {ATTACKED: source_of(attack), TESTS: SUITE}


class AnswerTrial(Protocol):
    """A check whether a tree with a forged function would be confirmed on one backend."""

    def passes(self, submitted: SourceTree) -> tuple[bool, str]:
        """Return whether `submitted` would be confirmed, and a detail, such as how many tests fail."""
        ...


AnswerTrials = Callable[[Backend, EnvironmentSource, SourceTree], AnswerTrial]
"""A function that makes the trial for a backend, from the tree with the true function (`ANSWERED`)."""


def self_test(
    backends: Mapping[str, Backend],
    cache: Path,
    answers: AnswerTrials,
    attacks: Sequence[Attack] = ATTACKS,
) -> Iterator[tuple[Attack, Mapping[str, AttackFinding]]]:
    """Try every attack on every backend; yield each attack with its findings by the backend's name.

    `answers` makes the check of forged answers for a backend. A forged answer that can't be tried counts as a
    successful attack.
    """
    environments = EnvironmentStore(cache)
    with staged() as stage:
        tree = answered_tree(stage.base)
        trials: dict[str, AnswerTrial] = {}
        for attack in attacks:
            tried = {}
            for name, backend in backends.items():
                if attack.proof is not AttackEvidence.CONFIRMED:
                    tried[name] = try_attack(backend, attack, stage, environments)
                    continue
                try:
                    if name not in trials:
                        trials[name] = answers(backend, environments, tree)
                    tried[name] = try_answer(backend, attack, trials[name], tree)
                except InfrastructureError as error:
                    # An attack that can't be tried must not look as if it had been stopped.
                    tried[name] = AttackFinding(
                        attack, name, attack.expected(backend), reached=True, detail=str(error)
                    )
            yield attack, tried


def answered_tree(base: Path) -> SourceTree:
    """Pack the function whose answers are forged and its tests into a file below `base`; return the tree."""
    return _packed(_ANSWERED, base / "suites", "answered")


def try_answer(backend: Backend, attack: Attack, trial: AnswerTrial, tree: SourceTree) -> AttackFinding:
    """Try an attack on confirmation in place of the true function in `tree`, and return the finding."""
    reached, detail = trial.passes(tree.with_files({ATTACKED: source_of(attack).encode()}))
    return AttackFinding(attack, backend.name, attack.expected(backend), reached, detail)


def try_attack(
    backend: Backend, attack: Attack, stage: Stage, environments: EnvironmentSource
) -> AttackFinding:
    """Try `attack` on `backend` under small limits, as its kind of evidence requires; return the finding."""
    if attack.proof is AttackEvidence.PASSED:
        return _try_report(backend, attack, stage, environments)
    if attack.proof is AttackEvidence.CHANGED:
        report = run_attacked(backend, attack, stage.base, environments, Writable())
        return AttackFinding(
            attack, backend.name, attack.expected(backend), bool(report.passed), report.reason
        )
    if attack.proof is AttackEvidence.EXECUTED:
        outcome = _run_command(backend, attack, stage)
        reached = stage.token[::-1] in outcome.output
        return AttackFinding(attack, backend.name, attack.expected(backend), reached, outcome.stop.value)
    # The effects of the last attack would otherwise be mistaken for those of this attack.
    stage.reset()
    given = _inputs(attack, stage)
    tree = stage.base / "tree"
    _lay_out(tree, attack, stage)
    lines: list[bytes] = []
    began = time.monotonic()
    ended = _run(backend, attack.file, attack, given, stage, lines)
    took = time.monotonic() - began
    if attack.then:
        # Only the second run counts, since the first has merely left its trace.
        lines.clear()
        ended = _run(backend, attack.then, attack, given, stage, lines)
    reached = _reached(attack, stage, lines, ended, took)
    detail = (
        ended.stop.value if ended.stop is not Stop.EXITED else (ended.output.strip().splitlines() or [""])[-1]
    )
    return AttackFinding(attack, backend.name, attack.expected(backend), reached, detail[:200])


def _lay_out(tree: Path, attack: Attack, stage: Stage) -> None:
    (tree / "attacks").mkdir(parents=True, exist_ok=True)
    tree.chmod(0o755)
    for name in filter(None, (attack.file, attack.then)):
        (tree / "attacks" / f"{name}.py").write_bytes((_HERE / "escapes" / f"{name}.py").read_bytes())
    # The tree is laid out again for each attack; from the second attack on, the link exists.
    with contextlib.suppress(FileExistsError):
        (tree / "link").symlink_to(stage.files["secret"])


def _existing_files(attack: Attack) -> list[str]:
    """Return the paths among an attack's inputs that are files on this machine."""
    paths = attack.given["paths"]
    assert isinstance(paths, list)
    return [path for path in paths if Path(path).is_file()]


def _inputs(attack: Attack, stage: Stage) -> dict[str, object]:
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
    # These five have to read the token: if it were one of their inputs, a report would prove nothing.
    if attack.file not in ("read_file", "read_link", "read_environment", "connect", "import_vendored"):
        given["token"] = stage.token
    if attack.file == "read_file":
        given["target"] = str(stage.files[str(attack.given["target"])])
    # Hashes prove that an attack has read a file without the contents being among its inputs.
    if attack.file == "read_machine":
        given["machine"] = {
            path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in _existing_files(attack)
        }
    if "address" in given:
        given["address"] = stage.addresses[str(attack.given["address"])]
    return given


def _run(
    backend: Backend, file: str, attack: Attack, given: Mapping[str, object], stage: Stage, lines: list[bytes]
) -> Ended:
    def invocation(places: MountPaths) -> Invocation:
        order = json.dumps({**given, "results": places.results_fd})
        arguments = (places.python, "-B", f"{places.workspace}/attacks/{file}.py", order)
        environment = {"PATH": "/usr/bin:/bin", "HOME": places.home, "TMPDIR": places.temporary}
        return Invocation(arguments, environment)

    command = Command(stage.base / "tree", stage.environment, invocation, attack.timeout_s, limits=SMALL)
    # Limited here too, because one of the attacks writes to the pipe until it is stopped.
    return backend.run(command, on_line=lambda line: lines.append(line) if len(lines) < _LINES_KEPT else None)


def _reached(attack: Attack, stage: Stage, lines: list[bytes], ended: Ended, took: float) -> bool:
    match attack.proof:
        case AttackEvidence.LEAKED:
            secret = stage.secret_of(str(attack.given.get("target", "")))
            return any(secret in line for line in lines)
        case AttackEvidence.HELD:
            return ended.stop is Stop.EXITED and any(stage.token.encode() in line for line in lines)
        case AttackEvidence.KILLED:
            assert stage.victim is not None
            # The signal may arrive a moment after the run has ended.
            with contextlib.suppress(subprocess.TimeoutExpired):
                stage.victim.wait(_DYING_S)
            return stage.victim.returncode is not None
        case AttackEvidence.WRITTEN:
            return (stage.base / "outside" / "written").exists()
        case AttackEvidence.OPENED:
            return stat.S_IMODE((stage.base / "home" / "private").stat().st_mode) != 0o600
        case AttackEvidence.OUTLIVED:
            return _end_daemons(stage.token)
        case AttackEvidence.RAN_ON:
            return ended.stop is Stop.EXITED or took > 2 * attack.timeout_s + 10
        case AttackEvidence.FLOODED:
            return len(ended.output) > SMALL.output + _SLACK
        case (
            AttackEvidence.PASSED
            | AttackEvidence.CHANGED
            | AttackEvidence.CONFIRMED
            | AttackEvidence.EXECUTED
        ):
            raise AssertionError("these are tried in another way")


def _end_daemons(mark: str) -> bool:
    """Kill the processes of the daemon attack that are left after 2 s, and return whether there were any."""
    found = False
    # A sandbox may need a moment to end its processes; only processes that remain have outlived the run.
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
    """Return the ids of the processes whose last argument is `mark`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes().endswith(f"\0{mark}\0".encode()):
                found.append(int(entry.name))
    return found


def _try_report(
    backend: Backend, attack: Attack, stage: Stage, environments: EnvironmentSource
) -> AttackFinding:
    tree = _packed_suite(attack, stage.base)
    report = SuiteRunner(backend, environments).run(
        RunRequest(tree, EnvironmentPins(), timeout_s=attack.timeout_s)
    )
    # `test_before` runs before the attacked function and passes honestly.
    believed = {id.rpartition("::")[2] for id in report.passed} - {"test_before"}
    given = tree.with_files({ATTACKED: HARMLESS.encode()})
    suspicious = marks(given, tree.with_files({ATTACKED: tree.read(ATTACKED)}), given, [TESTS])
    return AttackFinding(
        attack,
        backend.name,
        attack.expected(backend),
        bool(believed),
        report.reason or ", ".join(sorted(believed)),
        suspicious,
    )


def run_attacked(
    backend: Backend, attack: Attack, base: Path, environments: EnvironmentSource, writable: Writable | None
) -> SuiteReport:
    """Run the suite of `attack` as in a scored run, with files below `base`, and return the report."""
    tree = _packed_suite(attack, base)
    request = RunRequest(tree, EnvironmentPins(), timeout_s=attack.timeout_s, writable=writable)
    return SuiteRunner(backend, environments).run(request)


def _packed_suite(attack: Attack, base: Path) -> SourceTree:
    return _packed(suite_files(attack), base / "suites", attack.file)


def _packed(files: Mapping[str, str], base: Path, name: str) -> SourceTree:
    folder, tar = base / name, base / f"{name}.tar"
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    write_tree(folder, tar)
    return SourceTree.open(tar)


def _run_command(backend: Backend, attack: Attack, stage: Stage) -> Ended:
    """Run the command of `attack`, and return how it ended.

    If its code is executed, the output contains the stage's token reversed.
    """
    tree = stage.base / "commands"
    tree.mkdir(exist_ok=True)
    tree.chmod(0o755)
    # The code reverses the token, because a command that merely printed the file would print it unchanged.
    code = f'import sys; sys.stderr.write("{stage.token}"[::-1] + chr(10))\n'
    (tree / "code.py").write_text(code)
    (tree / "lines.py").write_text(code * _LINES)

    def invocation(places: MountPaths) -> Invocation:
        made = shell_invocation(source_of(attack), places, [], execution=False)
        environment = stage.environment
        given = {"PYTHON": environment.interpreter, "PREFIX": environment.prefix, "OWN": places.python}
        variables = {name: str(value) for name, value in given.items()}
        return Invocation(made.arguments, {**made.environment, **variables, "TOKEN": stage.token})

    command = Command(tree, stage.environment, invocation, attack.timeout_s, programs=READING_PROGRAMS)
    return backend.run(command, on_line=lambda line: None)
