"""The query language: its grammar, its errors with their places, and queries over rows."""

from __future__ import annotations

from contextlib import suppress
from math import nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gistpoint.core.queries import QueryField, QueryLanguage, known_numbers, number_of
from gistpoint.core.query_grammar import (
    And,
    Expression,
    Grammar,
    Kept,
    KeptQueries,
    Not,
    Or,
    QueryError,
    Term,
    Word,
    parse,
)

GRAMMAR = Grammar(
    is_field=lambda name: name in ("steps", "model", "error", "tool", "meta", "time"),
    is_counted=lambda name: name == "tool",
    is_dotted=lambda name: name == "meta",
    kept=KeptQueries({"slow": "steps>20", "both": "@slow not edited", "round": "@round", "bad": "x ("}),
)


def read(text: str) -> Expression:
    return parse(text, GRAMMAR)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("", And()),
        ("a b", And((Word("a"), Word("b")))),
        ("a and b", And((Word("a"), Word("b")))),
        ("a b or c", Or((And((Word("a"), Word("b"))), Word("c")))),
        ("a (b OR c)", And((Word("a"), Or((Word("b"), Word("c")))))),
        ("not a b", And((Not(Word("a")), Word("b")))),
        ("-a -b", And((Not(Word("a")), Not(Word("b"))))),
        ("-(a b)", Not(And((Word("a"), Word("b"))))),
        ("not(a)", Not(Word("a"))),
        ('"a or b"', Word("a or b", quoted=True)),
        (r'"a \"b\" \\ c\d"', Word(r'a "b" \ c\d', quoted=True)),
        ("'it is'", Word("it is", quoted=True)),
        ("don't", Word("don't")),
        ("f(x) g(y", And((Word("f(x)"), Word("g(y")))),
        ("(f(x) or a)", Or((Word("f(x)"), Word("a")))),
        ("a::b numpy==2 19:54", And((Word("a::b"), Word("numpy==2"), Word("19:54")))),
        ("steps>20", Term("steps", ">", "20")),
        ("steps >= 20", Term("steps", ">=", "20")),
        ("steps > 2M time > 1.5k", And((Term("steps", ">", "2M"), Term("time", ">", "1.5k", at=11)))),
        ("model=10h", Term("model", "=", "10h")),
        ("model:", Term("model", ":", "")),
        ("(model:) x", And((Term("model", ":", ""), Word("x")))),
        ("model: or x", Or((Term("model", ":", ""), Word("x")))),
        ("\u201ctimed out\u201d", Word("timed out", quoted=True)),
        ("error:\u201etimed out\u201c", Term("error", ":", "timed out", quoted=True)),
        ("\u2018it is\u2019 \u00aba b\u00bb", And((Word("it is", quoted=True), Word("a b", quoted=True)))),
        ("don\u2019t", Word("don\u2019t")),
        ("steps\u226520 steps \u2264 3", And((Term("steps", ">=", "20"), Term("steps", "<=", "3")))),
        ("tool:bash\u2260 2", Term("tool", "!=", "2", "bash", counted=True)),
        ("error in a parser", And((Word("error"), Word("in"), Word("a"), Word("parser")))),
        ("5 min", And((Word("5"), Word("min")))),
        ("\u2013", Word("\u2013")),
        ('error:"Timeout Error"', Term("error", ":", "Timeout Error", quoted=True)),
        ("tool:bash", Term("tool", ":", "bash")),
        ("tool:bash > 5", Term("tool", ">", "5", "bash", counted=True)),
        ("tool:bash>5", Term("tool", ">", "5", "bash", counted=True)),
        ('tool:"a b"!=1', Term("tool", "!=", "1", "a b", counted=True)),
        ("meta.run.id:7", Term("meta", ":", "7", "run.id")),
        ("meta.seed > 3", Term("meta", ">", "3", "seed")),
        *(
            (f"meta.seed{sign}3", Term("meta", plain, "3", "seed"))
            for sign, plain in {"\u2264": "<=", "\u2265": ">=", "\u2260": "!=", ">": ">"}.items()
        ),
        ("app.py:12", Word("app.py:12")),
        ("@slow", Kept("slow", Term("steps", ">", "20"))),
        ("a@b", Word("a@b")),
        ("android oral notes", And((Word("android"), Word("oral"), Word("notes")))),
        ("-", Word("-")),
        ("--5", Not(Not(Word("5")))),
    ],
)
def test_a_query_is_read_as(text: str, expression: Expression) -> None:
    assert read(text) == expression


@pytest.mark.parametrize(
    ("text", "character", "said"),
    [
        ("a (b or", 8, "expected a condition after 'or'"),
        ("a (b", 3, "not closed"),
        ("a or", 5, "after 'or'"),
        ("or a", 1, "not 'or'"),
        ("a and and b", 7, "not 'and'"),
        ("not", 4, "after 'not'"),
        ("a )", 3, "was not opened"),
        ("()", 2, "in parentheses, not ')'"),
        ('x "a', 3, "quote is not closed"),
        ("steps>", 7, "expected a number"),
        ("tool:bash >", 12, "expected a number"),
        ("a @slaw", 3, "no query is kept as 'slaw'"),
        ("@bad", 1, "in @bad: Character 4: expected a condition"),
        ("@round", 1, "in @round: Character 1: @round names @round"),
        ("(" * 60, 51, "deep"),
    ],
)
def test_an_error_names_the_place_and_what_was_expected(text: str, character: int, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        read(text)
    assert refused.value.message.startswith(f"Character {character}: ")
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "character", "hint"),
    [
        ("!edited", 1, "Write not edited"),
        ("a ! edited", 3, "Write not"),
        ("-a \u2212edited", 4, "Write -edited"),
        ("\u2013edited", 1, "Write -edited"),
        ("a && b", 3, "Write and"),
        ("a || b", 3, "Write or"),
        ("a | b", 3, "Write or"),
        ("a & b", 3, "Write and"),
        ("steps > 5 < 10", 11, "Write steps>5 and steps<10"),
        ("steps>5<10", 1, "Write steps>5 and steps<10"),
        ("tool:bash>5<10", 1, "Write tool:bash>5 and tool:bash<10"),
        ("5<steps<10", 1, "Write steps>5"),
        ("5 < steps", 3, "Such as steps>20"),
        ("words > 20", 7, "Such as steps>20"),
        *(
            (f"tool:bash:{sign}5", 1, f"Write tool:bash{sign}5.")
            for sign in ("<", "<=", ">", ">=", "=", "!=")
        ),
        ("nome = x", 6, "Such as steps>20 or model=name"),
        ("steps == 5", 7, "Write ="),
        ("steps==5", 1, "Write steps=5"),
        ("steps=>5", 1, "Write steps>=5"),
        ("steps =< 5", 1, "Write steps<=5"),
        ("steps: > 5", 1, "Write steps>5"),
        ("error: TimeoutError", 1, "Write error:TimeoutError"),
        ("tool: bash", 1, "Write tool:bash"),
        ("error :x", 7, "Write error:x"),
        ("steps between 5 and 10", 7, "Write steps>=5 and steps<=10"),
        ("model LIKE x", 7, "Write model:text"),
        ("steps > 1 h", 11, "Write a time as 1:30"),
        *((f"time > {value}", 1, "Write a time as 1:30") for value in ("10min", "10m", "1.5M", "90s", "2h")),
        ("time=10m", 1, "Write a time as 1:30"),
        ("a)", 2, "put the text in quotes"),
        ("@ slow", 1, "Write @name"),
        ("steps >", 8, "Such as 20"),
    ],
)
def test_what_other_languages_write_is_refused_with_what_to_write(
    text: str, character: int, hint: str
) -> None:
    with pytest.raises(QueryError) as refused:
        read(text)
    assert refused.value.message.startswith(f"Character {character}: ")
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("error: TimeoutError", "Character 1: there is a space after error:."),
        ("error :x", "Character 7: there is a space before the colon."),
        ("tool:bash:>5", "Character 1: there is a colon before >."),
    ],
)
def test_a_sign_in_the_wrong_place_is_named(text: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        read(text)
    assert refused.value.message == message


PIECES = st.sampled_from(
    [
        *"()\"'-@:<>=!&|\\. \u201c\u201d\u2265\u2013",
        " and ",
        " or ",
        "not ",
        "steps",
        "tool:",
        "meta.",
        "meta.a.b",
        "@slow",
        "a",
        "5",
        "::",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=25).map("".join)


@given(TEXTS | st.text(max_size=60))
@example("-not -a")
@example("(-) - )")
@example("tool:x!=1 or tool:")
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    with suppress(QueryError):
        read(text)


FIELDS: list[QueryField[dict[str, object]]] = [
    QueryField(
        "name", texts=lambda row, key: (str(row.get("name", "")),),
        words={"big": lambda row: row.get("n", 0) == 9},
        own_words={"bc": lambda row: row.get("n", 0) == 1},
    ),
    QueryField("n", numbers=lambda row, key: known_numbers(row.get("n"))),  # type: ignore[arg-type]
    QueryField("text", is_content=True, has_words=False),
    QueryField("error", is_content=True, has_words=False),
    QueryField("errors", numbers=lambda row, key: known_numbers(row.get("n")), has_words=False),  # type: ignore[arg-type]
]  # fmt: skip
ROWS: list[dict[str, object]] = [{"name": "ab", "n": 1}, {"name": "bc", "n": 9}, {"name": "big"}]


def test_a_number_of_what_is_searched_is_offered() -> None:
    with pytest.raises(QueryError) as refused:
        QueryLanguage(FIELDS).query("error > 3")
    assert refused.value.hint == 'Write error:"3", or errors>5 for their number.'
    with pytest.raises(QueryError) as refused:
        QueryLanguage(FIELDS).query("text > 3")
    assert refused.value.hint == 'Write text:"3".'


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("b", [0, 1, 2]),
        ("big", [1]),
        ('"big"', [2]),
        ("not big", [0, 2]),
        ("n>1", [1]),
        ("-n>1", [0, 2]),
        ("n!=1", [1]),
        ("n<5 or name:c", [0, 1]),
        ("not (n<5 or name:c)", [2]),
        ("name:big", [1]),
        ("name:BIG", [1]),
        ("name=big", [1]),
        ('name="big"', [1]),
        ("name!=big", [0, 2]),
        ('name:"big"', [2]),
        ("bc", [1]),
        ("name:bc", [0]),
        ("not name:bc", [1, 2]),
        ("name!=bc", [1, 2]),
    ],
)
def test_a_query_finds_rows(text: str, numbers: list[int]) -> None:
    query = QueryLanguage(FIELDS).query(text)
    assert [number for number, row in enumerate(ROWS) if query.matches(row)] == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("k=2", [0, 1]),
        ("k=1", [0]),
        ("k!=1", [1]),
        ("k!=7", [0, 1]),
        ("k>2", [0]),
        ("k<2", [0]),
        ("k>=3", [0]),
        ("not k=1", [1, 2, 3]),
        ("not k!=1", [0, 2, 3]),
    ],
)
def test_of_several_numbers_one_has_to_fit(text: str, numbers: list[int]) -> None:
    rows = [{"k": [1.0, 2.0, 3.0]}, {"k": [nan, 2.0]}, {"k": [nan]}, {"k": []}]
    field: QueryField[dict[str, list[float]]] = QueryField("k", numbers=lambda row, key: row["k"])
    query = QueryLanguage([field]).query(text)
    assert [number for number, row in enumerate(rows) if query.matches(row)] == numbers


def test_content_is_asked_for_only_where_it_decides() -> None:
    query = QueryLanguage(FIELDS).query('n>1 and (name:c or text:"x y")')
    assert query.content == (("text", "x y"),)
    assert [query.decide(row, lambda row, term: None) for row in ROWS] == [False, True, False]
    query = QueryLanguage(FIELDS).query("text:x or big")
    assert [query.decide(row, lambda row, term: None) for row in ROWS] == [None, True, None]
    assert [query.decide(row, lambda row, term: row is ROWS[2]) for row in ROWS] == [False, True, True]
    assert not query.matches(ROWS[0])


def test_an_unknown_field_is_refused_with_its_place() -> None:
    with pytest.raises(QueryError) as refused:
        QueryLanguage(FIELDS).query("a nam>1 nome:b")
    assert refused.value.message.startswith("Character 3: The field name contains no numbers")
    with pytest.raises(QueryError) as refused:
        QueryLanguage(FIELDS).query("a nome:b")
    assert refused.value.message == "Character 3: There is no field nome."
    assert "name" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("text=words", 'Write text:"words"'),
        ("text>5", 'Write text:"5"'),
        ("big=true", "Write big, or not big"),
        ("big:yes", "Write big, or not big"),
        ("n>x", "Write n>20"),
        ("n>0,5", "Write n>0.5."),
        ("n<=$1,25", "Write n<=$1.25."),
        *((f"n:{sign}20", f"Write n{sign}20.") for sign in ("<", "<=", ">", ">=", "=", "!=", "\u2265")),
    ],
)
def test_a_field_that_is_asked_wrongly_is_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(QueryError) as refused:
        QueryLanguage(FIELDS).query(text)
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", 1234.0),
        ("1,234.5k", 1_234_500.0),
        ("1,234,567", 1_234_567.0),
        ("1234", 1234.0),
        ("-.5", -0.5),
        ("1:30", 90.0),
        ("0,5", None),
        ("1,23", None),
        ("12,34,567", None),
        (",5", None),
    ],
)
def test_a_comma_only_groups_thousands(text: str, number: float | None) -> None:
    assert number_of(text) == number
