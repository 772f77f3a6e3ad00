"""The static gates: each reason on the smallest function that has it."""

from __future__ import annotations

import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.corruption.facts import facts_of
from gistpoint.core.corruption.gates import Gate, GateRefusal, gate
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.tasks.model import Target

MODULE = '''import re
import os

LIMIT = 10


def once(x):
    return x


class Base:
    def shared(self):
        return self.size


class Shop(Base):
    def f(self, text, other):
        """Look."""
        old = other  # the one before
        if old is None:
            raise ValueError("give the other one")
        found = re.match(text, old) or once(old)
        # It grows with each.
        self.size += len(text)
        self.count = self.size + 1
        if self.count:
            return found
        return None
'''
INDEX = index_source("m.py", MODULE.encode())
FUNCTION = INDEX.find("Shop.f")
SCOPE = vocabulary_of([INDEX]).scope(FUNCTION)
CASES = [
    (GateRefusal.DOES_NOT_PARSE, "self.size + 1", "self.size +"),
    (GateRefusal.DOES_NOT_PARSE, "return None", "break"),
    (GateRefusal.HEADER, "text, other)", "text, other=None)"),
    (GateRefusal.DOCSTRING, "Look.", "Look!"),
    (GateRefusal.COMMENTS, "other  # the one before", "other or 1  # before"),
    (GateRefusal.EXPLAINED, "self.size += len(text)", "self.size -= len(text)"),
    (GateRefusal.EXPLAINED, "old = other  #", "old = other or text  #"),
    (GateRefusal.SAME_TREE, "self.size + 1", "(self.size  + 1)"),
    (GateRefusal.SAME_CODE, "self.size + 1", "self.size + (2 - 1)"),
    (GateRefusal.UNKNOWN_NAME, "self.size + 1", "self.size + SIZE"),
    (GateRefusal.NEW_STRING, "self.size + 1", "self.size + 'a'"),
    (GateRefusal.LONG_LINE, "self.size + 1", "self.size" + " + self.size" * 10),
    (
        GateRefusal.UNBOUND,
        "found = re.match(text, old) or once(old)",
        "found = re.match(text, old) or once(found)",
    ),
    (GateRefusal.UNUSED, "(text, old)", "(other, old)"),
    (GateRefusal.ORPHANED, " or once(old)", ""),
    (GateRefusal.UNREACHABLE, "if self.count:\n        return found", "return found"),
    (GateRefusal.ODD, "self.size + 1", "self.size - self.size"),
    (GateRefusal.ODD, "if self.count:", "if True:"),
    (GateRefusal.ODD, "if self.count:", "if self.count == self.count:"),
    (GateRefusal.ODD, "self.count = self.size + 1", "self.count = self.count"),
    (GateRefusal.ODD, "re.match(text, old) or once(old)", "re or re.match(text, old)"),
    (GateRefusal.EXPLAINED, "old is None", "not old"),
    (None, "self.size + 1", "self.size - 1"),
    (None, "self.size + 1", "self.size + LIMIT"),
    (None, "if self.count:", "if not self.count:"),
]


@pytest.mark.parametrize(("reason", "old", "new"), CASES)
def test_reason(reason: GateRefusal | None, old: str, new: str) -> None:
    original = FUNCTION.dedented
    assert original.count(old) == 1
    corrupted = original.replace(old, new)
    if reason is GateRefusal.UNUSED:
        corrupted = corrupted.replace("len(text)", "len(other)").replace("# It grows with each.\n    ", "")
        original = original.replace("# It grows with each.\n    ", "")
    assert gate(Target("m.py", "Shop.f", original, corrupted), SCOPE) is reason


def test_lines_are_counted_where_they_are_limited() -> None:
    lines = [f"    a.{name}({(3 * place) % 10})" for place, name in enumerate("bcdefghij")]
    original = "\n".join(["def f(a):", *lines, "    return a"])
    corrupted = "\n".join(["def f(a):", *(line.replace("(", "(1") for line in lines), "    return a"])
    target = Target("m.py", "f", original, corrupted)
    assert gate(target) is GateRefusal.TOO_MANY_LINES
    assert gate(target, most_lines=None) is None


def test_without_a_scope_names_of_the_module_are_unknown() -> None:
    target = Target("m.py", "f", "def f(a):\n    return a + 1", "def f(a):\n    return a + LIMIT")
    assert gate(target) is GateRefusal.UNKNOWN_NAME
    assert gate(target, SCOPE) is None


def test_a_variable_of_the_function_around_compiles() -> None:
    original = "def f(a):\n    nonlocal n\n    n += a\n    return n"
    assert gate(Target("m.py", "g.<locals>.f", original, original.replace("+=", "-="))) is None
    assert (
        gate(Target("m.py", "g.<locals>.f", original, original.replace("return n", "return (n)")))
        is GateRefusal.SAME_TREE
    )


def test_names_of_the_class_and_its_bases_are_known() -> None:
    assert SCOPE.own.attributes >= {"size", "count"}
    assert set(SCOPE.own.methods) >= {"f", "shared"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for x in a:\n        b = x\n    return a, b", "for x in a:\n        b = x\n        break\n    return a, b"),
        ("try:\n        b = a()\n    except KeyError:\n        b = 1\n    return b",
         "try:\n        b = a()\n    except KeyError:\n        b = 2\n    return b"),
        ("with a as b:\n        c = b\n    return c", "with a as b:\n        c = -b\n    return c"),
        ("return [b for b in a if b] if a.x else a", "return [b for b in a if not b] if a.x else a"),
        ("while True:\n        b = a()\n        if b:\n            break\n    return b",
         "while True:\n        b = a()\n        if not b:\n            break\n    return b"),
    ],
)  # fmt: skip
def test_variables_bound_on_every_way_are_no_reason(before: str, after: str) -> None:
    assert gate(Target("m.py", "f", f"def f(a):\n    {before}", f"def f(a):\n    {after}")) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a:\n        b = 1\n    else:\n        b = 2\n    return b", "if a:\n        b = 1\n    return b"),
        ("b = 1\n    if a:\n        b = 2\n    return b", "if a:\n        b = 2\n    return b"),
        ("b = a\n    c = b\n    return c", "c = b\n    b = a\n    return c, b"),
        ("if a:\n        b = 1\n    else:\n        return 2\n    return b",
         "if a:\n        b = 1\n    else:\n        a()\n    return b"),
    ],
)  # fmt: skip
def test_variables_that_may_be_unbound_are(before: str, after: str) -> None:
    assert (
        gate(Target("m.py", "f", f"def f(a):\n    {before}", f"def f(a):\n    {after}"))
        is GateRefusal.UNBOUND
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return a is None or a.b", "return a is not None or a.b"),
        ("return a and a.b", "return a or a.b"),
        (
            "if a is None:\n        return 0\n    return a.b",
            "if a is not None:\n        return 0\n    return a.b",
        ),
        ("return a[0] if a else 0", "return a[0] if not a else 0"),
        ("while a:\n        b.c(a.d)", "while not a:\n        b.c(a.d)"),
        ("if a:\n        b(a)", "if not a:\n        b(a)"),
        ("if a:\n        a = b(a)\n    return a", "if not a:\n        a = b(a)\n    return a"),
        ("if type(a) is slice:\n        b(a.step)", "if type(a) is not slice:\n        b(a.step)"),
        ("if a.c.d:\n        b(a.c.d)", "if not a.c.d:\n        b(a.c.d)"),
        ("if a['c']:\n        return b(a['c'])", "if not a['c']:\n        return b(a['c'])"),
        ("if hasattr(a, 'c'):\n        return a.c", "if not hasattr(a, 'c'):\n        return a.c"),
        (
            "if getattr(a, 'c', None) is not None:\n        return a.c",
            "if getattr(a, 'c', None) is None:\n        return a.c",
        ),
        ("if b in a:\n        return a[b]", "if b not in a:\n        return a[b]"),
        (
            "if b not in a:\n        return 1\n    return a[b]",
            "if b in a:\n        return 1\n    return a[b]",
        ),
        (
            "while a is not None:\n        b(a.c)\n        a = a.d",
            "while a is None:\n        b(a.c)\n        a = a.d",
        ),
        (
            "if a:\n        b()\n    elif a.c:\n        b(a.c)\n    else:\n        a.c = b",
            "if a:\n        b()\n    elif not a.c:\n        b(a.c)\n    else:\n        a.c = b",
        ),
        (
            "if isinstance(a, tuple):\n        return b(a[1])\n    return b",
            "if not isinstance(a, tuple):\n        return b(a[1])\n    return b",
        ),
        (
            "if type(a) is not slice:\n        return b\n    return b(a.step)",
            "if type(a) is slice:\n        return b\n    return b(a.step)",
        ),
        ("return a is None or b(a)", "return a is None and b(a)"),
        ("return not b or (b and a)", "return not b and (b and a)"),
        ("if a.header:\n        b.show_headers()", "if not a.header:\n        b.show_headers()"),
    ],
)
def test_guards_turned_against_what_they_guard_show(before: str, after: str) -> None:
    assert (
        gate(Target("m.py", "f", f"def f(a, b=1):\n    {before}", f"def f(a, b=1):\n    {after}"))
        is GateRefusal.ODD
    )


def test_a_parameter_whose_marker_is_no_longer_asked_for_shows() -> None:
    original = "def f(a, b=_marker):\n    if b is _marker:\n        raise KeyError(a)\n    return a, b\n"
    assert gate(Target("m.py", "f", original, "def f(a, b=_marker):\n    return a, b\n")) is GateRefusal.ODD


def test_a_parameter_that_may_be_none_is_asked_for_more_than_its_type() -> None:
    asked = "    if a is None:\n        return []\n"
    original = (
        f"def f(a: Optional[int]):\n{asked}    if isinstance(a, int):\n        return [1]\n    return [a]\n"
    )
    changed = original.replace(asked, "")
    assert gate(Target("m.py", "f", original, changed)) is GateRefusal.ODD


def test_a_variable_that_keeps_the_value_that_it_starts_with_shows() -> None:
    original = (
        "def f(a):\n    b = -1\n    for c in a:\n        if c.d:\n"
        "            b = c\n        c.e()\n    return b\n"
    )
    changed = original.replace("        if c.d:\n            b = c\n", "")
    assert gate(Target("m.py", "f", original, changed)) is GateRefusal.ODD


def test_one_of_a_row_that_is_unlike_the_others_shows() -> None:
    original = "def f(a):\n    b = a.get(1, 2)\n    c = a.get(2, 3)\n    d = a.get(3, 4)\n    return b, c, d"
    assert gate(Target("m.py", "f", original, original.replace("2, 3", "2"))) is GateRefusal.ODD
    assert gate(Target("m.py", "f", original, original.replace("2, 3", "2, 5"))) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return a or {}", "return a and {}"),
        ("c = []\n    c.append(a(b))\n    return c", "c = []\n    c.append(a(c))\n    return b, c"),
        ("if a not in b:\n        b.add(a)", "if a in b:\n        b.add(a)"),
        ("c = [x for x in a if b]\n    return c", "c = [x for x in a]\n    return b, c"),
        ("if a in b:\n        return f(b[a])\n    return len(b)",
         "if a in f:\n        return f(b[a])\n    return len(b)"),
        ("if a.x == 1:\n        b(1)\n    elif a.x == 2:\n        b(a.y)\n    elif a.x == 3:\n        b()",
         "if a.x == 1:\n        b(1)\n    elif a.y == 2:\n        b(a.y)\n    elif a.x == 3:\n        b()"),
        ("return b(0 <= a < 10)", "return b(0 >= a < 10)"),
        ("if a < 0:\n        return b\n    if a > 0:\n        return f\n    return None",
         "if a < 0:\n        return b\n    if a < 0:\n        return f\n    return None"),
        ("return a is b or a == f(b)", "return a is not b or a == f(b)"),
        ("if a.x == b.x:\n        a.x = b.y\n        a.go()\n        a.x = b.x",
         "if a.x == b.x:\n        a.go()\n        a.x = b.x"),
        ("c = b.values()[a]\n    return c", "c = b.keys()[a]\n    return c"),
        ("b.x = a\n    b.y = 1", "b.y = a\n    b.y = 1"),
        ("c = a\n    if c and b:\n        return c\n    return a(b)",
         "c = a\n    if c and a:\n        return c\n    return a(b)"),
        ("if a.x is not b:\n        return f(a.x)\n    return a.y",
         "if a.x is not b:\n        return f(a.y)\n    return a.y"),
        ("if a:\n        return f(b)\n    if b:\n        return b.c\n    return None",
         "if a:\n        return f(b)\n    return None"),
        ("c = a.items(multi=True)\n    d = b.items(multi=True)\n    return zip(c, d)",
         "c = a.items(multi=False)\n    d = b.items(multi=True)\n    return zip(c, d)"),
        ("return a.left + b[a.left:a.right] + a.right", "return a.left + b[a.left:a.right] + a.left"),
        ("return [x for x in a if b(x)]", "return [x for x in a if not b(x)]"),
        ("for x in a:\n        if x == b:\n            x.go()\n    return b",
         "for x in a:\n        if x != b:\n            x.go()\n    return b"),
        ("c = {}\n    for k, v in a.items():\n        c[k] = v\n    return a, c",
         "c = {}\n    for k, v in c.items():\n        c[k] = v\n    return a, c"),
        ("try:\n        a.x(b)\n    except TypeError:\n        return False\n    return True",
         "try:\n        a.x(b)\n    except TypeError:\n        return False\n    return False"),
        ("if (\n        a.x == 1\n        and (c := a.y) is not None\n    ):\n        return c\n    return b",
         "if (\n        (c := a.y) is not None\n    ):\n        return c\n    return b"),
    ],
)  # fmt: skip
def test_what_nobody_writes_on_purpose_shows(before: str, after: str) -> None:
    assert (
        gate(Target("m.py", "f", f"def f(a, b=1):\n    {before}", f"def f(a, b=1):\n    {after}"))
        is GateRefusal.ODD
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("c = []\n    for x in a:\n        c.append(x)\n    return a(c)",
         "c = []\n    for x in a:\n        c.append(x)\n    return a(a)"),
        ("c = b(a)\n    return a + c", "c = b(a)\n    return a + b"),
        ("c = []\n    for x in a:\n        b.add(x)\n        c.append(x)\n    return c",
         "c = []\n    for x in a:\n        b.add(x)\n    return c"),
        ("c = dict()\n    c.update(b=a)\n    return c", "c = dict()\n    return c"),
    ],
)  # fmt: skip
def test_variables_that_nobody_reads_show(before: str, after: str) -> None:
    assert (
        gate(Target("m.py", "f", f"def f(a, b=1):\n    {before}", f"def f(a, b=1):\n    {after}"))
        is GateRefusal.UNUSED
    )


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("try:\n        a()\n    except{star} KeyError:\n        b()\n    except{star} OSError:\n        a(1)",
         "try:\n        a()\n    except{star} KeyError:\n        b()\n    except{star} KeyError:\n        a(1)",
         ("exception repeated",)),
        ("try:\n        a()\n    except{star} KeyError:\n        b()\n    except{star} Exception:\n        a(1)",
         "try:\n        a()\n    except{star} Exception:\n        b()\n    except{star} KeyError:\n        a(1)",
         ("handler out of reach",)),
        ("c = a.get(b)\n    if c is None:\n        return 1\n    {also}for d in c:\n        a(d)",
         "c = a.get(b)\n    {also}for d in c:\n        a(d)",
         ("used although it may be absent: c",)),
        ("c = a.get(b)\n    if c is None:\n        return\n    try:\n        a(c.d)\n    except{star} E:\n        b()",
         "c = a.get(b)\n    try:\n        a(c.d)\n    except{star} E:\n        b()",
         ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "words", [{"star": "", "also": ""}, {"star": "*", "also": "async "}], ids=["", "async"]
)
def test_what_shows_in_a_statement_shows_in_its_other_form(
    before: str, after: str, shown: tuple[str, ...], words: dict[str, str]
) -> None:
    head = "async def f(a, b=1):\n    "
    broken = Gate(head + before.format(**words)).broken(head + after.format(**words))
    assert broken == tuple(f"it shows at a glance ({what})" for what in shown)


@pytest.mark.parametrize("end", ["return a(c)", "for x in c:\n        a(x)"])
def test_a_dict_made_from_keywords_is_not_empty(end: str) -> None:
    made = "def f(a, b=1):\n    c = dict(a=1)\n"
    assert gate(Target("m.py", "f", f"{made}    c.update(b=a)\n    {end}", f"{made}    {end}")) is None


def test_a_list_that_was_given_may_be_filled_and_no_more() -> None:
    original = "def f(a, found):\n    if len(found) < a:\n        found.append(a)"
    assert gate(Target("m.py", "f", original, "def f(a, found):\n    found.append(a)")) is None


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("left_edge", "return self._left_edge or self.edge", "return self._right_edge or self.edge"),
        ("left_edge", "val = str(val)\n    self._check(val)\n    self._left_edge = val",
         "val = str(val)\n    self._check(val)"),
        ("upper_bound", "return self.bounds(val.upper)", "return self.bounds(val.lower)"),
        ("add", "self.seen.add(val)\n    self.count += val", "self.count += val"),
        ("take", "height = self.height or val\n    return height * self.a",
         "height = self.width or val\n    return height * self.a"),
        ("take", "self.val_map, self.val = self.b, val\n    self.val_map = self.val_map or 1",
         "self.val_map, self.val = self.b, val\n    self.val_map = self.val or 1"),
        ("take", "return self.a(height=val.height)", "return self.a(height=val.width)"),
        ("abs_time", "return self.a(abs(val))", "return self.a(val)"),
        ("is_full", "return self.a == val", "return self.a != val"),
        ("__eq__", "return self.a == val.a", "return self.a != val.a"),
        ("__contains__", "return val.x in self.a", "return val.x not in self.a"),
    ],
)  # fmt: skip
def test_name_of_the_function_tells_what_was_meant(name: str, before: str, after: str) -> None:
    head = f"def {name}(self, val=1):\n    self.left_edge, self.right_edge, self._right_edge, self.bounds = val\n    "
    head = head if name == "left_edge" and "return" in before else f"def {name}(self, val=1):\n    "
    assert gate(Target("m.py", f"C.{name}", head + before, head + after)) is GateRefusal.NAMED


def test_calling_itself_is_not_what_a_function_is_called_after() -> None:
    original = "def walk(self, x):\n    if x.a:\n        self.walk(x.b)\n        self.walk(x.c)\n    return x"
    assert gate(Target("m.py", "C.walk", original, original.replace("        self.walk(x.b)\n", ""))) is None


def test_docstring_tells_what_was_meant() -> None:
    original = (
        'def f(a):\n    """Look for a Literal."""\n'
        "    if isinstance(a, Literal):\n        return a.b\n    return a.c"
    )
    lost = original.replace("    if isinstance(a, Literal):\n        return a.b\n", "")
    assert gate(Target("m.py", "f", original, lost)) is GateRefusal.NAMED
    silent = [text.replace("Look for a Literal.", "Look.") for text in (original, lost)]
    assert gate(Target("m.py", "f", *silent)) is None
    case = (
        'def f(a):\n    """One of `low` and `high`."""\n    if a == "low":\n        return 1\n    return a.c'
    )
    other = case.replace('    if a == "low":\n        return 1\n', "")
    assert gate(Target("m.py", "f", case, other)) is GateRefusal.NAMED


def test_message_of_the_other_case_tells_the_condition() -> None:
    original = (
        "def f(a):\n    if a(a, int):\n        return 1 if a.x else 2\n    else:\n        b = 'no int'\n"
        "        raise ValueError(b)"
    )
    turned = original.replace("if a(", "if not a(")
    assert gate(Target("m.py", "f", original, turned)) is GateRefusal.EXPLAINED


def test_names_alike_on_both_sides_of_an_or_are_no_turned_guard() -> None:
    original = "def f(a):\n    return a.left_edge or a.edge"
    assert gate(Target("m.py", "f", original, original.replace("a.left_edge", "a.right_edge"))) is None


def test_a_boundary_in_a_function_of_one_comparison_is_hidden_well_enough() -> None:
    original = "def full(a, b):\n    return a < b"
    assert gate(Target("m.py", "full", original, original.replace("<", "<="))) is None


def test_a_value_that_the_branch_binds_itself_is_no_turned_guard() -> None:
    original = (
        "def f(a, b):\n    if a:\n        for a in b:\n            b.c(a.d if b.x else 1)\n    return b"
    )
    assert gate(Target("m.py", "f", original, original.replace("if a", "if not a"))) is None


def test_all_rules_that_a_text_breaks_are_named_and_not_the_first_alone() -> None:
    original = "def f(a, b):\n    # none left\n    if a:\n        c = a.d\n        return c\n    return b"
    corrupted = "def f(a, b):\n    if a:\n        c = a.d\n        return b\n    return b"
    assert Gate(original).broken(corrupted) == (
        "a comment changes",
        "a variable or parameter is no longer used (c)",
        "it shows at a glance (same result either way)",
        "a comment or an error message beside it tells what was meant",
    )
    assert Gate(original).broken(original.replace("a.d", "a.e")) == ()
    assert Gate(original).broken("def f(") == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for x in a:\n        if x:\n            break\n    else:\n        b.c()\n    return b",
         "for x in a:\n        if x:\n            continue\n    else:\n        b.c()\n    return b"),
        ("c = a or []\n    c.extend(b or [])\n    return c", "c = a or []\n    c.extend(b)\n    return c"),
        ("c = a.get(b)\n    if c is None:\n        return 1\n    return c.d", "c = a.get(b)\n    return c.d"),
        ("a.b(a.c(1), d=b)\n    a.b(a.e(2), d=b)\n    return a", "a.b(a.c(1))\n    a.b(a.e(2), d=b)\n    return a"),
        ("try:\n        a.x()\n    except KeyError as e:\n        b.add((a, 1, str(e)))\n"
         "    try:\n        a.y()\n    except KeyError as f:\n        b.add((a, 1, str(f)))",
         "try:\n        a.x()\n    except KeyError as e:\n        b.add((a, 1, e))\n"
         "    try:\n        a.y()\n    except KeyError as f:\n        b.add((a, 1, str(f)))"),
    ],
)  # fmt: skip
def test_what_contradicts_the_rest_of_the_function_shows(before: str, after: str) -> None:
    head = "def f(a, b=None):\n    "
    assert gate(Target("m.py", "f", head + before, head + after)) is GateRefusal.ODD


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("c = a.b()\n    a.d(c)\n    c = 2\n    return c", "c = a.b()\n    c = 2\n    return c"),
        ("for x in a:\n        c = x.y\n        if c:\n            return c\n    c = b\n    return c",
         "for x in a:\n        c = x.y\n        if b:\n            return b\n    c = b\n    return c"),
    ],
)  # fmt: skip
def test_values_that_nobody_reads_show(before: str, after: str) -> None:
    head = "def f(a, b=1):\n    "
    assert gate(Target("m.py", "f", head + before, head + after)) is GateRefusal.UNUSED


@pytest.mark.parametrize(
    "read",
    [
        "try:\n        c = a.b()\n        a.e()\n    except KeyError:\n        return c\n    return 1",
        "while a:\n        if b:\n            a.d(c)\n        c = a.b()\n    return 1",
        "with a:\n        c = a.b()\n    return lambda: c",
        "for x in a:\n        if x:\n            c = x\n            continue\n        a.d(c)\n    return 1",
    ],
)
def test_values_that_are_read_on_some_way_are_not_dead(read: str) -> None:
    text = f"def f(a, b=1):\n    c = a.x\n    a.y(c)\n    {read}"
    assert not facts_of(text).dead


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# Store the number, all of\n    # them.\n    a.c(1)\n    a.number.append(b)\n    a.d(b, a.number)",
         "# Store the number, all of\n    # them.\n    a.c(1)\n    a.d(b, a.number)"),
        ("if a.full and b:\n        # Nothing to do.\n        a.c()\n    return a",
         "if b:\n        # Nothing to do.\n        a.c()\n    return a"),
    ],
)  # fmt: skip
def test_comments_of_the_paragraph_or_block_tell_what_was_meant(before: str, after: str) -> None:
    head = "def f(a, b=1):\n    "
    assert gate(Target("m.py", "f", head + before, head + after)) is GateRefusal.EXPLAINED


def test_a_comment_of_another_paragraph_tells_nothing() -> None:
    original = "def f(a, b=1):\n    # The number.\n    a.c()\n\n    a.number.d(b, 1)\n    a.d(b)"
    corrupted = original.replace("(b, 1)", "(b)")
    assert gate(Target("m.py", "f", original, corrupted)) is None


def test_name_of_the_function_around_tells_what_was_meant() -> None:
    source = "def search(p):\n    def test(v):\n        return bool(re.search(p, v) or p)\n    return test\n"
    index = index_source("m.py", f"import re\n\n{source}\nALL = [search, search]\n".encode())
    inner = index.find("search.<locals>.test")
    target = Target("m.py", inner.qualname, inner.dedented, inner.dedented.replace("re.search", "re.match"))
    assert gate(target, vocabulary_of([index]).scope(inner)) is GateRefusal.NAMED


def test_words_of_the_docstring_tell_what_was_left_out() -> None:
    original = 'def f(a):\n    """Return the stripped rest."""\n    return a.x(a.b.strip())'
    assert gate(Target("m.py", "f", original, original.replace(".strip()", ""))) is GateRefusal.NAMED


def test_a_message_that_lists_the_texts_tells_which_is_gone() -> None:
    original = "def f(a, b):\n    if a.b in ('rw', 'ro'):\n        return b\n    return a.c('rw or ro', b)"
    assert (
        gate(Target("m.py", "f", original, original.replace("in ('rw', 'ro')", "== 'rw'")))
        is GateRefusal.NAMED
    )


def test_a_comparison_of_its_own_name_is_not_another_one() -> None:
    original = "def __ge__(self, a):\n    if a is None:\n        return False\n    return a.b(self.c >= a.c)"
    assert gate(Target("m.py", "C.__ge__", original, original.replace(">=", ">"))) is GateRefusal.NAMED


def test_a_case_that_is_left_out_at_one_of_two_places_shows() -> None:
    case = "        if a.b and x not in a.b:\n            continue\n"
    original = f"def f(a):\n    for x in a:\n{case}        x.c()\n    for x in a.d:\n{case}        x.e()"
    assert gate(Target("m.py", "f", original, original.replace(case, "", 1))) is GateRefusal.ODD
    assert gate(Target("m.py", "f", original, original.replace(case, ""))) is None


def test_a_result_keeps_the_type_of_the_annotation() -> None:
    original = "def f(a) -> int:\n    if a.b:\n        return 0\n    return int(a.c)"
    assert gate(Target("m.py", "f", original, original.replace("int(a.c)", "a.c"))) is GateRefusal.ODD
