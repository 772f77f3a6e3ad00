"""A missing statement leaves no gap behind: neither an edit nor a change back to an earlier version does."""

from __future__ import annotations

import re

import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.corruption.alignment import changes_back, with_changes
from gistpoint.core.corruption.blank_lines import without_gaps
from gistpoint.core.corruption.corruptions import enumerate_corruptions, pairs_of
from gistpoint.core.corruption.edits import apply
from gistpoint.core.corruption.subject import vocabulary_of

AIRY = '''def settle(orders, rates, verbose):
    """Return the sum.

    It is rounded.


    The end.
    """

    total, seen = 0, set()

    orders = [order for order in orders if order.open]

    if not orders:

        return None

    for order in orders:

        amount = order.amount.strip()

        if order.paid:
            continue

        elif order.late:
            total += rates.get(order.currency, 0)

        elif order.lost:
            seen.add(order)

        total += int(amount)

        order.note(total)

    text = """


    """

    if verbose:
        print(total, text)

    orders.sort(key=len)

    if seen:
        seen.report(total)
'''
_GAP = re.compile(r"\n[ \t]*\n[ \t]*\n|\n[ \t]*\Z")


def gaps(text: str) -> list[str]:
    """Return the gaps outside of the strings of `AIRY`, which have gaps themselves."""
    for string in re.findall('"""[^"]*"""', AIRY):
        text = text.replace(string, "...")
    return _GAP.findall(text)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_no_corruption_leaves_a_gap(newline: str) -> None:
    index = index_source("a.py", AIRY.replace("\n", newline).encode())
    definition, vocabulary = index.get("settle"), vocabulary_of([index])
    found = enumerate_corruptions(index, definition, vocabulary).kept
    pairs = pairs_of(found, vocabulary.scope(definition))
    shorter = [item for item in found if item.target.corrupted.count("\n") < definition.dedented.count("\n")]
    assert len(shorter) > 3
    for item in (*found, *pairs):
        assert gaps(item.target.corrupted) == []
        assert apply(item.edits, item.target.original) == item.target.corrupted


STATEMENTS = ["a = 1", "if a:\n\n        b = a\n\n        c = b", "for n in a:\n        log(n)", "return a"]


@pytest.mark.parametrize("place", range(len(STATEMENTS)))
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("begin", ["def f(x):\n\n    ", 'def f(x):\n    """Text."""\n\n    # first\n    '])
def test_no_change_back_leaves_a_gap(place: int, count: int, begin: str) -> None:
    left = STATEMENTS[:place] + STATEMENTS[place + count :]
    current, earlier = (begin + "\n\n    ".join(body) for body in (STATEMENTS, left))
    assert gaps(with_changes(current, changes_back(current, earlier))) == []


def test_what_was_there_stays() -> None:
    wide = "def f():\n    a = 1\n\n\n    b = 2\n    c = '''\n\n\n\n'''\n"
    assert without_gaps(wide.rstrip(), wide.rstrip()) == wide.rstrip()
    assert without_gaps(wide.replace("    b = 2\n", "\n\n"), wide) == wide.replace("    b = 2\n", "").rstrip()
    broken = "def f(:\n\n\n"
    assert without_gaps(broken, wide) == broken
