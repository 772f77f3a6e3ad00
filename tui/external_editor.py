"""Lets the user edit text in their own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from textual.app import App, SuspendNotSupported

from gistpoint.core.errors import UserError
from gistpoint.core.locations import read_regular
from gistpoint.tui.jobs import Jobs

_WATCH_S = 0.5
_LAST_CHECK_S = 10.0
_UNCHANGED = "Your text here was not changed."


class ExternalEditorError(UserError):
    """Text can't be edited externally: no editor was found, it failed, or its file is not text."""


class EditorNotStartedError(ExternalEditorError):
    """The external editor did not start, so it does not count as used."""


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

    The text is in a file that only this user can read. It is checked twice a second, and `on_saved` is called
    in a thread with text that has changed. The file is deleted afterwards, unless it has changes that could
    not be returned, because the editor failed, or because the file can't be read as UTF-8: the error then
    names the file, so that nothing is lost. Raises `EditorNotStartedError` if there is no editor or it does
    not start, and `ExternalEditorError` if it fails or does not leave UTF-8 text.
    """
    command = editor_command()
    handle, name = tempfile.mkstemp(prefix="gistpoint-", suffix=suffix)
    path = Path(name)
    begun = text.encode("utf-8", "surrogatepass")
    with os.fdopen(handle, "wb") as file:
        file.write(begun)
    is_taken = False
    try:
        with _watched(path, text, on_saved):
            status = _run(app, [*command, name])
        if status != 0:
            kept = f"The text that it saved is in {path}." if _is_changed(path, begun) else _UNCHANGED
            raise ExternalEditorError(f"{command[0]} ended with exit status {status}.", hint=kept)
        edited = _read(path, command[0])
        is_taken = True
        return edited
    finally:
        if is_taken or not _is_changed(path, begun):
            # The file has nothing that could be lost, so a failure to delete it does no harm.
            with suppress(OSError):
                path.unlink()


def _is_changed(path: Path, begun: bytes) -> bool:
    """Return whether the file has other content than the given bytes; False if there is no file."""
    try:
        return read_regular(path) != begun
    except FileNotFoundError:
        return False
    except OSError:
        return True


@contextmanager
def _watched(path: Path, text: str, on_saved: Callable[[str], None] | None) -> Iterator[None]:
    """Check the file periodically, and report its text whenever it has changed."""
    if on_saved is None:
        yield
        return
    report, jobs = on_saved, Jobs(None, "watch")

    def check(known: str) -> None:
        try:
            now = read_regular(path).decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError):
            # The editor is saving the file, or it is not text. The next check, or the end, reads it again.
            now = known
        if now != known:
            report(now)
        check_later(now)

    def check_later(known: str) -> None:
        jobs.do(lambda job: check(known), delay=_WATCH_S)

    check_later(text)
    try:
        yield
    finally:
        jobs.finish(_LAST_CHECK_S)


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
        return read_regular(path).decode("utf-8", "surrogatepass")
    except FileNotFoundError as error:
        raise ExternalEditorError(f"{editor} removed the file it was given.", hint=_UNCHANGED) from error
    except UnicodeDecodeError as error:
        raise ExternalEditorError(
            f"{editor} saved text that is not UTF-8.", hint=f"It is in {path}."
        ) from error
    except OSError as error:
        raise ExternalEditorError(
            f"The file that {editor} saved can't be read: {error.strerror}.", hint=f"It is {path}."
        ) from error
