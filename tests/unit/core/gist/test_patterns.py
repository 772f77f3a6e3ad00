"""Patterns that an output must match where runs of the original differ."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gistpoint.core.kinds.gist.patterns import OutputPattern

LINES: dict[str, tuple[list[str], list[str], list[str]]] = {
    "a number": (
        ["id 7", "id 12", "id 3"],
        ["id 99", "id -4.5e3"],
        ["something else", "id", "id x", "no 7", "id 7!", "id 1 2"],
    ),
    "a word": (
        ["id a3 of 5", "id ff of 5"],
        ["id 07 of 5", "id x-y of 5"],
        ["id a3 of 6", "id a b of 5", "id  of 5", "of 5"],
    ),
    "two places": (
        ["at 3 in 5 steps", "at 4 in 9 steps"],
        ["at 0 in 0 steps"],
        ["at 3 steps in 5", "at no in 5 steps", "at 3 in 5 steps, or so"],
    ),
    "a list of numbers": (
        ["drew [3, 1]", "drew [5]", "drew [2, 2, 8]"],
        ["drew [1, 2, 3, 4]"],
        ["drew [x]", "drew 3"],
    ),
    "an empty list": (
        ["drew [3, 1] of 9", "drew [] of 9"],
        ["drew [5] of 9"],
        ["drew [no] of 9", "x drew [] of 9"],
    ),
    "another order": (
        ["{'a', 'b'}", "{'b', 'a'}"],
        ["{'b',  'a'}"],
        ["{'a', 'c'}", "{'a'}", "{'a', 'a'}", "{'a', 'b', 'b'}", "anything"],
    ),
    "another order beside a number": (
        ["7 {'a': 1, 'b': 2}", "8 {'b': 2, 'a': 1}", "7 {'a': 1, 'b': 2}"],
        ["9 {'b': 2, 'a': 1}"],
        ["9 {'c': 1, 'b': 2}", "x {'a': 1, 'b': 2}", "9 {'a': 1}"],
    ),
    "words between": (["a 3 4 b 5", "a 1 b 2 2"], ["a 9 b 9"], ["a 9 c 9", "a x b 9", "z 9 b 9"]),
    "a json object": (
        ['{"id":7,"name":"bob","n":3}', '{"id":1,"name":"bob","n":4}'],
        ['{"id":0,"name":"bob","n":0}'],
        ['{"id":0,"name":"eve","n":0}', '{"id":0}', "{}"],
    ),
    "alignment": (
        ["took   7 of 9", "took  12 of 9"],
        ["took 123 of 9"],
        ["took it of 9", "took 123 of 8"],
    ),
    "a token of signs and letters": (
        ["key aB3+x/= end", "key q9z/KK8= end", "key Zz1z9= end"],
        ["key a/b+c== end"],
        ["key a b end", "key aB3+x/="],
    ),
}


@pytest.mark.parametrize(("runs", "fit", "differ"), LINES.values(), ids=LINES.keys())
def test_a_line_that_differs_is_compared_in_its_other_tokens(
    runs: list[str], fit: list[str], differ: list[str]
) -> None:
    pattern = OutputPattern.of([f"begin\n{run}\nend" for run in runs])
    assert [line for line in [*runs, *fit] if not pattern.matches(f"begin\n{line}\nend")] == []
    assert [line for line in [*differ, ""] if pattern.matches(f"begin\n{line}\nend")] == []
    assert not pattern.matches(f"begin\n{runs[0]}\n{runs[0]}\nend")
    assert not pattern.matches("begin\nend")


def test_gaps_are_shown() -> None:
    assert OutputPattern.of(["a\nid 1 of 2\nb", "a\nid 3 of 2\nb"]).text == "a\nid [varies] of 2\nb"
    assert OutputPattern.of(["a\nb", "a\nx\ny\nb"]).text == "a\n[varies]\nb"
    assert OutputPattern.of([]).matches("")


def test_another_number_of_lines_may_stand_where_it_differs() -> None:
    words = OutputPattern.of(["a\nb", "a\nx\ny\nb"])
    assert words.matches("a\nb")
    assert words.matches("a\np\nq\nr\nb")
    assert not words.matches("a\nx")
    numbers = OutputPattern.of(["a\n1\n2\nb", "a\n3\nb"])
    assert numbers.matches("a\n7\n8\n9\nb")
    assert not numbers.matches("a\nseven\nb")


def test_a_line_that_may_be_anything_takes_bounded_time() -> None:
    runs = ["x" + " a1" * 3000, "x" + " b2" * 2990 + " c"]
    assert OutputPattern.of(runs).matches("x" + " d4" * 5000)
    long = OutputPattern.of([" ".join(f"k{n} {n + seed}" for n in range(3000)) for seed in (0, 1, 2)])
    assert not long.matches("k0 " + "9" * 200_000)


FIELDS: dict[str, Callable[[random.Random], str]] = {
    "number": lambda r: str(r.randrange(10**6)),
    "real": lambda r: repr(r.random() ** r.choice([1, 3, 9])),
    "hash": lambda r: f"{r.getrandbits(64):016x}",
    "key": lambda r: "".join(r.choices(string.ascii_letters + string.digits + "+/", k=44)) + "=",
    "uuid": lambda r: "-".join(f"{r.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 4, 12)),
    "list": lambda r: str([r.randrange(6) for _ in range(r.randrange(2, 9))]),
}
FIXED = st.sampled_from([" total ", " at ", ": ", "(", ") ", " -> ", " x=", " then ", " of "])
TEMPLATES = st.lists(st.tuples(FIXED, st.sampled_from(sorted(FIELDS))), min_size=1, max_size=5)


@settings(derandomize=True)  # numbers may agree by chance in three runs
@given(TEMPLATES, st.integers(0, 2**32))
def test_an_honest_run_that_varies_as_the_original_does_fits(
    template: list[tuple[str, str]], seed: int
) -> None:
    def run(number: int) -> str:
        drawn = random.Random(seed * 10 + number)
        return "".join(f"{fixed}{FIELDS[name](drawn)}" for fixed, name in template) + " end"

    runs = [run(number) for number in range(3)]
    pattern = OutputPattern.of(runs)
    assert all(pattern.matches(one) for one in runs)
    assert pattern.matches(run(3)), (runs, pattern.text, run(3))
    assert not pattern.matches("anything")
    assert not pattern.matches(run(3).replace(" end", " else"))


@pytest.mark.parametrize("odd", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_only_a_line_feed_ends_a_line(odd: str) -> None:
    pattern = OutputPattern.of([f"a{odd}b\nc\n"])
    assert pattern.matches(f"a{odd}b\nc")
    assert not pattern.matches("a\nb\nc")
    assert not OutputPattern.of(["a\nb"]).matches(f"a{odd}b")
    varying = OutputPattern.of([f"n = 1{odd}end", f"n = 2{odd}end"])
    assert varying.matches(f"n = 3{odd}end")
    assert not varying.matches("n = 3\nend")


@pytest.mark.parametrize(
    ("original", "output", "same"),
    [("a", "a\n", True), ("a\n", "a", True), ("", "", True), ("", "\n", False), ("a\n", "a\n\n", False)],
)
def test_only_the_last_line_feed_does_not_count(original: str, output: str, same: bool) -> None:
    assert OutputPattern.of([original]).matches(output) is same
