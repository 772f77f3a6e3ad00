"""Changes that lead a function back to an earlier body."""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.corruption.alignment import changes_back, with_changes, without_annotations

MODULES = ("argparse", "textwrap", "fractions", "shlex", "zipfile", "tarfile", "statistics", "configparser")


def meaning(text: str) -> list[str]:
    """Return the statements of a definition, without its docstring, annotations and layout."""
    node = read_snippet(text).node
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return [without_annotations(statement) for statement in body]


def functions(name: str) -> list[str]:
    """Return the functions of a module of the standard library, each at the left margin."""
    folder = Path(sysconfig.get_path("stdlib"))
    file = next(file for file in (folder / f"{name}.py", folder / name / "__init__.py") if file.is_file())
    index = index_source(file.name, file.read_bytes())
    return [item.dedented for item in index.definitions if item.kind.name != "CLASS"]


def pairs() -> Iterator[tuple[str, str]]:
    """Yield pairs of unrelated functions, which nobody wrote with alignment in mind."""
    rng = random.Random(7)
    for name in MODULES:
        found = functions(name)
        for current in found:
            yield current, rng.choice(found)


def is_alone_on_its_lines(text: str) -> bool:
    """Whether no two statements of the body share a line; `changes_back` can't align those."""
    node = read_snippet(text).node
    return node.body[0].lineno > node.lineno and ";" not in text and ": return" not in text


def test_all_changes_together_give_the_earlier_body() -> None:
    tried = 0
    for today, earlier in pairs():
        changes = changes_back(today, earlier)
        if not changes:
            assert meaning(today) == meaning(earlier) or not (
                is_alone_on_its_lines(today) and is_alone_on_its_lines(earlier)
            )
            continue
        tried += 1
        made = with_changes(today, changes)
        assert meaning(made) == meaning(earlier), f"{today}\n\n{earlier}"
        assert made.split("\n")[0] == today.split("\n")[0]
    assert tried > 400


def test_no_change_gives_the_current_text() -> None:
    for today, earlier in pairs():
        changes_back(today, earlier)
        assert with_changes(today, ()) == today


TODAY = '''\
def total(prices: list[int], *, rebate: str = "none") -> int:
    """Return the sum."""
    found: int = 0
    for price in prices:  # in order
        if price is None or price == "free":
            continue
        found += price
    if rebate == "half":
        found //= 2
    else:
        found += 1
    return max(found, 0)'''


def changed(*pairs: tuple[str, str]) -> str:
    text = TODAY
    for today, earlier in pairs:
        assert today in text
        text = text.replace(today, earlier)
    return text


@pytest.mark.parametrize(
    "change",
    [
        ("is None or price", "== 0 or price"),
        ("found += price", "found -= price"),
        ("max(found, 0)", "found"),
        ("        found += 1", "        found += 2"),
        ("    else:\n        found += 1\n", ""),
        ("            continue", "            found = 0\n            continue"),
        ("for price in prices:", "for price in sorted(prices):"),
    ],
)
def test_one_change_comes_alone(change: tuple[str, str]) -> None:
    (found,) = changes_back(TODAY, changed(change))
    assert meaning(with_changes(TODAY, [found])) == meaning(changed(change))


def test_header_docstring_annotations_comments_and_quotes_stay_as_they_are_now() -> None:
    earlier = changed(
        ('prices: list[int], *, rebate: str = "none"', "prices, rebate"),
        ('"""Return the sum."""', "'Add up.'"),
        ("found: int = 0", "found = 1  # an old remark"),
        ('price == "free"', "price == 'free'"),
    )
    (found,) = changes_back(TODAY, earlier)
    assert with_changes(TODAY, [found]) == changed(("found: int = 0", "found: int = 1"))


CAST = """\
def f(event: object) -> bool:
    event = cast(Request, event)
    if is_ready(typing.cast("Request", event)) and event.size > 4:
        size: int
        size = cast(int, event.size)
        return size > 5
    return False"""


def test_casts_and_bare_annotations_stay_as_they_are_now() -> None:
    earlier = """\
def f(event):
    if is_ready(event) and event.size > 4:
        size = event.size
        return size > 5
    return False"""
    assert changes_back(CAST, earlier) == ()
    (found,) = changes_back(CAST, earlier.replace("size > 5", "size >= 5"))
    assert with_changes(CAST, [found]) == CAST.replace("size > 5", "size >= 5")


def test_what_a_pass_or_another_name_stands_for_is_a_change() -> None:
    assert changes_back("def f(x):\n    pass", "def f(x):\n    x = y")
    assert changes_back("def f(x, y):\n    x = cast(int, y)\n    return x", "def f(x, y):\n    return x")


def test_a_string_has_the_current_spelling_even_if_only_the_earlier_body_has_it() -> None:
    (found,) = changes_back(TODAY, changed(('rebate == "half"', "rebate == 'quarter'")))
    assert 'rebate == "quarter"' in with_changes(TODAY, [found])


def test_changes_of_which_one_binds_what_another_reads_are_one() -> None:
    apart = changes_back(
        TODAY,
        changed(("        if price is None or", "        if not price or"), ("max(found, 0)", "found + 0")),
    )
    assert len(apart) == 2
    joined = changes_back(TODAY, changed(("found: int = 0", "found = 5"), ("max(found, 0)", "found + 0")))
    assert len(joined) == 1


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_annotations_of_inner_functions_stay_as_they_are_now(kind: str) -> None:
    today = f"def f(x):\n    {kind} g(a: int) -> int:\n        return a\n    return g"
    assert changes_back(today, today.replace(": int", "").replace(" -> int", "")) == ()


@pytest.mark.parametrize(
    "binding",
    [
        "def {}():\n        pass",
        "async def {}():\n        pass",
        "class {}:\n        pass",
        "import {}",
        "import a as {}",
        "for {} in x:\n        pass",
        "async for {} in x:\n        pass",
        "with x as {}:\n        pass",
        "async with x as {}:\n        pass",
        "match x:\n        case [{}]:\n            pass",
        "match x:\n        case [*{}]:\n            pass",
        "match x:\n        case {{1: 2, **{}}}:\n            pass",
        "try:\n        pass\n    except E as {}:\n        x()",
        "try:\n        pass\n    except* E as {}:\n        x()",
    ],
)
def test_a_renamed_name_and_its_use_are_one_change(binding: str) -> None:
    today, earlier = (
        f"async def f(x):\n    {binding.format(one)}\n    x.y()\n    return {one}" for one in ("g", "other")
    )
    (found,) = changes_back(today, earlier)
    assert meaning(with_changes(today, [found])) == meaning(earlier)


@pytest.mark.parametrize("word", ["except", "except*"])
@pytest.mark.parametrize("end", ["", "    finally:\n        d()\n"])
def test_a_change_inside_a_try_leaves_the_rest_of_it(word: str, end: str) -> None:
    today = (
        f"def f(x):\n    try:\n        a()\n        b()\n    {word} E:\n        b()\n"
        f"    else:\n        c()\n{end}    return x"
    )
    for earlier in (
        today.replace("        a()", "        a(1)"),
        today.replace("E:\n        b()", "E:\n        b(1)"),
        today.replace("c()", "c(1)"),
        today.replace("    else:\n        c()\n", ""),
    ):
        for one, other in ((today, earlier), (earlier, today)):
            (found,) = changes_back(one, other)
            assert with_changes(one, [found]) == other
            assert len(found.edits[0].lines) <= 2


@pytest.mark.parametrize(
    ("today", "earlier"),
    [
        ("def f(x):\n    a = 1; return a", "def f(x):\n    return 2"),
        ("def f(x): return x", "def f(x):\n    return 2"),
        ("def f(x):\n    return 2", "def f(x): return x"),
        ('def f(x):\n    """Nothing."""', "def f(x):\n    return 2"),
    ],
)
def test_statements_that_share_a_line_are_not_aligned(today: str, earlier: str) -> None:
    assert changes_back(today, earlier) == ()


def test_a_text_of_several_lines_keeps_its_lines() -> None:
    earlier = 'def f(x):\n    if x:\n        y = """a\n  b\n\nc"""\n        return y\n    return x'
    today = "def f(x):\n    if x:\n        return 1\n    return x"
    made = with_changes(today, changes_back(today, earlier))
    assert meaning(made) == meaning(earlier)


def test_what_is_no_definition_is_refused() -> None:
    with pytest.raises(CodeError):
        changes_back(TODAY, "import os")


def test_a_decorator_that_begins_on_a_line_of_its_own_goes_with_its_function() -> None:
    today = "def f():\n    x = 1\n    @(\n        d\n    )\n    def g(): pass\n    return x\n"
    changes = changes_back(today, "def f():\n    x = 1\n    return x\n")
    assert with_changes(today, changes).rstrip() == "def f():\n    x = 1\n    return x"
