"""Lets the user edit text in their own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from textual.app import App, SuspendNotSupported

from gistpoint.core.errors import UserError
from gistpoint.tui.jobs import Jobs

_WATCH_S = 0.5
_LAST_LOOK_S = 10.0


class ExternalEditorError(UserError):
    """Text can't be edited externally: no editor was found, it failed, or its file is not text."""


class EditorNotStartedError(ExternalEditorError):
    """The external editor did not start, so nobody has used it."""


def editor_command() -> list[str]:
    """Return the command in `$VISUAL` or `$EDITOR`.

    Raises `EditorNotStartedError` if there is none, or if it can't be split into words.
    """
    words = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = shlex.split(words)
    except ValueError as error:
        raise EditorNotStartedError(
            f"$VISUAL or $EDITOR can't be read: {words!r}.", hint="Check its quotes."
        ) from error
    if not command:
        raise EditorNotStartedError(
            "No editor is set.", hint="Set $VISUAL or $EDITOR, for example EDITOR=vim."
        )
    return command


def edited_externally(
    app: App[object], text: str, *, suffix: str = ".py", on_saved: Callable[[str], None] | None = None
) -> str:
    """Return text as the user's editor saves it. The app is suspended meanwhile.

    The file is checked twice a second, and `on_saved` is called in a thread with text that has changed. Only
    this user can read the file. It is deleted afterwards, unless the editor has failed after changing it or
    has saved something other than UTF-8; the error then names the file, so that nothing is lost. Raises
    `EditorNotStartedError` if there is no editor or it does not start, and `ExternalEditorError` if it fails
    or does not leave UTF-8 text.
    """
    command = editor_command()
    handle, name = tempfile.mkstemp(prefix="gistpoint-", suffix=suffix)
    path = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        file.write(text)
    keep = False
    try:
        with _watched(path, text, on_saved):
            status = _run(app, [*command, name])
        if status != 0:
            keep = path.exists() and path.read_bytes() != text.encode("utf-8", "surrogatepass")
            kept = f"The text that it saved is in {path}." if keep else "Your text here was not changed."
            raise ExternalEditorError(f"{command[0]} ended with exit status {status}.", hint=kept)
        return _read(path, command[0])
    except UnicodeDecodeError as error:
        keep = True
        raise ExternalEditorError(
            f"{command[0]} saved something that is not UTF-8.", hint=f"It is {path}."
        ) from error
    finally:
        if not keep:
            path.unlink(missing_ok=True)


@contextmanager
def _watched(path: Path, text: str, on_saved: Callable[[str], None] | None) -> Iterator[None]:
    """Check the file periodically, and report its text whenever it has changed."""
    if on_saved is None:
        yield
        return
    report, jobs = on_saved, Jobs(None, "watch")

    def look(known: str) -> None:
        try:
            now = path.read_bytes().decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError):
            # The file is being saved, or is not text. It is read again by the next check, or at the end.
            now = known
        if now != known:
            report(now)
        look_later(now)

    def look_later(known: str) -> None:
        jobs.do(lambda job: look(known), delay=_WATCH_S)

    look_later(text)
    try:
        yield
    finally:
        jobs.finish(_LAST_LOOK_S)


def _run(app: App[object], command: list[str]) -> int:
    try:
        with app.suspend():
            return subprocess.run(command, check=False).returncode
    except OSError as error:
        raise EditorNotStartedError(
            f"{command[0]} can't be started: {error.strerror}.",
            hint="Set $VISUAL or $EDITOR to a program that exists.",
        ) from error
    except SuspendNotSupported as error:
        raise EditorNotStartedError(
            "This terminal can't be handed over to an editor.", hint="Edit here instead."
        ) from error


def _read(path: Path, editor: str) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogatepass")
    except FileNotFoundError as error:
        raise ExternalEditorError(
            f"{editor} removed the file it was given.", hint="Your text here was not changed."
        ) from error
