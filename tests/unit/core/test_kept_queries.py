"""Kept queries: what the file says, and that a query that can't be used costs no other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from gistpoint.core.errors import SettingsError, UserError
from gistpoint.core.kept_queries import FILE, forget_query, keep_query, kept_queries
from gistpoint.core.queries import QueryField, QueryLanguage
from gistpoint.core.query_grammar import KeptQueries, QueryError

GOOD = 'fine = "b"\n'
BROKEN = {
    "a query without quotes": ("bad = looped and not edited", "bad"),
    "a number": ("bad = 5", "bad"),
    "a list": ('bad = ["a"]', "bad"),
    "no value": ("bad =", "bad"),
    "an open quote": ('bad = "a', "bad"),
    "no name": ("only words", "line 2"),
    "a name that can't be written": ('"1st query" = "a"', "1st query"),
    "a table": ("[more]", "more"),
    "a name twice": ('fine = "c"', "fine"),
    "nested without end": ("bad = " + "[" * 5000, "bad"),
}
LANGUAGE: list[QueryField[str]] = [QueryField("name", texts=lambda row, key: (row,))]


def keep(config: Path, name: str, query: str) -> None:
    keep_query(config, name, query, lambda text, kept: QueryLanguage(LANGUAGE, kept).query(text))


@pytest.mark.parametrize("kind", BROKEN)
def test_a_line_that_cant_be_used_costs_only_its_own_query(tmp_path: Path, kind: str) -> None:
    line, name = BROKEN[kind]
    (tmp_path / FILE).write_text(f"{GOOD}{line}\n")
    kept = kept_queries(tmp_path)
    assert kept.texts == {"fine": "b"}
    assert set(kept.faults) == {name}
    assert kept.faults[name].startswith("Line 2 of queries.toml ")
    keep(tmp_path, "new", "c")
    assert kept_queries(tmp_path).texts == {"fine": "b", "new": "c"}
    assert line in (tmp_path / FILE).read_text(), "what is broken stays until somebody corrects it"
    if name not in kept.texts:
        (now_named,) = kept_queries(tmp_path).faults
        forget_query(tmp_path, now_named)
        assert kept_queries(tmp_path) == KeptQueries({"fine": "b", "new": "c"})


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029", "\x0c", "\x1c", "\x7f", "\r", "\n"])
def test_a_query_is_kept_whatever_signs_it_has(tmp_path: Path, sign: str) -> None:
    query = f'"a{sign}b"'
    keep(tmp_path, "odd", query)
    assert kept_queries(tmp_path) == KeptQueries({"odd": query})
    with (tmp_path / FILE).open("a") as file:
        file.write("bad =\n")
    assert kept_queries(tmp_path).texts == {"odd": query}


def test_a_file_that_cant_be_read_costs_no_query_without_a_name(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    kept = kept_queries(tmp_path)
    assert kept.unreadable
    language = QueryLanguage(LANGUAGE, kept)
    assert language.query("b").matches("abc")
    with pytest.raises(QueryError, match=r"@x can't be used: .*queries\.toml"):
        language.query("@x")
    with pytest.raises(SettingsError):
        keep(tmp_path, "x", "a")


WRITTEN = """# Runs that cost too much

slow = "time>1:00"   # "an hour" is 1:00:00
  'loops' = 'looped # twice'
long = '''
steps > 100
and not edited'''  # two lines
# broken: bad
bad = 5
slow = "again"
# the end"""


@pytest.mark.parametrize(
    ("before", "after", "name", "query"),
    [
        ('slow = "time>1:00"   #', 'slow = "a \\"#\\""   #', "slow", 'a "#"'),
        ("  'loops' = 'looped # twice'\n", 'loops = "b"\n', "loops", "b"),
        ("long = '''\nsteps > 100\nand not edited'''  #", 'long = "b"  #', "long", "b"),
        ("bad = 5\n", 'bad = "b"\n', "bad", "b"),
        ("# the end", '# the end\nnew = "b"', "new", "b"),
        ("  'loops' = 'looped # twice'\n", "", "loops", None),
        ("long = '''\nsteps > 100\nand not edited'''  # two lines\n", "", "long", None),
        ("bad = 5\n", "", "bad", None),
        ('slow = "time>1:00"   # "an hour" is 1:00:00\n', "", "slow", None),
    ],
)
def test_what_a_user_wrote_around_a_query_stays(
    tmp_path: Path, before: str, after: str, name: str, query: str | None
) -> None:
    (tmp_path / FILE).write_text(WRITTEN)
    assert kept_queries(tmp_path).texts["long"] == "steps > 100\nand not edited"
    assert before in WRITTEN
    if query is None:
        forget_query(tmp_path, name)
    else:
        keep(tmp_path, name, query)
    expected = WRITTEN.replace(before, after, 1)
    if name == "slow":  # the second query of this name can't be used, and goes with the first
        expected = expected.replace('slow = "again"\n', "")
    assert (tmp_path / FILE).read_text() == f"{expected}\n"
    assert kept_queries(tmp_path).texts.get(name) == query


CIRCLES = {
    "itself": ({"a": "b @a"}, "@a", "Character 1: in @a: Character 3: @a names @a."),
    "two": (
        {"a": "@b", "b": "(x or @a)"},
        "@a",
        "Character 1: in @a: Character 1: in @b: Character 7: @a names @b, which names @a.",
    ),
    "a circle that another leads to": (
        {"c": "-@a", "a": "@b", "b": "@a"},
        "(@c)",
        "Character 2: in @c: Character 2: in @a: Character 1: in @b: Character 1: @a names @b, which names @a.",
    ),
}


@pytest.mark.parametrize("kind", CIRCLES)
def test_queries_that_name_one_another_are_refused(tmp_path: Path, kind: str) -> None:
    texts, asked, said = CIRCLES[kind]
    language = QueryLanguage(LANGUAGE, KeptQueries({**texts, "fine": "b"}))
    with pytest.raises(QueryError) as refused:
        language.query(asked)
    assert refused.value.message == said
    assert language.query("@fine or b").matches("abc")
    assert language.query("@fine and @fine").matches("abc"), "twice is no circle"


def test_a_query_is_not_kept_if_it_would_name_itself(tmp_path: Path) -> None:
    keep(tmp_path, "a", "x")
    keep(tmp_path, "b", "@a or y")
    for query in ("@a", "@b", "not (z @b)"):
        with pytest.raises(QueryError, match="@a names"):
            keep(tmp_path, "a", query)
    assert kept_queries(tmp_path).texts == {"a": "x", "b": "@a or y"}
    with pytest.raises(UserError, match="No query is kept as 'c'"):
        forget_query(tmp_path, "c")


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ("x (", "Character 3: in @bad: Character 4: expected a condition"),
        ("nome:x", "Character 3: in @bad: Character 1: There is no field nome."),
        ("name>x", "Character 3: in @bad: Character 1: The field name contains no numbers."),
        ("@gone", "Character 3: in @bad: Character 1: no query is kept as 'gone'"),
    ],
)
def test_an_error_in_a_kept_query_names_it(inner: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        QueryLanguage(LANGUAGE, KeptQueries({"bad": inner})).query("(-@bad)")
    assert refused.value.message.startswith(said)


def test_queries_that_are_kept_and_forgotten_at_the_same_time_are_not_lost(tmp_path: Path) -> None:
    for number in range(4):
        keep_query(tmp_path, f"old{number}", "steps>1", lambda text, kept: None)

    def change(number: int) -> None:
        for each in range(5):
            keep_query(tmp_path, f"q{number}-{each}", "steps>1", lambda text, kept: sleep(0.001))
        forget_query(tmp_path, f"old{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(4)))
    assert set(kept_queries(tmp_path).texts) == {
        f"q{number}-{each}" for number in range(4) for each in range(5)
    }
