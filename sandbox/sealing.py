"""The secret that a run of tests receives only on standard input, and the tags of its records.

The tested code shares a process with the reporter. This code can't know the key of the records: when the
repository is first imported, the key is not in any file, environment variable or command line. Nor can it
know which of the meaningless tests (sentinels) have to fail, and how. Both the key and the sentinels are
new for each run (decision 42).
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
"""The outcome of a test, and the name of the exception that its call raised."""


class SealError(Exception):
    """A line was not written by the reporter of this run."""


@dataclass(frozen=True, slots=True)
class RunSecret:
    """The key and the sentinels of one run."""

    key: bytes
    text: str
    """The source of the sentinels' module."""
    outcomes: Mapping[str, Shown]
    """The required outcomes of the sentinels, by name."""

    @classmethod
    def new(cls) -> RunSecret:
        """Return a new secret, with sentinels in random order.

        Each way to judge a test has a sentinel that must end as `wrong`; half of the ways (rounded down),
        chosen at random, also have one that must end as `right` (see `_Kind`).
        """
        # SystemRandom, because nobody must be able to predict a run from earlier runs.
        chance = random.SystemRandom()
        chosen = [(kind, True) for kind in _KINDS]
        chosen += [(kind, False) for kind in chance.sample(_KINDS, len(_KINDS) // 2)]
        chance.shuffle(chosen)
        names = [f"test_{os.urandom(6).hex()}" for _ in chosen]
        parts = [kind.text(name, wrong=wrong) for (kind, wrong), name in zip(chosen, names, strict=True)]
        outcomes = {
            name: kind.wrong if wrong else kind.right
            for (kind, wrong), name in zip(chosen, names, strict=True)
        }
        return cls(os.urandom(32), "\n\n".join((_HEAD, *parts)), outcomes)

    def order(self) -> dict[str, object]:
        """Return the reporter's part of the secret: the `key` in hexadecimal, and the `sentinels`."""
        return {"key": self.key.hex(), "sentinels": self.text}


NOTHING_SECRET = RunSecret(b"", "", {})
"""The secret for runs of code that nobody has submitted: their records have no tags, and no sentinels run."""


class ResultSeal:
    """A checker of the tags of a run's lines, in their order; each tag depends on all previous lines."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def opened(self, line: bytes) -> bytes:
        """Return the next line without its tag. Raises `SealError` if the tag is wrong at this position."""
        tag, separator, record = line[:_TAG], line[_TAG : _TAG + 1], line[_TAG + 1 :]
        made = blake2b(record, key=self._key, digest_size=_TAG // 2, person=b"record").hexdigest().encode()
        if tag != made or separator != b" ":
            raise SealError
        # Each record has a new key, so that a key found in memory can't sign earlier records (decision 42).
        self._key = blake2b(record, key=self._key, digest_size=32, person=b"next").digest()
        return record


def packed(order: Mapping[str, object]) -> bytes:
    """Return an order as the reporter reads it: a line with the length in bytes, then the order as JSON."""
    data = json.dumps(order).encode()
    return str(len(data)).encode() + b"\n" + data


@contextlib.contextmanager
def handed_over(order: Mapping[str, object]) -> Iterator[int]:
    """Yield the reading end of a pipe that carries `order`, of any size, to its first reader."""
    reading, writing = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:
            pipe.write(packed(order))

    # A thread writes, because a long order blocks until the run reads it, and the run has not started yet.
    writer = threading.Thread(target=write, name="order", daemon=True)
    writer.start()
    try:
        yield reading
    finally:
        # Closed before the join, because the writer would wait forever for a run that never reads.
        os.close(reading)
        writer.join()


@dataclass(frozen=True, slots=True)
class _Kind:
    """One way to judge a test: the lines of a test with two values, `{0}` and `{1}`, and its two outcomes.

    The test ends as `right` if the values are equal, otherwise as `wrong`.
    """

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
