"""What a run of tests is given by standard input and nowhere else, and how its records show that they are the run's.

The tested code shares a process with the reporter. It can't know the key of the records, which is gone from every file,
variable of the environment and command line before anything of the repository is imported, nor which of the tests
without a meaning (sentinels) have to fail, and how. Both are made anew for each run.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from gistpoint.core.outcomes import Outcome

_TAG = 32
_HEAD = "import unittest\n\nimport pytest\n"

Shown = tuple[Outcome, str | None]
"""How a test came out, and the name of what its call raised."""


class SealError(Exception):
    """A line that the reporter of this run has not written."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What one run has to itself."""

    key: bytes
    text: str
    """The module of the sentinels."""
    outcomes: Mapping[str, Shown]
    """The sentinels by name."""

    @classmethod
    def new(cls) -> Secret:
        """Make one: each way to judge a test is to be seen to fail, half of them to pass as well, in any order."""
        chance = random.SystemRandom()
        chosen = [(kind, True) for kind in _KINDS]
        chosen += [(kind, False) for kind in chance.sample(_KINDS, len(_KINDS) // 2)]
        chance.shuffle(chosen)
        names = [f"test_{os.urandom(6).hex()}" for _ in chosen]
        parts = [kind.text(name, wrong=wrong) for (kind, wrong), name in zip(chosen, names, strict=True)]
        outcomes = {
            name: kind.wrong if wrong else kind.right for (kind, wrong), name in zip(chosen, names, strict=True)
        }
        return cls(os.urandom(32), "\n\n".join((_HEAD, *parts)), outcomes)

    def order(self) -> dict[str, object]:
        """Return what the reporter is given of it."""
        return {"key": self.key.hex(), "sentinels": self.text}


NOTHING_SECRET = Secret(b"", "", {})
"""For runs of code that nobody has submitted: their records carry no tags, and there are no sentinels."""


class Seal:
    """Checks the tags of a run's lines, one after the other; each depends on all lines before it."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def opened(self, line: bytes) -> bytes:
        """Return a line without its tag. Raises `SealError` where the tag is not that of this line in this place."""
        tag, separator, record = line[:_TAG], line[_TAG : _TAG + 1], line[_TAG + 1 :]
        made = blake2b(record, key=self._key, digest_size=_TAG // 2, person=b"record").hexdigest().encode()
        if tag != made or separator != b" ":
            raise SealError
        self._key = blake2b(record, key=self._key, digest_size=32, person=b"next").digest()
        return record


def packed(order: Mapping[str, object]) -> bytes:
    """Return an order as the reporter reads it: the length on a line of its own, then the order."""
    data = json.dumps(order).encode()
    return str(len(data)).encode() + b"\n" + data


@contextlib.contextmanager
def handed_over(order: Mapping[str, object]) -> Iterator[int]:
    """Give the reading end of a pipe that brings `order`, whatever its size, to whoever reads it first."""
    reading, writing = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:
            pipe.write(packed(order))

    writer = threading.Thread(target=write, name="order", daemon=True)
    writer.start()
    try:
        yield reading
    finally:
        os.close(reading)
        writer.join()


@dataclass(frozen=True, slots=True)
class _Kind:
    """One way in which a test is judged: lines with `{0}` and `{1}` for two values, equal where all is `right`."""

    lines: Sequence[str]
    right: Shown
    wrong: Shown
    above: str = "def {name}():"

    def text(self, name: str, *, wrong: bool) -> str:
        first = os.urandom(4).hex()
        second = os.urandom(4).hex() if wrong else first
        body = "\n".join("    " + line.format(repr(first), repr(second)) for line in self.lines)
        return f"{self.above.format(name=name)}\n{body}"


_PASSED: Shown = (Outcome.PASSED, None)
_ASSERTION: Shown = (Outcome.FAILED, "AssertionError")
_KINDS = (
    _Kind(("assert {0} == {1}",), _PASSED, _ASSERTION),
    _Kind(("if {0} != {1}:", "    raise AssertionError({0})"), _PASSED, _ASSERTION),
    _Kind(("if {0} != {1}:", "    raise ValueError({0})"), _PASSED, (Outcome.FAILED, "ValueError")),
    _Kind(
        ("with pytest.raises(KeyError):", "    {{{0}: 1}}[{1} * 2 if {0} == {1} else {0}]"),
        _PASSED,
        (Outcome.FAILED, "Failed"),
    ),
    _Kind(("assert len({0}) + ({0} != {1}) == pytest.approx(8)",), _PASSED, _ASSERTION),
    _Kind(
        (
            "case = unittest.TestCase()",
            "case.assertRaises(KeyError, {{{0}: 1}}.__getitem__, {1} * 2 if {0} == {1} else {0})",
        ),
        _PASSED,
        _ASSERTION,
    ),
    _Kind(
        ("def test_it(self):", "    self.assertEqual({0}, {1})"),
        _PASSED,
        _ASSERTION,
        "class {name}(unittest.TestCase):",
    ),
    _Kind(("if {0} != {1}:", "    pytest.skip({0})"), _PASSED, (Outcome.SKIPPED, "Skipped")),
    _Kind(
        ("assert {0} == {1}",),
        (Outcome.FAILED, None),
        (Outcome.XFAILED, "AssertionError"),
        "@pytest.mark.xfail(strict=True)\ndef {name}():",
    ),
)
