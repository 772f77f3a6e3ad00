from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from gistpoint.core.outcomes import BackendRecord
from gistpoint.sandbox.attacks.table import ANSWERS, ATTACKS, COMMANDS, ESCAPES, REPORTS, TREES, Expected
from gistpoint.sandbox.attacks.trying import source_of
from gistpoint.sandbox.backends.base import BackendProbe
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.ladder import builtin_backends
from gistpoint.sandbox.limits import LIMITS

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "sandbox.md"
FOLDER = Path(__file__).parents[3] / "sandbox" / "attacks"
BACKENDS = [builtin_backends()[name]() for name in ("docker", "bwrap", "landlock", "plain")]
WORDS = {Expected.STOPPED: "stopped", Expected.REACHES: "**reaches**", Expected.EITHER: "*may reach*",
         Expected.MARKED: "**reaches**, marked"}  # fmt: skip


def test_names_are_one_each():
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_every_file_is_used():
    listed = {
        "escapes": ESCAPES,
        "reports": REPORTS,
        "trees": TREES,
        "answers": ANSWERS,
        "commands": COMMANDS,
    }
    for folder, attacks in listed.items():
        files = {path.stem for path in (FOLDER / folder).iterdir() if path.suffix in (".py", ".sh")}
        assert files == {name for attack in attacks for name in (attack.file, attack.then) if name}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_guide_promises_what_the_table_does(attack):
    cells = [WORDS[attack.expected(backend)] for backend in BACKENDS]
    assert f"| {attack.what} | {' | '.join(cells)} |" in GUIDE.read_text("utf-8")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_stands_alone(attack):
    code = source_of(attack)
    if attack not in COMMANDS:
        compile(code, attack.file, "exec")
    assert "gistpoint" not in code


def test_every_built_in_backend_says_what_holds_its_limits():
    for name, make in builtin_backends().items():
        if name != "docker":
            assert set(make().enforces()) == set(LIMITS)
    assert BackendProbe(works=True).warning == ""


def test_a_backend_of_another_package_declares_what_is_expected_of_it():
    class Elsewhere(PlainBackend):
        name = "elsewhere"
        expects: ClassVar = {"loop": "either"}

        def record(self, limits):
            return BackendRecord(self.name, isolated=True)

    expected = {attack.name: attack.expected(Elsewhere()) for attack in ATTACKS}
    assert (expected["home"], expected["loop"]) == (Expected.STOPPED, Expected.EITHER)
    assert (expected["files"], expected["run-a-text"]) == (Expected.REACHES, Expected.MARKED)
