import errno
import random
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from screens.settling import text_of, until
from shown_screen import Stage
from textual import events
from textual.pilot import Pilot

from gistpoint.tui.external_editor import ExternalEditorError
from gistpoint.tui.screens.editing_pane import state_words
from gistpoint.tui.widgets.function_editor import FunctionEditor


class Heard(Stage):
    def __init__(self, widget: FunctionEditor) -> None:
        super().__init__(widget)
        self.heard: list[tuple[str, str]] = []

    def on_function_editor_edited(self, message: FunctionEditor.Edited) -> None:
        self.heard.append((message.buffer, message.text))

    @contextmanager
    def suspend(self) -> Iterator[None]:
        yield


async def test_edits_are_reported_soon_and_at_once_on_request() -> None:
    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a.py::f", "")
        editor.focus()
        await pilot.press("x", "y")
        await pilot.pause(1.0)
        assert app.heard[-1] == ("a.py::f", "xy")
        app.heard.clear()
        await pilot.press("z")
        editor.flush()
        editor.flush()
        await pilot.pause()
        assert app.heard == [("a.py::f", "xyz")]


async def test_another_buffer_reports_the_first_and_has_a_separate_history() -> None:
    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a", "")
        editor.focus()
        await pilot.press("x")
        editor.load_buffer("b", "def g():\n    pass\n")
        await pilot.press("ctrl+z")
        await pilot.pause(1.0)
        assert app.heard == [("a", "x")]
        assert editor.code == "def g():\n    pass\n"


async def test_tab_indents_shift_tab_outdents_and_undo_undoes() -> None:
    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a", "x")
        editor.focus()
        await pilot.press("tab")
        assert editor.code == "    x"
        await pilot.press("shift+tab")
        assert editor.code == "x"
        await pilot.press("ctrl+z")
        assert editor.code == "    x"


@pytest.mark.parametrize("keys", [["shift+down", "shift+down"], ["shift+down", "shift+down", "shift+end"]])
async def test_tab_moves_the_selected_lines_and_loses_none(keys: list[str]) -> None:
    editor = FunctionEditor()
    app = Heard(editor)
    text = "if x:\n\n    y\nz\n"
    async with app.run_test() as pilot:
        editor.load_buffer("a", text)
        editor.focus()
        await pilot.press(*keys, "tab")
        moved = "    if x:\n\n" + ("        y\n" if "shift+end" in keys else "    y\n") + "z\n"
        assert editor.code == moved
        await pilot.press("ctrl+z")
        assert editor.code == text
        await pilot.press("ctrl+y", "shift+tab")
        assert editor.code == text


def an_editor(folder: Path, body: str) -> str:
    script = folder / "my editor"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return f"'{script}' --wait"


async def test_the_users_own_editor_gets_and_gives_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "VISUAL", an_editor(tmp_path, 'printf "  # \\303\\244\\n" >> "$2"; stat -c %a "$2" > "$0.mode"')
    )
    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a", "x = '\x0c\x1b'\n")
        assert editor.edit_in_external_editor()
        await pilot.pause()
        assert editor.code == "x = '\x0c\x1b'\n  # ä\n"
        assert app.heard == [("a", editor.code)]
        assert (tmp_path / "my editor.mode").read_text() == "600\n"
        editor.undo()
        assert editor.code == "x = '\x0c\x1b'\n"


@pytest.mark.parametrize(
    ("body", "problem", "is_kept"),
    [
        ("exit 3", "ended with exit status 3. Your text here was not changed", False),
        ('echo lost > "$2"; exit 1', "The text that it saved is in", True),
        ('rm "$2"', "removed the file", False),
        ('rm "$2"; exit 1', "Your text here was not changed", False),
        ("printf '\\377' > \"$2\"", "not UTF-8", True),
        ('rm "$2"; ln -s "$2" "$2"', "can't be read", True),
        ('rm "$2"; mkdir "$2"; echo lost > "$2/a"', "can't be read", True),
        ('rm "$2"; mkdir "$2"; echo lost > "$2/a"; exit 1', "The text that it saved is in", True),
        ('rm "$2"; mkfifo "$2"', "can't be read", True),
    ],
)
async def test_an_editor_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, problem: str, is_kept: bool
) -> None:
    monkeypatch.setenv("VISUAL", an_editor(tmp_path, body))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    editor = FunctionEditor()
    async with Heard(editor).run_test():
        editor.load_buffer("a", "kept")
        with pytest.raises(ExternalEditorError, match=problem) as caught:
            editor.edit_in_external_editor()
        assert editor.code == "kept"
    left = [path for path in tmp_path.iterdir() if path.name.startswith("gistpoint-")]
    assert all(str(path) in str(caught.value) for path in left)
    assert bool(left) == is_kept


async def test_text_that_may_not_be_read_is_kept_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setenv("VISUAL", an_editor(tmp_path, 'echo edited > "$2"'))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("gistpoint.tui.external_editor.read_regular", refuse)
    editor = FunctionEditor()
    async with Heard(editor).run_test():
        editor.load_buffer("a", "begun")
        with pytest.raises(ExternalEditorError, match="can't be read: Permission denied") as caught:
            editor.edit_in_external_editor()
    [left] = [path for path in tmp_path.iterdir() if path.name.startswith("gistpoint-")]
    assert (left.read_text(), str(left) in str(caught.value)) == ("edited\n", True)


@pytest.mark.parametrize(
    ("value", "problem"), [("", "No editor is set"), ("/no/such", "can't be started"), ("'", "quotes")]
)
async def test_a_missing_editor_is_reported(
    monkeypatch: pytest.MonkeyPatch, value: str, problem: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", value)
    editor = FunctionEditor()
    async with Heard(editor).run_test():
        with pytest.raises(ExternalEditorError, match=problem):
            editor.edit_in_external_editor()


async def test_each_save_of_the_other_editor_is_reported_while_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "seen"
    wait_for_marker = f'while [ ! -e {shlex.quote(str(marker))}."$word" ]; do sleep 0.05; done'
    monkeypatch.setenv(
        "VISUAL", an_editor(tmp_path, f'for word in one two; do echo $word > "$2"; {wait_for_marker}; done')
    )
    saved: list[str] = []

    def save(text: str) -> None:
        saved.append(text)
        marker.with_suffix(f".{text.strip()}").touch()

    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a", "zero\n")
        assert editor.edit_in_external_editor(save)
        await pilot.pause()
        assert saved == ["one\n", "two\n"]
        assert editor.code == "two\n"


SPECIAL = {"enter", "tab", "shift+tab", "backspace", "home", "end", "up", "down", "left", "ctrl+z", "ctrl+y"}


async def typed(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await (pilot.press(key) if key in SPECIAL else pilot.press(*key))
    await pilot.pause()


async def test_a_function_is_typed_without_a_blank_for_its_layout() -> None:
    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a", "")
        editor.focus()
        keys = [
            "def f(x):",
            "enter",
            "if x:",
            "enter",
            "return [",
            "enter",
            "1,",
            "enter",
            "backspace",
            "]",
            "enter",
        ]
        await typed(pilot, *keys, "for y in x:", "enter", "pass", "enter", "backspace", "f(y)")
        assert editor.code == (
            "def f(x):\n    if x:\n        return [\n            1,\n        ]\n    for y in x:\n        pass\nf(y)"
        )
        await typed(pilot, "home", "home", "tab")
        assert editor.code.endswith("\n    f(y)")
        await typed(pilot, *["ctrl+z"] * 40)
        assert editor.code == ""
        await typed(pilot, *["ctrl+y"] * 40)
        assert editor.code.endswith("\n    f(y)")


async def test_home_goes_to_the_text_and_then_to_the_margin() -> None:
    editor = FunctionEditor("    x = (1)")
    async with Heard(editor).run_test() as pilot:
        editor.focus()
        await typed(pilot, "end", "home")
        assert editor.cursor_location == (0, 4)
        await typed(pilot, "home")
        assert editor.cursor_location == (0, 0)


async def test_lines_become_comments_and_code_again_in_one_step() -> None:
    editor = FunctionEditor("    a\n\n      b\nc\n")
    async with Heard(editor).run_test() as pilot:
        editor.focus()
        await pilot.press("shift+down", "shift+down", "shift+down")
        editor.action_comment()
        assert editor.code == "    # a\n\n    #   b\nc\n"
        editor.action_comment()
        assert editor.code == "    a\n\n      b\nc\n"
        await pilot.press("ctrl+z", "ctrl+z")
        assert editor.code == "    a\n\n      b\nc\n"


async def test_the_pair_of_a_bracket_is_lit_beside_the_cursor() -> None:
    editor = FunctionEditor("f(')', [1])")
    async with Heard(editor).run_test() as pilot:
        editor.focus()
        await typed(pilot, "end")
        assert set(editor._brackets) == {(0, 1), (0, 10)}
        await typed(pilot, "left", "left")
        assert set(editor._brackets) == {(0, 7), (0, 9)}
        await typed(pilot, "home")
        assert editor._brackets == ()


async def test_each_function_has_its_own_history_and_place() -> None:
    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a", "x\ny\n")
        editor.focus()
        await typed(pilot, "down", "1", "2")
        editor.load_buffer("b", "z\n")
        await typed(pilot, "3", "ctrl+z", "ctrl+z")
        assert editor.code == "z\n"
        editor.load_buffer("a", "x\n12y\n")
        assert editor.cursor_location == (1, 2)
        await typed(pilot, "ctrl+z")
        assert editor.code == "x\ny\n"
        await typed(pilot, "ctrl+y")
        editor.load_buffer("a", "written elsewhere\n")
        await typed(pilot, "ctrl+z")
        assert editor.code == "x\n12y\n"
        editor.load_buffer("b", "z\n")
        await typed(pilot, "ctrl+y")
        assert editor.code == "3z\n"


async def test_what_python_refuses_is_marked_beside_its_line() -> None:
    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        start = "    def f(self):\n        return 1\n"
        editor.load_buffer("a", start, start=start, first_line=62)
        editor.focus()
        await until(pilot, lambda: editor.state.fault is None and "62  " in text_of(app), 60)
        await typed(pilot, "down", "end", " +")
        await until(pilot, lambda: editor.state.fault is not None, 60)
        assert editor.state.fault is not None
        assert (editor.state.fault.line, editor.state.added, editor.state.removed) == (2, 1, 1)
        assert "63✘         return 1 +" in text_of(app)
        await typed(pilot, " 1")
        await until(pilot, lambda: editor.state.fault is None, 60)
        assert "✘" not in text_of(app)


async def test_a_text_that_was_not_checked_yet_has_no_state() -> None:
    editor = FunctionEditor()
    async with Heard(editor).run_test() as pilot:
        editor.load_buffer("a", "    x = 1\ny = 2\n")
        assert not editor.state.checked
        assert state_words(editor.state).plain == ""
        await until(pilot, lambda: editor.state.checked, 60)
        assert state_words(editor.state).plain.startswith("✘ line 2")


@pytest.mark.parametrize(
    "text", ["(" * 20_000, "-" * 100_000 + "1", "\0", "x = '" + "a" * 1_000_000, "(\n" * 20_000]
)
async def test_no_text_hangs_the_editor(text: str) -> None:
    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a", text)
        editor.focus()
        await typed(pilot, "end", "x", "enter", "y", "home", "ctrl+z")
        await until(pilot, lambda: editor.state.fault is not None, 60)


async def test_a_pasted_text_keeps_its_odd_characters() -> None:
    editor = FunctionEditor("x")
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.focus()
        app.post_message(events.Paste("a = '\x0c\x1b'\r\nb\r"))
        await pilot.pause()
        assert editor.code == "a = '\x0c\x1b'\nb\nx"
        await pilot.press("ctrl+a", "shift+ctrl+end")
        editor.select_all()
        await pilot.press("ctrl+x")
        assert app.clipboard == "a = '\x0c\x1b'\nb\nx"
        await pilot.press("ctrl+z")
        assert editor.code == "a = '\x0c\x1b'\nb\nx"


async def test_a_row_shows_that_its_line_goes_on() -> None:
    editor = FunctionEditor("x = '" + "a" * 100 + "z'")
    app = Heard(editor)
    async with app.run_test(size=(40, 5)) as pilot:
        editor.focus()
        await pilot.pause()
        assert text_of(app).split("\n")[0].endswith("a›")
        await typed(pilot, "end")
        row = text_of(app).split("\n")[0]
        assert row[3] == "‹"
        assert "z'" in row
        await typed(pilot, *["left"] * 80)
        assert text_of(app).split("\n")[0].startswith("1  x = 'aa")


async def test_what_is_drawn_row_by_row_is_what_a_whole_picture_shows() -> None:
    chance = random.Random(5)
    editor = FunctionEditor("".join(f"if x{n}:\n    '''{n}\n" for n in range(40)))
    app = Heard(editor)
    keys = [
        "a",
        "enter",
        "down",
        "pagedown",
        "pageup",
        "backspace",
        "shift+down",
        "tab",
        "ctrl+z",
        "'",
        "(",
        "end",
    ]
    app.animation_level = "none"
    async with app.run_test(size=(30, 12)) as pilot:
        editor.focus()
        for number in range(60):
            await pilot.press(chance.choice(keys))
            if number % 20 == 19:
                height = chance.randint(5, 14)
                await pilot.resize_terminal(30, height)
                await until(pilot, lambda height=height: len(text_of(app).split("\n")) == height, 60)
            await pilot.pause()
            drawn = [row[:28] for row in text_of(app).split("\n")]
            editor.refresh(layout=True)
            await pilot.pause()
            assert drawn == [row[:28] for row in text_of(app).split("\n")]
