from __future__ import annotations

import random

from gistpoint.tui.widgets.code_document import CodeDocument

TEXT = 'def f(a, b=[1, (2)]):\n    """Doc (."""\n    x = "é(" + g(1)[0]  # c (\n    return self.len, len(x), None\n'


def kinds(document: CodeDocument, row: int) -> dict[str, str]:
    line = document.get_line(row)
    return {line[start:end]: kind for start, end, kind in document.spans(row)}


def test_words_strings_and_comments_have_their_kinds() -> None:
    document = CodeDocument(TEXT)
    assert kinds(document, 0) == {"def": "keyword", "f": "function", "1": "number", "2": "number"}
    assert kinds(document, 1) == {'"""Doc (."""': "docstring"}
    assert kinds(document, 2) == {'"é("': "string", "1": "number", "0": "number", "# c (": "comment"}
    assert kinds(document, 3) == {
        "return": "keyword",
        "self": "builtin",
        "len": "builtin",
        "None": "constant",
    }


def test_a_string_over_several_lines_ends_where_it_ends() -> None:
    document = CodeDocument("x = f'''a # b\n# c\n\\'''' # d\ny = rb'e' 'f\nz\n\"\"\"\ng")
    assert [[span for span in document.spans(row) if span[2] != "number"] for row in range(7)] == [
        [(4, 13, "string")],
        [(0, 3, "string")],
        [(0, 5, "string"), (6, 9, "comment")],
        [(4, 9, "string"), (10, 12, "string")],
        [],
        [(0, 3, "docstring")],
        [(0, 1, "docstring")],
    ]


def test_brackets_have_partners_but_not_in_strings_and_comments() -> None:
    document = CodeDocument(TEXT)
    assert [document.partner((0, column)) for column in (5, 11, 15)] == [(0, 19), (0, 18), (0, 17)]
    assert document.partner((0, 19)) == (0, 5)
    assert [document.partner(place) for place in ((1, 11), (2, 10), (2, 28), (0, 0))] == [None] * 4
    assert document.partner((2, 19)) == (2, 21)
    assert CodeDocument("(\n]").partner((0, 0)) is None
    assert CodeDocument("(\n[\n]\n)").partner((3, 0)) == (0, 0)


def test_an_edited_text_looks_like_one_that_was_loaded() -> None:
    chance = random.Random(3)
    document = CodeDocument(TEXT)
    for _ in range(200):
        document.spans(chance.randrange(document.line_count))
        document.get_size(4)
        places = []
        for _ in range(2):
            row = chance.randrange(document.line_count)
            places.append((row, chance.randint(0, len(document.get_line(row)))))
        document.replace_range(
            places[0], places[1], chance.choice(["", "(", "\n", '"', "é", "\n    x = '''\n", "# c\n", "]"])
        )
        loaded = CodeDocument(document.text)
        assert [document.spans(row) for row in range(document.line_count)] == [
            loaded.spans(row) for row in range(document.line_count)
        ]
        assert document.get_size(4) == loaded.get_size(4)
