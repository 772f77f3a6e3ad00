"""The packets for blind readers: functions that are kept apart, their printed form, and the key."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from studies import blind_packets
from studies.blind_packets import Candidate, by_library, drawn, formatted, key_line, packets_of, shown
from studies.glance_truth import untouched

from gistpoint.core.generation.library import Reach
from gistpoint.core.tasks.model import Target

CALLS = {("m.py::outer", "m.py::inner")}
HOME = cast("Any", SimpleNamespace(reach=Reach(CALLS, directed=False)))


def one(
    name: str, before: str, after: str | None = None, *, library: str = "lib", source: str = ""
) -> Candidate:
    path, _, qualname = name.partition("::")
    target = Target(path, qualname, before, before if after is None else after)
    return Candidate(library, HOME, name, target, source or ("untouched" if after is None else "history"))


def test_what_explains_a_function_is_called_named_or_mentioned() -> None:
    outer = one("m.py::outer", "def outer():\n    return other_name()\n")
    assert outer.explains(one("m.py::inner", "def inner(): ...\n"))
    assert outer.explains(one("n.py::Class.outer", "def outer(self): ...\n"))
    assert outer.explains(one("n.py::other_name", "def other_name(): ...\n"))
    assert not outer.explains(one("n.py::apart", "def apart(): ...\n"))
    assert not outer.explains(one("m.py::inner", "def inner(): ...\n", library="another"))


def test_functions_that_explain_one_another_are_in_different_packets() -> None:
    many = [one(f"m{number}.py::same", "def same(): ...\n") for number in range(3)]
    others = [one(f"m.py::name_{number}", "def f(): ...\n") for number in range(9)]
    packets, left = packets_of([*many, *others], 4, random.Random(1))
    assert [sum(it.bare_name == "same" for it in packet) for packet in packets] == [1, 1, 1]
    assert not left
    packets, left = packets_of(many, 3, random.Random(1))
    assert (len(packets[0]), len(left)) == (1, 2)


def test_corruptions_of_a_library_that_cannot_be_read_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = SimpleNamespace(kept=SimpleNamespace(targets=(Target("m.py", "f", "a", "b"),)))
    monkeypatch.setattr(blind_packets, "campaigns", lambda home: [("gone", "operators", [verdict])])
    assert blind_packets.proven([Path("home")], {}) == []
    assert "gone is left out" in capsys.readouterr().err


def test_there_are_no_more_untouched_functions_than_a_library_has() -> None:
    functions = {"a": {"m.py::f": 1, "m.py::g": 2}, "b": {"m.py::f": 3}, "empty": {}}
    found = untouched(functions, {("a", "m.py::f")}, 9, random.Random(1))
    assert sorted(found) == [("a", "m.py::g"), ("b", "m.py::f")]
    assert len(untouched(functions, (), 2, random.Random(1))) == 2
    assert untouched({"empty": {}}, (), 2, random.Random(1)) == []


def test_layout_does_not_tell_an_old_body_from_a_new_one() -> None:
    before = "def f(\n    a,\n    b,\n):\n    return a\n"
    faulty = one("m.py::f", before, "def f(a, b):\n    return   b\n")
    reflowed = one("m.py::g", before, "def f(a, b):\n    return (a)\n")
    found = formatted([faulty, reflowed, one("m.py::h", before)])
    assert [it.target.corrupted for it in found] == [
        "def f(a, b):\n    return b\n",
        "def f(a, b):\n    return a\n",
    ]
    assert [it.name for it in found] == ["m.py::f", "m.py::h"]


def test_the_key_has_the_lines_around_a_change_and_the_packet_has_only_the_code() -> None:
    body = "def f(a):\n    b = a\n    c = b\n    d = c\n    return d\n"
    faulty = one("m.py::f#2", body, body.replace("d = c", "d = b"))
    key = key_line(faulty, "F1", 2, "unseen")
    assert key["near"] == ["3 c = b", "4 d = b", "5 return d"]
    assert (key["packet"], key["source"]) == (2, "history")
    assert "near" not in key_line(one("m.py::f", body), "F2", 2, "unseen")
    lines = list(shown(faulty, "F1"))
    assert lines[:4] == ["## F1", "lib, `m.py::f`", "```python", "  1 | def f(a):"]
    assert len(lines) == 3 + 5 + 2


def test_rare_sources_and_libraries_are_shown_first() -> None:
    planted = [one(f"m.py::p{number}", "", "x", source="operators") for number in range(2)]
    many = [one(f"m.py::h{number}", "", "x") for number in range(9)]
    few = [one("m.py::q", "", "x", library="small")]
    found = drawn([*many, *few, *planted], 5, random.Random(1))
    assert {it.name for it in planted} <= {it.name for it in found}
    assert {name: len(its) for name, its in by_library(found).items()} == {"lib": 4, "small": 1}
