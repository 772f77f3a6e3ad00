"""Complexity of single functions, against counts made by hand."""

from math import log2
from textwrap import dedent

import pytest
from radon.complexity import cc_visit

from gistpoint.core.metrics.complexity import Complexity, measure_complexity


def measure(source: str, line: int = 1) -> Complexity:
    return measure_complexity({"m.py": dedent(source).strip().encode()})["m.py", line]


def test_code_lines_leave_out_decorators_blanks_comments_and_docstrings() -> None:
    source = '''
    @decorated
    # why
    def f(
        a,
    ):
        """What it does.

        At length.
        """

        # a comment
        text = """one
        # no comment

        three"""
        return text  # because
    '''
    assert measure(source, 3).code_lines == 3 + 3 + 1


def test_a_function_on_one_line() -> None:
    assert measure("def f(): return 1").code_lines == 1
    assert measure('def f(): "doc"; return 1').code_lines == 1


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f():\n    x = ('a'  # first\n         # between\n\n         'b')\n", 3),
        (
            "def f():\n    x = ('a'\n         # é\n         'é # no' f'{1}'\n         # and\n         r'c'\n    )\n",
            5,
        ),
        (
            "def f():\n    x = 'é', ('a'\n         # between\n         'b' + \n         # below\n         'c')\n",
            4,
        ),
        ("def f():\n    return ('a' '''\n# no comment\n\n''' # after\n    # between\n    'b')\n", 5),
        ("def f():\n    return f'''\n# {1} no comment\n'''\n", 4),
        ("def f(\n    a): 'doc'\n", 2),
        ("def f(\n    a): '''doc\n    more\n    '''; return 1\n", 3),
        ("def f(a):\n    'doc'\n    def g(\n        b): 'doc'\n    # end\n", 3),
    ],
)
def test_code_lines_are_those_with_code(source: str, lines: int) -> None:
    assert measure_complexity({"m.py": source.encode()})["m.py", 1].code_lines == lines
    crlf = source.replace("\n", "\r\n").encode("utf-8-sig")
    assert measure_complexity({"m.py": crlf})["m.py", 1].code_lines == lines


DECISIONS = """
def f(xs):
    for x in xs:
        if x and x > 1 or x < -1:
            continue
        elif x == 3:
            pass
        else:
            while x:
                try:
                    x = 1 if x else 2
                except ValueError:
                    pass
                except (KeyError, TypeError):
                    with open(x) as y:
                        assert y
    return [x for x in xs if x]
"""


def test_cyclomatic_is_radons_and_the_papers_beside_it() -> None:
    found = measure(DECISIONS)
    assert found.cyclomatic == cc_visit(DECISIONS)[0].complexity
    assert found.cyclomatic_paper == 1 + 2 + 2 + 1 + 2
    assert found.nesting == 5


def test_match_cases_count_but_for_the_wildcard() -> None:
    source = """
    def f(x):
        match x:
            case 1: return 1
            case [a]: return a
            case _: return 0
    """
    assert measure(source).cyclomatic_paper == 3
    assert measure(source).nesting == 1
    for guarded in ("_ if x > 1", "y if y", "_ if (x)"):
        assert measure(source.replace("case _:", f"case {guarded}:")).cyclomatic_paper == 4


def test_elif_is_no_deeper_but_if_in_else_is() -> None:
    assert measure("def f(x):\n    if x: a\n    elif y: b\n    elif z: c\n").nesting == 1
    assert measure("def f(x):\n    if x: a\n    else:\n        if y: b\n").nesting == 2


def test_inner_functions_decide_for_themselves() -> None:
    source = """
    def f(x):
        def g(y):
            if y: return 1
            if x: return 2
        return g
    """
    assert measure(source).cyclomatic_paper == 1
    assert measure(source).cyclomatic == 1
    assert measure(source, 2).cyclomatic == 3


@pytest.mark.parametrize(
    ("expression", "volume", "difficulty"),
    [
        ("a + b", 4.755, 0.5),
        ("a < b < 3", 10.0, 0.5),
        ("a and b and a", 6.340, 0.75),
        ("a**2//3", 15.510, 1.0),
    ],
)
def test_halstead(expression: str, volume: float, difficulty: float) -> None:
    function, method = f"def f(a, b):\n    return {expression}", f"class C:\n  def f(a, b):\n    {expression}"
    for source, line in ((function, 1), (method, 2)):
        found = measure(source, line)
        assert found.halstead_volume == pytest.approx(volume, abs=0.001)
        assert found.halstead_difficulty == pytest.approx(difficulty)


def test_no_operators_are_no_error() -> None:
    assert measure("def f(a): return g(a, 1)").halstead_volume == 0


def test_every_kind_of_function_is_measured() -> None:
    source = "async def a(): ...\nclass C:\n  @x\n  def m(self):\n    def n(): ...\nif 1:\n  def k(): ...\n"
    assert set(measure_complexity({"m.py": source.encode()})) == {
        ("m.py", 1),
        ("m.py", 4),
        ("m.py", 5),
        ("m.py", 7),
    }


def test_odd_files_are_left_out_or_measured() -> None:
    deep = b"def f(): return " + b" + ".join([b"g()"] * 2500) + b"\n"
    measured = measure_complexity(
        {"bad.py": b"def (", "deep.py": deep, "crlf.py": b"def f():\r\n\r\n    pass\r\n"}
    )
    assert measured["deep.py", 1].code_lines == 1
    assert measured["crlf.py", 1].code_lines == 2
    assert not any(path == "bad.py" for path, _ in measured)


def test_halstead_of_the_paper_counts_every_operator_and_operand() -> None:
    found = measure(
        '''
        @cached
        def f(self, key: str, size: int = 2) -> list[str]:
            """What it does."""
            value: int = self.table[key]
            self.seen += 1
            return g(value, size=size + 1)
        ''',
        2,
    )
    operators = ["=", ".", "[]", "+=", ".", "return", "()", "=", "+"]
    operands = [
        "self",
        "key",
        "size",
        "2",
        "value",
        "self",
        "table",
        "key",
        "self",
        "seen",
        "1",
        "g",
        "value",
    ]
    operands += ["size", "size", "1"]
    n1, n2 = len(set(operators)), len(set(operands))
    assert found.halstead_difficulty_paper == pytest.approx(n1 / 2 * len(operands) / n2)
    assert found.halstead_volume_paper == pytest.approx((len(operators) + len(operands)) * log2(n1 + n2))


@pytest.mark.parametrize(
    ("body", "operators", "operands"),
    [
        ("pass", 1, 0),
        ("if not a and b < 2 < c: del d", "if not and < < del", "a b 2 c d"),
        ("try: raise E from e\nexcept (A, B) as x: pass", "try raise except pass", "E e A B x"),
        ("return [a for a in b if c if d]", "return for-in if if", "a a b c d"),
        ("with a as b: yield {1: 'x', **c}", "with yield {:}", "a b 1 'x' c"),
        (
            "match a:\n case {'k': v, **r}: b()\n case P(y=1) | None: pass",
            "match case () case | pass",
            "a 'k' v r b P y 1 None",
        ),
        ("global a\nimport b.c as d\nfrom e import f", "global import from-import", "a d f"),
        (
            "def g(x): return lambda y=1: y\nclass C(B): z = x",
            "def return lambda class =",
            "g x y 1 y C B z x",
        ),
        ("return f'{a!r:>{b}}'", "return f{} f{}", "a '>' b"),
    ],
)
def test_what_counts(body: str, operators: str | int, operands: str | int) -> None:
    source = "def f():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    found = measure(source)
    n_all = [len(side.split()) if isinstance(side, str) else side for side in (operators, operands)]
    distinct = [len(set(side.split())) if isinstance(side, str) else side for side in (operators, operands)]
    assert found.halstead_volume_paper == pytest.approx(sum(n_all) * log2(sum(distinct)))
