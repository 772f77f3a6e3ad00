"""Trees and gists that are judged twice: by gistpoint, and by the bundle for other harnesses."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from gist_tricks import fakes, folded, padded

from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.repair.scoring import taken_over
from gistpoint.core.tasks.model import Answer, Target, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.layout import lay_out
from gistpoint.sandbox.verifier.bundle import NAME, bundle, expected_text

_CHANGES = (
    (r" < ", " <= "), (r" \+ ", " - "), (r"\bTrue\b", "False"), (r" == ", " != "), (r" and ", " or "), (r" - 1\b", ""),
    (r"\b1\b", "2"), (r"return .+", "return None"), (r"\bnot ", ""), (r" > ", " >= "), (r"\* ", "+ "),
)  # fmt: skip


@dataclass(frozen=True)
class Elsewhere:
    """A task in the form that another harness gets."""

    folder: Path
    python: Sequence[str]
    """The interpreter that runs the bundle, followed by options of the bundle."""

    @classmethod
    def of(
        cls, task: Task, answer: Answer, backend: str, folder: Path, python: Sequence[str] = ()
    ) -> Elsewhere:
        """Write the bundle and its files to `folder`.

        Without `python`, this interpreter runs it, as the same user.
        """
        folder.mkdir()
        (folder / NAME).write_bytes(bundle())
        (folder / "expected.json").write_text(expected_text(task, answer, backend), encoding="utf-8")
        (folder / "tree.tar").write_bytes(task.tree_path.read_bytes())
        return cls(folder, python or (sys.executable, "--same-user"))

    def process(self, place: Path) -> subprocess.CompletedProcess[str]:
        """Run the bundle on a folder or a gist; return the ended process."""
        given = [*("--expected", self.folder / "expected.json"), *("--tree", self.folder / "tree.tar")]
        given += ["--reward", self.folder / "reward.json", *self.python[1:]]
        command = [self.python[0], "-I", self.folder / NAME, place, *given]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def verdict(self, place: Path) -> dict[str, Any]:
        """Return the verdict that the bundle prints, after checking that the reward file agrees."""
        ended = self.process(place)
        assert ended.returncode == 0, ended.stderr
        verdict = json.loads(ended.stdout)
        reward = json.loads((self.folder / "reward.json").read_text(encoding="utf-8"))
        assert reward == {"solved": verdict["solved"], "score": verdict["score"]}
        return dict(verdict)


def write_place(tree: SourceTree, folder: Path) -> Path:
    """Write a tree as a solver leaves it, and return its folder."""
    lay_out(tree, folder)
    return folder


def as_taken(task: Task, place: Path) -> SourceTree:
    """Return the tree that is judged for a folder."""
    given = SourceTree.open(task.tree_path)

    def read(path: str) -> bytes | None:
        return (place / path).read_bytes() if (place / path).is_file() else None

    return taken_over(given, read, task.suite.test_files)


def trees(task: Task, answer: Answer, count: int, seed: int) -> Iterator[tuple[str, SourceTree]]:
    """Yield trees as solvers leave them, with descriptions.

    They are repaired, half repaired, otherwise broken, tampered with, or forge reports.
    """
    chance = random.Random(seed)
    given = SourceTree.open(task.tree_path)
    right = repaired_tree(given, answer.targets)
    target = answer.targets[0]
    test = task.suite.test_files[0]
    always = {
        "given": given,
        "repaired": right,
        "tests emptied": given.with_files(dict.fromkeys(task.suite.test_files, b"")),
        "a conftest that passes everything": given.with_files({"conftest.py": _PASSING.encode()}),
        "tests changed, repaired": right.with_files(
            {test: right.read(test) + b"\n\ndef test_more():\n    assert 0\n"}
        ),
        "does not parse": right.with_files({target.path: right.read(target.path) + b"\ndef (:\n"}),
        "leaves": given.with_files({target.path: b"import os\nos._exit(0)\n" + given.read(target.path)}),
        "only commented": given.with_files(
            {target.path: given.read(target.path) + b"\n# It is right now.\n"}
        ),
    }
    if len(answer.targets) > 1:
        always["half repaired"] = repaired_tree(given, answer.targets[:1])
    yield from list(always.items())[:count]
    forging = sorted(
        files("gistpoint.sandbox.attacks").joinpath("reports").iterdir(), key=lambda file: file.name
    )
    for number in range(count - len(always)):
        if number % 4 == 0:
            name = forging[number // 4 % len(forging)].name
            yield f"forging: {name}", report_attack(given, target, name)
        else:
            base = right if number % 4 < 3 else given
            path = chance.choice([path for path in base.files(".py") if path not in task.suite.test_files])
            yield (
                f"changed: {path}",
                base.with_files({path: changed(base.read(path).decode(), chance).encode()}),
            )


def report_attack(given: SourceTree, target: Target, name: str) -> SourceTree:
    """Return a tree in which a target's file also contains the attack on reports with a file name."""
    text = files("gistpoint.sandbox.attacks").joinpath("reports", name)
    called = b"\n\ntry:\n    f()\nexcept NameError:\n    pass\n"
    return given.with_files({target.path: given.read(target.path) + b"\n\n" + _body(text) + called})


def gists(answer: Answer, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield gists as solvers leave them, with descriptions."""
    chance, known = random.Random(seed), gist_answer(answer)
    assert known.reference is not None
    assert known.test is not None
    right = known.reference.text
    name = known.test.qualname
    always = {
        "reference": right,
        "empty": "",
        "no test": right.replace(name, "test_other"),
        "imports": f"import {known.owned[0]}\n{right}",
        "does not parse": right + "\ndef (:\n",
        "prints": right + "\nprint('more')\n",
        "padded": padded(right, "pass"),
        "folded": folded(right),
        "leaves": "import os\nos._exit(0)\n" + right,
        "swallows": f"import pytest\npytest.raises = lambda *a, **k: __import__('contextlib').suppress(*a)\n{right}",
    }
    yield from list(always.items())[:count]
    tricks = list(fakes(right, known.test.source, known.modules).items())
    for number in range(count - len(always)):
        if number < len(tricks):
            yield tricks[number]
        else:
            yield "changed", changed(right, chance)


def changed(text: str, chance: random.Random) -> str:
    """Return a file's text with one small change; unchanged if no change applies."""
    places = [(match, new) for old, new in _CHANGES for match in re.finditer(old, text)]
    if not places:
        return text
    match, new = chance.choice(places)
    return text[: match.start()] + new + text[match.end() :]


_PASSING = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


def _body(file: Any) -> bytes:
    """Return an attack without the line that must be first in a file."""
    return bytes(file.read_bytes()).replace(b"from __future__ import annotations\n", b"")
