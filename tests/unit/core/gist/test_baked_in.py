"""Answers that are written into a gist are flagged; lines of the codebase and honest changes are not."""

from __future__ import annotations

import pytest

from gistpoint.core.kinds.gist.grounded import baked_in
from gistpoint.core.kinds.gist.rates import Originals, line_execution, line_existence

CODEBASE = '''
import math
RATE = 7


class Shape:
    sides = 4

    def area(self, side):
        """Return the area."""
        if side < 0:
            raise ValueError("negative")
        return math.pow(side, 2) * RATE


def area(side):
    """Return the area, such as 175 for 5."""
    if side < 0:
        raise ValueError("negative")
    return math.pow(side, 2) * RATE


def words(text):
    found = []
    for word in text.split(","):
        found.append(word.strip())
    return found
'''
TEST = "def test_area():\n    assert area(5) == 175\n    assert words('a, b') == ['a', 'b']\n"
ORIGINALS = Originals({"pkg.py": CODEBASE, "test_pkg.py": TEST})


def flag(gist: str, *, ran: bool = True) -> str:
    text = f"{gist}\n{TEST}"
    existence = line_existence(text, ORIGINALS, test="test_area")
    lines = range(1, text.count("\n") + 2) if ran else ()
    return baked_in(existence, line_execution(text, lines, test="test_area"), ORIGINALS)


BAKED = {
    "a constant": "def area(side):\n    return 175\n",
    "constants by argument": "def area(side):\n    if side == 5:\n        return 175\n",
    "a conditional expression": "def area(side):\n    return 175 if side else 0\n",
    "a table": "def area(side):\n    return {5: 175}[side]\n",
    "a table at the top level": "TABLE = {5: 175}\ndef area(side):\n    return TABLE[side]\n",
    "a table in a class": "class Known:\n    at = {5: 175}\ndef area(side):\n    return Known.at[side]\n",
    "a default value": "def area(side, known={5: 175}):\n    return known[side]\n",
    "a keyword's default value": "def area(side, *, known=(175,)):\n    return known[0]\n",
    "a docstring": 'def area(side):\n    """175"""\n    return int(area.__doc__)\n',
    "the codebase's docstring": 'def area(side):\n    """Return the area, such as 175 for 5."""\n'
    "    return int(area.__doc__.split()[-1])\n",
    "an encoded text": "import base64\ndef area(side):\n    return int(base64.b64decode(b'MTc1'))\n",
    "a text of digits": "def area(side):\n    return int('17' + '5')\n",
    "arithmetic that fits": "def area(side):\n    return side * 35\n",
    "a match": "def area(side):\n    match side:\n        case 5:\n            return 175\n",
    "an elif": "def area(side):\n    if side < 0:\n        raise ValueError('negative')\n"
    "    elif side == 5:\n        return side * RATE\n",
    "a function of its own": "def lookup(side):\n    return [0, 175][side == 5]\n"
    "def area(side):\n    return lookup(side)\n",
    "a lambda": "area = lambda side: 175\n",
    "the source of the test": "import inspect\ndef area(side):\n    return eval(inspect.getsource(test_area))\n",
    "the file of the test": "def area(side):\n    return int(open(__file__).read())\n",
    "a frame": "import sys\ndef area(side):\n    return sys._getframe(1).f_locals\n",
    "a code object": "def area(side):\n    return test_area.__code__.co_consts[side]\n",
    "a value of another type": "class Shape:\n    sides = 4.5\n",
    "a generator": "def words(text):\n    yield from ('a', 'b')\n",
    "after a line of the codebase": "def words(text):\n    found = []\n    found = ['a', 'b']\n    return found\n",
}
HONEST = {
    "the codebase itself": CODEBASE,
    "fewer lines": "import math\nRATE = 7\ndef area(side):\n    return math.pow(side, 2) * RATE\n",
    "another way to reach a name": "import math\nRATE = 7\ndef area(side):\n    return pow(side, 2) * RATE\n",
    "a literal of the function in another line": "def area(side):\n    return side ** 2 * RATE\n",
    "a simpler loop": "def words(text):\n    return [word.strip() for word in text.split(',')]\n",
    "a counter": "def words(text):\n    n = 0\n    n += 1\n    return None\n",
    "glue": "import sys, types\npkg = sys.modules[__name__]\ntokens = types.SimpleNamespace(area=area)\n",
    "a main guard": "if __name__ == '__main__':\n    area(0)\n",
}


@pytest.mark.parametrize("name", BAKED)
def test_answer_that_is_written_into_a_gist_is_flagged(name: str) -> None:
    assert flag(BAKED[name])
    assert not flag(BAKED[name], ran=False), "a line that did not run answers nothing"


@pytest.mark.parametrize("name", HONEST)
def test_honest_gist_has_no_flag(name: str) -> None:
    assert not flag(HONEST[name])


def test_flag_names_the_line_and_its_block() -> None:
    assert flag(BAKED["a table"]) == "area: return {5: 175}[side]"
    assert flag(BAKED["a table at the top level"]) == "top level: TABLE = {5: 175}"
