import inspect
import textwrap
import typing

from pygments.lexers import PythonLexer

from gistpoint.tui.widgets.syntax import KINDS, tokens_by_line
from gistpoint.tui.widgets.text_lines import TextLines


def kinds(text: str, language: str = "python") -> list[list[tuple[str, str]]]:
    lines = TextLines(text)
    tokens = [line for chunk in tokens_by_line(lines, language) for line in chunk]
    return [
        [(lines[i][t[p] : t[p + 1]], KINDS[t[p + 2]]) for p in range(0, len(t), 3)]
        for i, t in enumerate(tokens)
    ]


def test_a_docstring_goes_on_over_lines() -> None:
    first, second, third, _last = kinds('def f():\n    """a\n\n    b"""\n')
    assert ("def", "keyword") in first
    assert ("f", "function") in first
    assert second == [('"""a', "docstring")]
    assert third == []


def test_every_token_of_real_modules_has_its_place() -> None:
    for module in (textwrap, typing):
        source = inspect.getsource(module)
        found = [part for line in kinds(source) for part, kind in line if kind == "comment"]
        expected = [v for _, t, v in PythonLexer().get_tokens_unprocessed(source) if "Comment" in str(t)]
        assert "".join(found) == "".join(expected).replace("\n", "")
        assert len(kinds(source)) == len(TextLines(source))


def test_unknown_languages_have_no_colour() -> None:
    assert kinds("x", "no such language") == []


def test_lexing_stops_when_it_is_told_to() -> None:
    source = "x = 1\n" * 100_000
    chunks = sum(1 for _ in tokens_by_line(TextLines(source), "python", lambda: True))
    assert chunks < 50
