"""The page with the repository at a step: its files, the changes, and their source."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.getters import query_one
from textual.widgets import ContentSwitcher

from gistpoint.core.diffs import FileDiff
from gistpoint.sessions.runs.repository import RepositoryState
from gistpoint.tui import signs
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.pages.diffs import state_note
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.record_list import Piece, RecordList

_LARGEST = 5_000_000
"""At most this many bytes of a file are shown."""
_MANY_ENTRIES = 200
"""The number of entries above which all folders are closed at first, except those with changes."""


class FileList(RecordList):
    """A list of paths: the changed files, followed by the tree of folders and files."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.paths: list[tuple[str, str]] = []
        """The letter for the change (empty in the tree) and the path of each row.

        A folder's path ends with a slash.
        """
        self.closed: set[str] = set()
        """The folders whose contents are not listed."""

    def show(self, paths: list[tuple[str, str]]) -> None:
        """Show other paths, with the cursor on the same path as before if it is still listed."""
        here = self.path
        self.paths = paths
        at = next((n for n, (_, path) in enumerate(paths) if path == here), 0)
        self.set_count(len(paths), cursor=at)

    @property
    def path(self) -> str:
        """The path under the cursor; empty if there is none."""
        return self.paths[self.cursor][1] if self.cursor < len(self.paths) else ""

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the symbol and the path of a row."""
        sign, path = self.paths[index]
        style = {"M": "$text-warning", "A": "$text-success", "D": "$text-error"}.get(sign, "")
        if sign:
            return [(f" {sign} ", f"bold {style}"), (path, style)]
        folder = path.endswith("/")
        depth = path.rstrip("/").count("/")
        name = path.rstrip("/").rpartition("/")[2] + ("/" if folder else "")
        sign = (f"{signs.HERE} " if path in self.closed else f"{signs.UNFOLDED} ") if folder else "  "
        return [(" " + "  " * depth + sign, "$foreground 60%"), (name, "$foreground 60%" if folder else "")]


class FilesPage(RunPage[RepositoryState], Horizontal):
    """The page with the files and, on the right, the file under the cursor, in full or as a diff."""

    DEFAULT_CSS = """
    FilesPage { height: 1fr; width: 1fr; }
    FilesPage FileList { width: 32; border-right: vkey $border-blurred; }
    FilesPage ContentSwitcher { width: 1fr; height: 1fr; }
    """

    files = query_one(FileList)
    switcher = query_one(ContentSwitcher)

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._state: RepositoryState | None = None
        self._diffs: dict[str, FileDiff] = {}
        self._whole: list[str] = []

    def compose(self) -> ComposeResult:
        """Lay out the list, the diff and the text."""
        yield FileList(id="repository-files")
        with ContentSwitcher(initial="file-diff"):
            yield DiffView(id="file-diff")
            code = CodeView(id="file-text")
            code.set_reactive(LineView.wrap, True)
            yield code

    def focus(self, scroll_visible: bool = True) -> FilesPage:
        """Focus the list of files, and return the page."""
        self.files.focus(scroll_visible)
        return self

    def read(self, context: PageContext, job: Job) -> RepositoryState:
        """Return the repository after the step."""
        return context.repository(job)

    def fill(self, content: RepositoryState) -> str:
        """Show the repository, and return a note on its source."""
        self.show(content)
        return state_note(content)

    def show(self, state: RepositoryState) -> None:
        """Show the repository after a step. In a large tree, close all folders without changes at first."""
        first = self._state is None
        self._state = state
        self._diffs = {diff.path: diff for diff in state.diff}
        self._whole = _tree_paths(state)
        if first and len(self._whole) > _MANY_ENTRIES:
            folders = {path for path in self._whole if path.endswith("/")}
            self.files.closed = {
                path for path in folders if not any(name.startswith(path) for name in self._diffs)
            }
        self._list()
        self._show_file()

    def _list(self) -> None:
        state = self._state
        if state is None:
            return
        changed = [(_sign(state, diff), diff.path) for diff in state.diff]
        closed = tuple(self.files.closed)
        open_ones = [
            path
            for path in self._whole
            if not any(path != folder and path.startswith(folder) for folder in closed)
        ]
        self.files.show(changed + [("", path) for path in open_ones])

    @on(RecordList.Moved, "#repository-files")
    def moved(self, message: RecordList.Moved) -> None:
        """Show the file under the cursor."""
        message.stop()
        self._show_file()

    @on(RecordList.Chosen, "#repository-files")
    def chosen(self, message: RecordList.Chosen) -> None:
        """Switch between the text and the diff of the file, or open or close the folder."""
        message.stop()
        if self.files.path.endswith("/"):
            self.files.closed ^= {self.files.path}
            self._list()
            return
        text = self._text(self.files.path)
        if self.switcher.current == "file-diff" and text is not None:
            self._show_text(self.files.path, text)
        else:
            self._show_file()

    def _show_file(self) -> None:
        path = self.files.path
        diff = self._diffs.get(path)
        if diff is not None:
            self.query_one("#file-diff", DiffView).load_diff((diff,))
            self.switcher.current = "file-diff"
            return
        text = None if path.endswith("/") else self._text(path)
        self._show_text(path, text or "")

    def _show_text(self, path: str, text: str) -> None:
        language = "python" if path.endswith((".py", ".pyi")) else None
        self.query_one("#file-text", CodeView).load(text, language=language, title=path)
        self.switcher.current = "file-text"

    def _text(self, path: str) -> str | None:
        state = self._state
        if state is None:
            return None
        data = (state.files or {}).get(path)
        if data is None and state.tree is not None and state.tree.is_file(path):
            data = state.tree.read(path)
        return None if data is None else data[:_LARGEST].decode("utf-8", "replace")


def _sign(state: RepositoryState, diff: FileDiff) -> str:
    if diff.path in state.deleted or diff.new_path is None:
        return "D"
    return "A" if diff.old_path is None else "M"


def _tree_paths(state: RepositoryState) -> list[str]:
    if state.tree is None:
        return sorted(state.files or {})
    found: list[str] = []
    folders: set[str] = set()
    for path in sorted(state.tree.files()):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth]) + "/"
            if folder not in folders:
                folders.add(folder)
                found.append(folder)
        found.append(path)
    return found
