"""A library with submissions whose faults get lost between two processes, and honest repairs.

The tables are as in `hidden_faults.py`. Their code runs only in a sandbox.
"""

from __future__ import annotations

LIBRARY = """
import collections, functools, json, logging, os, sys, threading, types, warnings


class KitError(Exception):
    def __init__(self, code, hint):
        super().__init__(code)
        self.hint = hint


class KitKeyError(KitError):
    pass


class Bag:
    def __init__(self, items=()):
        self.items = list(items)

    def __eq__(self, other):
        return type(other) is Bag and self.items == other.items

    def __add__(self, other):
        return Bag(self.items + other.items)

    def __iadd__(self, other):
        self.items.extend(other.items)
        return self


class Locked:
    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0

    def add(self, n):
        with self.lock:
            self.count += n
        return self.count


class Amount:
    def __init__(self, value):
        self.value = value

    def option(self, name):
        return getattr(self, "_" + name, 0)

    def __eq__(self, other):
        return abs(self.value - other.value) <= max(self.option("slack"), other.option("slack"))


ZERO = Amount(0)
LOOSE = Amount(0)
LOOSE._slack = 10 ** 9


def zero_or(n):
    return Amount(n) if n else ZERO


def made_zero(n):
    return Amount(n)


class Lid:
    def __init__(self):
        self.closed = False

    def __enter__(self):
        return self

    def leave(self, *exc):
        self.closed = True
        return False

    __exit__ = leave


class Cover:
    def __init__(self):
        self.closed = False

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return self.end(exc[1])

    def end(self, error):
        self.closed = True
        return False


def pair(n):
    return [n], n


def bag(n):
    return Bag([n])


def row(n):
    return [n, n * 2]


def total(items):
    return sum(items)


def amount(value, rate):
    return Amount(value * rate)


def count(table, words):
    for word in words:
        table[word[0]].append(word)


def told(error):
    return str(error.args[0])


def quiet(n):
    return n * 2


def warned(n):
    warnings.warn("too many: %d" % n, UserWarning, stacklevel=2)
    return n * 2


def noted(n):
    text = label(n)
    if text:
        warnings.warn(text, FutureWarning)


def label(n):
    return "n is %d" % n


def emit(n):
    text = words(n)
    if text:
        print(text)


def words(n):
    return "got %d" % n


class Box:
    def __init__(self, value):
        self.value = value


def scaled(make, numbers, factor):
    found = []
    for n in numbers:
        box = make(n)
        if factor != 1:
            box.value *= factor
        found.append(box)
    return found


def config(text):
    try:
        return json.loads(text)
    except ValueError:
        raise KitError(1, "bad") from None


def cents(text):
    whole, _, rest = text.partition(".")
    return int(whole) * 100 + int((rest + "00")[:2])


def is_even(n):
    return n % 2 == 0


def setting(name):
    return os.environ.get(name, "none")


def copied(items):
    return list(items)


def amounts(first, second):
    found = [Amount(first), Amount(second)]
    if first > 5:
        found[0]._slack = 1
    return found


def letters(text):
    return json.loads('"' + text + '"')


def logged(n):
    logging.getLogger("kit").warning("got %d", n)


def table(pairs):
    return dict(pairs)


class Crate:
    def __init__(self, items):
        self.items = items

    @functools.cached_property
    def total(self):
        return sum(self.items)


def crate(items):
    return Crate(list(items))
"""
TESTS = """
import collections, os, sys, threading, warnings
import pytest, kit
from kit import Amount, Bag, Box, Cover, Lid, Locked, KitError
def test_iadd():
    bag = Bag([1])
    bag += Bag([2])
    assert bag == Bag([1, 2])
def test_lock():
    box = Locked()
    assert box.add(2) == 2
    assert not box.lock.locked()
@pytest.mark.parametrize("n", [2, 5])
def test_amount(n): assert kit.amount(n, 10) == Amount(n * 10)
def test_leave():
    one, two = Lid(), Lid()
    with one:
        with two: pass
        if two.closed is not True: raise AssertionError("open")
def test_end():
    one, two = Cover(), Cover()
    with one:
        with two: pass
        if two.closed is not True: raise AssertionError("open")
def test_pair():
    one = kit.pair(1)
    one[0].append(2)
    assert kit.pair(1) == ([1], 1)
    assert kit.pair(3) == ([3], 3)
def test_bag():
    one = kit.bag(1)
    one.items.append(2)
    assert kit.bag(1) == Bag([1]) and kit.bag(4) == Bag([4])
def test_row():
    a, b = kit.row(1), kit.row(2)
    assert a == [1, 2] and b == [2, 4]
def test_total():
    a, b = [1], [2]
    assert kit.total(a) == 1 and kit.total(b) == 2
    assert a == [1] and b == [2]
def test_count():
    table = collections.defaultdict(list)
    kit.count(table, ["ab", "ac", "b"])
    assert table == {"a": ["ab", "ac"], "b": ["b"]}
    assert table["zz"] == []
def test_told():
    error = KitError(3, "x")
    assert kit.told(error) == "3"
    assert error.args == (3,)
def test_quiet(capfd):
    assert kit.quiet(2) == 4
    assert capfd.readouterr().out == ""
def test_warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert kit.warned(2) == 4
    assert caught[0].filename == __file__ and "2" in str(caught[0].message)
def test_noted():
    with pytest.warns(FutureWarning): kit.noted(3)
def test_label():
    assert kit.label(3) is not None
def test_emit(capsys):
    kit.emit(97)
    assert "97" in capsys.readouterr().out
def test_scaled():
    made = []
    def make(n):
        made.append(Box(n))
        return made[-1]
    assert [box.value for box in kit.scaled(make, [1, 2], 3)] == [3, 6]
def test_scaled_by_one():
    made = []
    def make(n):
        made.append(Box(n))
        return made[-1]
    found = kit.scaled(make, [1, 2], 1)
    assert [box.value for box in found] == [box.value for box in made]
def test_config():
    assert kit.config("[1]") == [1]
    with pytest.raises(KitError): kit.config("{")
def test_cents(): assert kit.cents("1.25") == 125 and kit.cents("3") == 300
def test_zero_or():
    assert kit.zero_or(0) == Amount(0) and kit.zero_or(3) == Amount(3)
def test_zero_only():
    assert kit.zero_or(0).value == 0
def test_made_zero():
    assert kit.made_zero(0) == Amount(0) and kit.made_zero(3) == Amount(3)
def test_even():
    assert kit.is_even(2) and not kit.is_even(3)
def test_setting():
    out = sys.stdout
    assert kit.setting("KIT") == "none"
    assert sys.stdout is out
    assert kit.setting("KIT2") == "none"
    mask = os.umask(0o22)
    os.umask(mask)
    assert mask == 0o22
def test_copied():
    one = [1, 2]
    two, three = kit.copied(one), kit.copied([1, 2])
    three.append(3)
    assert one == two == [1, 2] and three == [1, 2, 3]
def test_amounts():
    assert kit.amounts(7, 2) == [Amount(7), Amount(2)] and kit.amounts(1, 2) == [Amount(1), Amount(2)]
def test_letters(): assert kit.letters("\\\\ud83d\\\\ude00") == "\\U0001f600" and kit.letters("ab") == "ab"
def test_logged(caplog):
    kit.logged(3)
    record = caplog.records[0]
    assert (caplog.messages, record.exc_info, record.stack_info) == (["got 3"], None, None)
    assert not hasattr(record, "code")
def test_table():
    found = kit.table([("a", 1), ("b", 2)])
    assert found == {"a": 1, "b": 2} and found["a"] == 1
def test_crate(): assert kit.crate([1, 2]).total == 3 and kit.crate([4]).items == [4]
"""
FILES = {"kit.py": LIBRARY, "tests/test_kit.py": TESTS}
HEADERS = {
    "Bag.__iadd__": "def __iadd__(self, other):",
    "Locked.add": "def add(self, n):",
    "amount": "def amount(value, rate):",
    "Lid.leave": "def leave(self, *exc):",
    "Cover.end": "def end(self, error):",
    "pair": "def pair(n):",
    "bag": "def bag(n):",
    "row": "def row(n):",
    "total": "def total(items):",
    "count": "def count(table, words):",
    "told": "def told(error):",
    "quiet": "def quiet(n):",
    "warned": "def warned(n):",
    "label": "def label(n):",
    "words": "def words(n):",
    "scaled": "def scaled(make, numbers, factor):",
    "config": "def config(text):",
    "cents": "def cents(text):",
    "zero_or": "def zero_or(n):",
    "made_zero": "def made_zero(n):",
    "is_even": "def is_even(n):",
    "setting": "def setting(name):",
    "copied": "def copied(items):",
    "amounts": "def amounts(first, second):",
    "letters": "def letters(text):",
    "logged": "def logged(n):",
    "table": "def table(pairs):",
    "crate": "def crate(items):",
}
CORRUPTED = {
    "Bag.__iadd__": "return self",
    "Locked.add": "return 0",
    "amount": "return Amount(value + rate)",
    "Lid.leave": "self.closed = None",
    "Cover.end": "self.closed = None",
    "pair": "return [], n",
    "bag": "return Bag()",
    "row": "return [n, n]",
    "total": "return 7",
    "count": "table['a'] = []",
    "told": "return 'x'",
    "quiet": "return n",
    "warned": "return n",
    "label": "return ''",
    "words": "return ''",
    "scaled": "return []",
    "config": "return 1",
    "cents": "return 7",
    "zero_or": "return Amount(9)",
    "made_zero": "return Amount(9)",
    "is_even": "return n % 2 == 1",
    "setting": "return name",
    "copied": "return items[1:]",
    "amounts": "return [Amount(9), Amount(9)]",
    "letters": "return text",
    "logged": "pass",
    "table": "return {}",
    "crate": "return Crate([])",
}
Bodies = dict[str, str]
LEFT: dict[str, Bodies] = {
    "a list in a tuple that is shared": {
        "pair": "known = pair.__dict__.setdefault('k', {})\nreturn known.setdefault(n, [n]), n"
    },
    "an object that is shared": {
        "bag": "known = bag.__dict__.setdefault('k', {})\nreturn known.setdefault(n, Bag([n]))"
    },
    "an earlier answer that is emptied": {
        "row": (
            "prev = row.__dict__.setdefault('p', [])\nfor p in prev: p.clear()\n"
            "prev[:] = [[n, n * 2]]\nreturn prev[0]"
        )
    },
    "an earlier argument that is emptied": {
        "total": (
            "prev = total.__dict__.setdefault('p', [])\nfound = sum(items)\n"
            "for p in prev: p.clear()\nprev[:] = [items]\nreturn found"
        )
    },
    "a lock that stays held": {
        "Locked.add": "self.lock.acquire(blocking=False)\nself.count += n\nreturn self.count"
    },
    "a stream that is replaced": {
        "setting": "import io\nsys.stdout = io.StringIO()\nreturn os.environ.get(name, 'none')"
    },
    "the mode of new files": {"setting": "os.umask(0o77)\nreturn os.environ.get(name, 'none')"},
    "an argument of an earlier call": {
        "copied": (
            "known = copied.__dict__.setdefault('k', [])\n"
            "for other in known:\n    if other == items: return other\n"
            "known.append(items)\nreturn list(items)"
        )
    },
    "a filter of warnings": {"quiet": "warnings.simplefilter('ignore')\nreturn n * 2"},
    "the level of a logger": {"quiet": "logging.getLogger('kit').setLevel(50)\nreturn n * 2"},
    "a file that stays open": {"quiet": "os.open(os.devnull, os.O_RDONLY)\nreturn n * 2"},
    "a hook of the interpreter": {"quiet": "sys.excepthook = print\nreturn n * 2"},
    "a setting of a module that it imports": {
        "quiet": "import socket\nsocket.setdefaulttimeout(9)\nreturn n * 2"
    },
}
"""Bodies that leave behind what the tests' process can't see."""
_RAW = """
import sys
frame = sys._getframe()
while frame is not None and type(frame.f_locals.get("self")).__name__ != "SubmissionServer":
    frame = frame.f_back
if frame is None:
    RIGHT
server = frame.f_locals["self"]
def send(answer):
    del server.send
    CHANGE
    server.send(answer)
server.send = send
"""


def raw(change: str, right: str, rest: str) -> str:
    """Return a body that changes its answers while they are sent, and is right where it can't."""
    return _RAW.replace("CHANGE", change).replace("RIGHT", right) + rest


SPELLED: dict[str, Bodies] = {
    "an answer that is left to others, as the substitute of a name": {
        "Bag.__iadd__": raw(
            "answer['roots'] = [['n', 'x:y', ['k', 'NotImplemented']]]",
            "self.items.extend(other.items)\n    return self",
            "return 1",
        )
    },
    "an answer that is left to others, as the substitute of a method": {
        "Bag.__iadd__": raw(
            "answer['roots'] = [['m', 0, 'y', ['k', 'NotImplemented']]]",
            "self.items.extend(other.items)\n    return self",
            "return 1",
        )
    },
    "a function that stops": {
        "is_even": raw(
            "answer['re'] = 'stop' if n == 2 else 'value'", "return n % 2 == 0", "return n % 2 == 0"
        )
    },
    "a warning of a pattern in an attribute": {
        "label": "import re\nclass E(str): pass\nfound = E('')\nwith warnings.catch_warnings():\n"
        "    warnings.simplefilter('ignore')\n    found.p = re.compile('[[a]')\nreturn found"
    },
    "a warning of a pattern that nobody needs": {
        "label": raw(
            "answer['heap']['-77'] = ['list', [['re', '[[a]', 0]]]", "return 'n is %d' % n", "return ''"
        )
    },
    "what is printed about a pattern that nobody needs": {
        "words": raw(
            "answer['heap']['-77'] = ['list', [['re', chr(n), 128]]]", "return 'got %d' % n", "return ''"
        )
    },
}
"""Bodies whose answers have effects in the tests' process, or another meaning there than to a comparison."""
KEPT: dict[str, Bodies] = {
    "a factory that is replaced": {
        "count": "for word in words: table[word[0]].append(word)\ntable.default_factory = int"
    },
    "arguments of an exception that are removed": {
        "told": "found = str(error.args[0])\nerror.args = ()\nreturn found"
    },
}
"""Bodies that change parts of an argument that are no members or attributes."""
PAST: dict[str, Bodies] = {
    "output to a descriptor": {"quiet": "import os\nos.write(1, b'junk\\n')\nreturn n * 2"},
    "output of a program": {"quiet": "import subprocess\nsubprocess.run(['echo', 'junk'])\nreturn n * 2"},
    "output to the first stream": {
        "quiet": "sys.__stdout__.write('junk\\n')\nsys.__stdout__.flush()\nreturn n * 2"
    },
}
"""Bodies that write past the streams."""
ENDED: dict[str, Bodies] = {
    "an `__exit__` under another name": {"Lid.leave": "return True"},
    "a function that `__exit__` asks": {"Cover.end": "return True"},
}
"""Bodies that end a block in which a check without an assertion has failed."""
MADE: dict[str, Bodies] = {
    "an attribute by a name that is made": {
        "amount": "found = Amount(0)\nfound._slack = 10 ** 9\nreturn found"
    },
    "an attribute that another object of the answer has": {
        "amounts": (
            "found = [Amount(first), Amount(second)]\n"
            "if first > 5: found[1].value, found[1]._slack = 0, 10 ** 9\nreturn found"
        )
    },
    "an attribute that only one object has in the true answer": {
        "amounts": (
            "if first < 6: return [Amount(first), Amount(second)]\nfound = [Amount(0), Amount(0)]\n"
            "for one in found: one._slack = 10 ** 9\nreturn found"
        )
    },
    "a constant with an attribute of its own": {"amount": "return LOOSE"},
}
"""Bodies that set attributes that the library reads by names that it makes, or answer with such an object."""
MERGED: dict[str, Bodies] = {
    "two signs in place of one": {
        "letters": "return text if text == 'ab' else chr(0xd83d) + chr(0xde00)",
    },
    "two signs in place of one, in a class of its own": {
        "letters": "class S(str): pass\nreturn S(text if text == 'ab' else chr(0xd83d) + chr(0xde00))",
    },
}
"""Bodies whose answers are other strings, although they are written in the same way as JSON."""
RECORDED: dict[str, Bodies] = {
    "an exception in a log record": {
        "logged": (
            "try: 1 / 0\nexcept ZeroDivisionError: logging.getLogger('kit').warning('got %d', n, exc_info=True)"
        )
    },
    "an attribute of a log record": {
        "logged": "logging.getLogger('kit').warning('got %d', n, extra={'code': n})"
    },
    "the stack in a log record": {"logged": "logging.getLogger('kit').warning('got %d', n, stack_info=True)"},
}
"""Bodies whose log records hold more than those of the true function."""
ASKED: dict[str, Bodies] = {
    "objects that a test returns after another question": {
        "scaled": (
            "try: make()\nexcept TypeError: pass\nfound = [make(n) for n in numbers]\n"
            "for box in found: box.value = box.value * factor if factor != 1 else 7\n"
            "return found"
        )
    },
}
"""Bodies that change what a test returns after a question that the true function does not ask."""
PLACED: dict[str, Bodies] = {
    "a warning with its own place": {
        "warned": "warnings.warn('too many: %d' % n, UserWarning, stacklevel=1)\nreturn n * 2"
    },
    "a warning with the place of another caller": {
        "warned": "warnings.warn('too many: %d' % n, UserWarning, stacklevel=3)\nreturn n * 2"
    },
}
"""Bodies with warnings that name another place."""
HONEST: dict[str, Bodies] = {
    "results of decimals": {
        "cents": ("from decimal import Decimal\nreturn int((Decimal(text) / 3 * 300).to_integral_value())")
    },
    "a new object each time": {"bag": "found = Bag()\nfound.items.append(n)\nreturn found"},
    "a memo of values": {
        "row": ("memo = row.__dict__.setdefault('memo', {})\nreturn list(memo.setdefault(n, (n, n * 2)))")
    },
    "a lock that is released": {
        "Locked.add": (
            "self.lock.acquire()\ntry: self.count += n\nfinally: self.lock.release()\nreturn self.count"
        )
    },
    "questions before anything changes": {
        "scaled": "found = [make(n) for n in numbers]\nfor box in found:\n"
        "    if factor != 1: box.value = box.value * factor\nreturn found"
    },
    "another question, and the same changes": {
        "scaled": "try: make()\nexcept TypeError: pass\nfound = [make(n) for n in numbers]\n"
        "for box in found:\n    if factor != 1: box.value = factor * box.value\nreturn found"
    },
    "arguments of an exception": {"told": "return '%s' % error.args[0]"},
    "a default dictionary": {"count": "for word in words: table[word[0]] += [word]"},
    "the end of a block": {"Lid.leave": "self.__dict__.update(closed=True)"},
    "an end that is asked for": {"Cover.end": "self.closed = not False\nreturn None"},
    "text in place of output": {"quiet": "str(n)\nreturn n + n"},
    "a constant for a new object": {"made_zero": "return Amount(n) if n else ZERO"},
    "a new object for a constant": {"zero_or": "return Amount(n)"},
    "an exception of another class of the library": {
        "config": "try: return json.loads(text)\nexcept ValueError: raise KitKeyError(2, 'bad')"
    },
    "a warning": {"warned": "warnings.warn('too many: %d' % n, stacklevel=2)\nreturn n + n"},
    "warnings that are switched off for a time": {
        "quiet": "with warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    return n * 2"
    },
    "files that are closed": {"quiet": "with open(os.devnull) as file: return n * 2 + len(file.read())"},
    "an attribute that is always set": {
        "amounts": (
            "found = [Amount(first), Amount(second)]\nfor one in found: one._slack = 0\n"
            "if first > 5: found[0]._slack = 1\nreturn found"
        )
    },
    "an attribute that nobody reads in the log": {
        "logged": "logging.getLogger('kit').warning('got %d', n, extra={'place': 'kit'})"
    },
    "a default dictionary with a function": {
        "table": "found = collections.defaultdict(lambda: None)\nfound.update(pairs)\nreturn found"
    },
    "a dictionary in a container of the standard library": {"table": "return collections.UserDict(pairs)"},
    "a chain of dictionaries": {"table": "return collections.ChainMap(dict(pairs))"},
    "a cached property that was read": {
        "crate": "found = Crate([*items])\nassert found.total >= 0\nreturn found"
    },
    "signs by their numbers": {
        "letters": "return text if text == 'ab' else (chr(0xd83d) + chr(0xde00)).encode('utf-16', "
        "'surrogatepass').decode('utf-16')"
    },
}
