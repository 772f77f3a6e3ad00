"""Exports are complete and parsable, and never let a run's text act as markup or control codes."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from recorded_runs import make_all

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.errors import UserError
from gistpoint.core.text import visible
from gistpoint.sessions.exports.html.marking import code_lines, file_lines, text_lines
from gistpoint.sessions.exports.registry import NAMES, exporter
from gistpoint.sessions.exports.whole_texts import whole_text, whole_value
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.rendering import UNANSWERED, step_lines, unanswered
from gistpoint.tui.screens.review.step_view import compose

HOSTILE = "<script>alert(1)</script> ```` \x1b[2J [red] \u202e & <b>"


def exported(name: str, path: Path) -> str:
    return "".join(exporter(name)(open_run(path)))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": HOSTILE, "arguments": json.dumps({"command": HOSTILE})},
    }
    messages = [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": HOSTILE},
    ]
    path = tmp_path / "run"
    path.write_text(json.dumps({"messages": messages, "instance_id": HOSTILE}))
    return path


def test_every_format_is_written_in_every_other(tmp_path: Path) -> None:
    make_all(tmp_path)
    for listed in list_runs([tmp_path]):
        for name in NAMES:
            assert exporter(name)
            text = "".join(exporter(name)(open_run(listed.name)))
            assert text.endswith("\n")
            if name in ("atif", "chat"):
                json.loads(text)
            elif name == "cast":
                assert all(json.loads(line) for line in physical_lines(text))


def test_chat_reads_back_with_the_same_calls(hostile: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.write_text(exported("chat", hostile))
    first, second = list(open_run(hostile).steps()), list(open_run(again).steps())
    assert [(s.text, s.calls, s.results) for s in second] == [(s.text, s.calls, s.results) for s in first]


LONG = "".join(f"line {number} of the file\n" for number in range(60_000))
"""A text that is cut while a run is read."""


def edits(arguments: dict[str, object], form: str) -> list[dict[str, object]]:
    """Return a conversation with one call, in the form of the API of OpenAI or of Anthropic."""
    if form == "openai":
        function = {"name": "Edit", "arguments": json.dumps(arguments)}
        reply: dict[str, object] = {"tool_calls": [{"id": "c", "type": "function", "function": function}]}
    else:
        reply = {"content": [{"type": "tool_use", "id": "c", "name": "Edit", "input": arguments}]}
    return [{"role": "user", "content": "go"}, {"role": "assistant", **reply}]


@pytest.mark.parametrize("form", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "a", "content": LONG},
        {"file_path": "a", "old_string": LONG, "new_string": "b"},
        {"file_path": "a", "edits": [{"old_string": "b", "new_string": LONG}]},
    ],
    ids=["whole", "replaced", "listed"],
)
def test_arguments_of_any_length_are_exported_whole(
    form: str, arguments: dict[str, object], tmp_path: Path
) -> None:
    path, again = tmp_path / "run", tmp_path / "again"
    path.write_text(json.dumps(edits(arguments, form)))
    chat = json.loads(exported("chat", path))
    assert json.loads(chat["messages"][1]["tool_calls"][0]["function"]["arguments"]) == arguments
    again.write_text(exported("atif", path))
    step = json.loads(again.read_text())["steps"][1]
    assert step["tool_calls"][0]["arguments"] == arguments
    recorded, document = open_run(path), open_run(again)
    assert [json.loads(whole_text(document, call.arguments)) for call in document.step(1).calls] == [
        arguments
    ]
    texts = [
        [(one.path, *(whole_value(run, text) for text in (one.old, one.new))) for one in run.step(1).edits]
        for run in (recorded, document)
    ]
    assert texts[0] == texts[1]


def test_html_and_markdown_hold_no_markup_of_the_run(hostile: Path) -> None:
    page = exported("html", hostile)
    assert page.count("<script") == page.count("</script") == 1
    assert "<b>" not in page
    assert "script-src 'sha256-" in unescape(page)
    assert page.count("&lt;script&gt;") >= 4
    text = exported("markdown", hostile)
    assert "\n`````text\n" in text
    assert "\n# \\<script\\>" in "\n" + text
    for written in (page, text, exported("cast", hostile)):
        assert "\x1b" not in written
        assert "\\u001b" not in written
        assert "\u202e" not in written


def test_images_are_on_the_page_once_and_only_if_they_are_images(tmp_path: Path) -> None:
    dot = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"dot" * 20).decode()
    large = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(2_000_001)).decode()
    markup = base64.b64encode(b"<svg onload='alert(1)'>" * 9).decode()
    given = [f"data:image/png;base64,{data}" for data in (dot, dot, large, markup)]
    said = [{"type": "image_url", "image_url": {"url": address}} for address in given]
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": dot}}
    path = tmp_path / "run"
    messages = [{"role": "user", "content": said}, {"role": "assistant", "content": "a dot"}]
    path.write_text(json.dumps({"messages": [*messages, {"role": "user", "content": [shot]}]}))
    page = exported("html", path)
    assert re.findall('<img src="([^"]+)"', page) == [f"data:image/png;base64,{dot}"]
    assert 'the image of <a href="#step-1">step 1</a>' in page
    assert "[image: image/png, 2,000,0" in page
    assert markup not in page


def test_lines_of_a_page_are_those_of_the_text() -> None:
    head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ def f():\n"
    diff = f"{head} def f():\n-    return <1>\n+    return '2'\nafter"
    code = "```python\ndef f(a):\n    '''two\n    lines'''\n\n```\n```\nnone"
    for text in (
        HOSTILE,
        diff,
        code,
        "",
        "\n\n",
        "```python\n" * 50,
        "@@ -1,9 +1,9 @@",
        '     1→import a\n     2→x = "b"\n',
    ):
        for lines in (
            text_lines(text),
            file_lines(text, ".py"),
            code_lines(visible(text).split("\n"), "json"),
        ):
            assert unescape(re.sub("<[^>]*>", "", "\n".join(lines))) == visible(text)
    assert [line[:23] for line in text_lines(diff)[5:7]] == [
        '<code><span class="gd">',
        '<code><span class="gi">',
    ]
    assert text_lines(code)[1].startswith('<code><span class="k">def</span>')


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UserError, match="There is no export format 'pdf'") as caught:
        exporter("pdf")
    assert "markdown" in caught.value.hint


def test_a_call_without_a_result_says_so_everywhere(tmp_path: Path) -> None:
    calls = [
        {"id": id, "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
        for id in "cd"
    ]
    submit = {"id": "e", "type": "function", "function": {"name": "submit", "arguments": "{}"}}
    answer = {"role": "tool", "tool_call_id": "d", "content": "a.py"}
    told = [
        {"role": "user", "content": "Fix"},
        {"role": "assistant", "content": "I", "tool_calls": [*calls, submit]},
        answer,
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"messages": told}))
    document = open_run(path)
    document.build()
    step = document.step(1)
    assert unanswered(step) == {0}
    assert unanswered(replace(step, results=(replace(step.results[0], call_id=""),))) == {1}
    for text in (
        "\n".join(step_lines(document, step)),
        *(exported(name, path) for name in ("markdown", "html")),
    ):
        assert text.count(UNANSWERED) == 1
        assert text.index("result c") < text.index(UNANSWERED)
    assert compose(step).text.count(UNANSWERED) == 1
