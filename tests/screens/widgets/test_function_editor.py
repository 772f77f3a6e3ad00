import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shown_screen import Stage

from gistpoint.tui.external_editor import ExternalEditorError
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


async def test_edits_are_told_soon_and_at_once_on_request() -> None:
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


async def test_another_buffer_tells_the_first_and_forgets_its_history() -> None:
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
        assert editor.is_syntax_aware


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


async def test_the_users_own_editor_gets_and_gives_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", an_editor(tmp_path, 'printf "  # \\303\\244\\n" >> "$2"; stat -c %a "$2" > "$0.mode"'))
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
    ("body", "said"),
    [
        ("exit 3", "ended with exit status 3. The text was not changed"),
        ('echo lost > "$2"; exit 1', "What it saved is in"),
        ('rm "$2"', "removed the file"),
        ("printf '\\377' > \"$2\"", "not UTF-8"),
    ],
)
async def test_an_editor_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    monkeypatch.setenv("VISUAL", an_editor(tmp_path, body))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    editor = FunctionEditor()
    async with Heard(editor).run_test():
        editor.load_buffer("a", "kept")
        with pytest.raises(ExternalEditorError, match=said) as caught:
            editor.edit_in_external_editor()
        assert editor.code == "kept"
    left = [path for path in tmp_path.iterdir() if path.name.startswith("gistpoint-")]
    assert all(str(path) in str(caught.value) for path in left)
    assert bool(left) == ("saved" in str(caught.value))


@pytest.mark.parametrize(
    ("value", "said"), [("", "No editor is set"), ("/no/such", "can't be started"), ("'", "quotes")]
)
async def test_a_missing_editor_is_told(monkeypatch: pytest.MonkeyPatch, value: str, said: str) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", value)
    editor = FunctionEditor()
    async with Heard(editor).run_test():
        with pytest.raises(ExternalEditorError, match=said):
            editor.edit_in_external_editor()


async def test_each_save_of_the_other_editor_is_told_while_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    until_told = f'while [ ! -e {shlex.quote(str(told))}."$word" ]; do sleep 0.05; done'
    monkeypatch.setenv("VISUAL", an_editor(tmp_path, f'for word in one two; do echo $word > "$2"; {until_told}; done'))
    saved: list[str] = []

    def save(text: str) -> None:
        saved.append(text)
        told.with_suffix(f".{text.strip()}").touch()

    editor = FunctionEditor()
    app = Heard(editor)
    async with app.run_test() as pilot:
        editor.load_buffer("a", "zero\n")
        assert editor.edit_in_external_editor(save)
        await pilot.pause()
        assert saved == ["one\n", "two\n"]
        assert editor.code == "two\n"
