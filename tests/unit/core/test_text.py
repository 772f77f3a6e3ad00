"""External text is drawn code point by code point, and none of it acts."""

from __future__ import annotations

import unicodedata

import pytest
from hostile import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.canonical import canonical_json, sha256_of_json, sha256_of_text
from gistpoint.core.text import (
    bounded,
    bounded_pieces,
    last_lines,
    markdown_line,
    visible,
    visible_line,
    whole_number,
)

ANY_TEXT = st.text(st.characters() | st.sampled_from("\0\x1b\u202e\u2066\ufeff\ud800\r\n\t\u2028\x9b\xad"))


@given(ANY_TEXT)
def test_nothing_is_left_that_acts_on_a_terminal_or_hides(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    for before, after in zip(text, shown, strict=True):
        if before in "\n\t":
            assert after == before
        else:
            assert unicodedata.category(after) not in {"Cc", "Cs", "Zl", "Zp"}
            assert unicodedata.bidirectional(after) not in {
                "LRE",
                "RLE",
                "LRO",
                "RLO",
                "PDF",
                "LRI",
                "RLI",
                "FSI",
                "PDI",
            }


@given(ANY_TEXT)
def test_one_line_stays_one_line(text: str) -> None:
    shown = visible_line(text)
    assert len(shown) == len(text)
    assert len((shown + ".").splitlines()) == 1


@pytest.mark.parametrize("text", ["list[int]", "[/x]", "plain", "[red]no[/red]", "größe", "日本"])
def test_ordinary_text_and_markup_stay_as_they_are(text: str) -> None:
    assert visible(text) == text


def test_escape_sequence_is_shown() -> None:
    assert visible("\x1b[31mred\0\u202e") == "␛[31mred␀⇄"


@given(st.text(max_size=300), st.integers(1, 100))
def test_bounded_text_keeps_both_ends_and_says_what_is_missing(text: str, characters: int) -> None:
    cut = bounded(text, characters)
    if len(text) <= characters:
        assert cut == text
    else:
        assert cut.startswith(text[: characters * 2 // 3])
        assert f"{len(text) - characters} characters" in cut
        tail = characters - characters * 2 // 3
        assert cut.endswith(text[len(text) - tail :])


@given(st.lists(st.text(max_size=40), max_size=12), st.integers(1, 100))
def test_a_text_in_pieces_is_bounded_like_the_whole(pieces: list[str], characters: int) -> None:
    assert bounded_pieces(iter(pieces), characters) == bounded("".join(pieces), characters)


def test_canonical_json_has_one_spelling() -> None:
    assert canonical_json({"b": [1, 2.5, None], "a": "é\ud800"}) == '{"a":"\\u00e9\\ud800","b":[1,2.5,null]}'
    assert sha256_of_json({"a": 1, "b": 2}) == sha256_of_json({"b": 2, "a": 1})
    assert len(sha256_of_text("\ud800")) == 64
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 19, 10**19 - 1),
        ("9" * 20, None),
        ("9" * 5_000, None),
        ("", None),
        ("-1", None),
        ("1_0", None),
        (" 1", None),
        ("1²", None),
        ("१", None),
    ],
)
def test_only_a_few_plain_digits_are_a_number(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_the_last_lines_of_an_error_are_those_that_pytest_marks() -> None:
    assert last_lines(
        "a.py:3: in <module>\n    import x\nE   ModuleNotFoundError: No module named 'x'\n"
    ) == ("ModuleNotFoundError: No module named 'x'")
    assert last_lines("one\n\ntwo\nthree\nfour\n") == "two\nthree\nfour"
    assert last_lines("") == ""


_DRAWN = frozenset({
    *range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD,
})  # fmt: skip
"""The visible format characters: signs that enclose numbers, and abbreviations."""
_STYLES = frozenset({0xFE0E, 0xFE0F})


def test_no_character_that_is_not_drawn_stays_invisible() -> None:
    """Checked against `unicodedata`: format characters, and characters without a glyph."""
    blank = [
        0x034F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        0x3164,
        0xFFA0,
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
    formats = [code for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"]
    left = {code for code in (*formats, *blank) if visible(chr(code)) == chr(code)}
    assert left == _DRAWN | _STYLES


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", r"\<script\>alert(1)\</script\>"),
        ("[x](javascript:alert(1))", r"\[x\](javascript:alert(1))"),
        ("![x](http://example.invalid/x)", r"\!\[x\](http://example.invalid/x)"),
        ("&#60;b>", r"\&\#60;b\>"),
        (r"\input{/etc/passwd} \write18{ls}", r"\\input\{/etc/passwd\} \\write18\{ls\}"),
        ("$\\frac{a}{b}$", r"\$\\frac\{a\}\{b\}\$"),
        ("`code` *bold* _it_ ~~gone~~ a^2^ | c", r"\`code\` \*bold\* \_it\_ \~\~gone\~\~ a\^2\^ \| c"),
        ("@doe99 says", r"\@doe99 says"),
        ("- item", r"\- item"),
        ("+ item", r"\+ item"),
        ("---", r"\---"),
        ("===", r"\==="),
        (": definition", r"\: definition"),
        ("1. one", r"1\. one"),
        ("12) twelve", r"12\) twelve"),
        ("2024. A study", r"2024\. A study"),
        ("123456789) x", r"123456789\) x"),
        ("1234567890. x", "1234567890. x"),
        (" - x", r"\- x"),
        ("    1. code ", r"1\. code"),
        ("-5 and 1.5 and a-b", "-5 and 1.5 and a-b"),
        ("a\n# b", "a␊\\# b"),
        ("\x1b[31mred", "␛\\[31mred"),
    ],
)
def test_a_line_of_markdown_is_drawn_as_it_stands(text: str, shown: str) -> None:
    assert markdown_line(text) == shown


def test_a_line_of_markdown_is_read_back_by_commonmark() -> None:
    """Checked against `markdown-it-py`, whose rendering has to equal the text."""
    from html import unescape

    from markdown_it import MarkdownIt

    for text in (
        *HOSTILE,
        "1. x",
        "- x",
        "<b>x</b>",
        "a *b* `c`",
        "---",
        "===",
        "+ x",
        "x | y",
        "2024. A study",
        " - x",
        "    code  ",
    ):
        if not text.isprintable():
            continue
        drawn = MarkdownIt("gfm-like", {"linkify": False}).render(markdown_line(text))
        assert unescape(drawn.removeprefix("<p>").removesuffix("</p>\n")) == visible_line(text).strip(" "), (
            text
        )
