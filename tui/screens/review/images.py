"""Opens an image of a step with the system's viewer; where there is none, says in which file it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gistpoint.core.text import plural
from gistpoint.sessions.exports.html.images import READ, images_in
from gistpoint.sessions.runs.document import RunDocument


def opened_image(document: RunDocument, step: int, number: int) -> str:
    """Open the image `number` of a step (both from 0), and return in words what became of it.

    It is written to a file that only this user can read, and that is left to the viewer.
    """
    images = list(images_in(document.raw(step, READ)))
    if number >= len(images):
        held = plural(len(images), "image") if images else "no image"
        return f"Step {step + 1} holds {held} that can be shown: this one is only named, too large, or of another kind."
    image = images[number]
    path = Path(tempfile.mkdtemp(prefix="gistpoint-")) / f"step-{step + 1}-image-{number + 1}.{image.kind}"
    path.write_bytes(image.data)
    viewer = _viewer()
    if not viewer:
        return f"There is no viewer here; the image is in {path}"
    try:
        subprocess.Popen(
            [*viewer, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return f"{viewer[0]} could not be started ({error.strerror}); the image is in {path}"
    return f"{viewer[0]} opens {path}"


def _viewer() -> list[str]:
    """Return the command that opens a file as the desktop does; empty without one, or without a desktop."""
    if sys.platform == "darwin":
        return ["open"]
    has_desktop = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    found = shutil.which("xdg-open") if has_desktop else None
    return [found] if found else []
