"""Packets for a blind reader: all functions are printed the same way; a reply in any wrapping is read."""

from __future__ import annotations

import pytest

from gistpoint.core.corruption.blind import Basis, BlindItem, Named, Packet, PacketReading, packet_prompt
from gistpoint.core.tasks.model import Target

CODE = "def f(x):\n    y = x + 1   \n    return y\n\n"
ITEM = BlindItem("", "shop", Target("f.py", "f", CODE, CODE.replace("+", "-")))
OTHERS = ("def g():\n    return 1", "def h():\n\n    return 1\n\n\n")


def packet(number: int = 0, seed: str = "a") -> Packet:
    return Packet.of(ITEM, OTHERS, number, seed)


def row_of(text: str, of: Packet) -> int:
    """Return the printed number of the only line that contains `text`."""
    user = of.messages[1].content
    (row,) = [line for line in user.splitlines() if text in line]
    return int(row.partition("|")[0])


def test_all_functions_are_printed_alike_and_numbered_through() -> None:
    shown = packet()
    system, user = shown.messages
    assert system.content == packet_prompt()
    assert sorted(text.splitlines()[0] for text in shown.texts) == ["def f(x):", "def g():", "def h():"]
    rows = [line for line in user.content.splitlines() if line]
    assert [int(row.partition("|")[0]) for row in rows] == [*range(1, 9)]
    assert not any(row != row.rstrip() for row in user.content.splitlines())
    assert "y = x - 1" in user.content
    assert "y = x + 1" not in user.content


def test_the_seed_decides_the_order() -> None:
    orders = {packet(seed=str(n)).texts for n in range(30)}
    assert len(orders) == 6
    assert packet(seed="3").texts == packet(seed="3").texts
    assert {packet(seed=str(n)).place for n in range(30)} == {0, 1, 2}


def test_a_named_line_counts_only_if_it_was_changed() -> None:
    shown = packet()
    changed, beside = row_of("y = x - 1", shown), row_of("return y", shown)

    def named(line: object) -> tuple[Named | None, int]:
        reading = shown.reading(f'{{"answer": "fault", "line": {line}, "words": "w"}}')
        return reading.named, reading.line

    assert named(changed) == (Named.CHANGED, 2)
    assert named(f'"{changed}"') == (Named.CHANGED, 2)
    assert named('"    y = x - 1"') == (Named.CHANGED, 2)
    assert named(f'"{changed} |     y = x - 1"') == (Named.CHANGED, 2)
    assert named(beside) == (Named.ELSEWHERE, 3)
    assert named(row_of("def g", shown)) == (Named.UNTOUCHED, 0)
    assert named('"return 1"') == (Named.ELSEWHERE, 0), "two lines have this text"
    assert named(0) == named(999) == named('"no such line"') == (Named.ELSEWHERE, 0)


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        ('{"answer": "nothing", "line": 0}', Named.NOTHING),
        ('{"answer": "doubtful", "line": 2}', Named.NOTHING),
        (
            'I think {"a": 1}.\n```json\n{"answer": "nothing", "line": null, "words": ""}\n```\nDone.',
            Named.NOTHING,
        ),
        ("Nothing.", Named.NOTHING),
        ("I see nothing wrong, but what do I know?", None),
        ('{"answer": "bug", "line": 2}', None),
        ('{"answer": "fault", "line": -2}', None),
        ("", None),
        ("{" * 5_000 + "[" * 5_000, None),
    ],
)
def test_an_answer_is_found_in_whatever_stands_around_it(reply: str, named: Named | None) -> None:
    reading = packet(4).reading(reply)
    assert (reading.number, reading.named) == (4, named)
    assert (reading.words.startswith("The reply contains no answer")) == (named is None)


@pytest.mark.parametrize(
    ("basis", "known"),
    [('"text"', Basis.TEXT), ('"memory"', Basis.MEMORY), ('"guess"', None), ("7", None), ("null", None)],
)
def test_an_answer_counts_whatever_its_basis_is(basis: str, known: Basis | None) -> None:
    shown = packet()
    line = row_of("y = x - 1", shown)
    reading = shown.reading(f'{{"answer": "fault", "line": {line}, "basis": {basis}}}')
    assert (reading.named, reading.basis) == (Named.CHANGED, known)
    assert reading.is_from_text is (known is not Basis.MEMORY), "a name without a basis is from the text"


def test_a_bare_number_names_a_line() -> None:
    shown = packet()
    for text in ("{}", "Line {}.", "line: {}"):
        assert shown.reading(text.format(row_of("y = x - 1", shown))).named is Named.CHANGED
    assert isinstance(shown.reading("3"), PacketReading)
