"""Opens an image of a step with the system's viewer; where there is none, says in which file it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gistpoint.sessions.exports.html.images import READ, images_or_gaps
from gistpoint.sessions.runs.document import RunDocument


def opened_image(document: RunDocument, step: int, number: int, count: int) -> str:
    """Open the image `number` of `count` of a step (both from 0), and return in words what became of it.

    Records may hold an image twice that the step shows once. The image is written to a file that only this user can
    read, and that is left to the viewer.
    """
    images = list(images_or_gaps(document.raw(step, READ)))
    if len(images) > count:
        images = list(dict.fromkeys(images))
    image = images[number] if number < len(images) else None
    if image is None:
        return "This image can't be opened: it is only named, or larger than 2 MB, or neither PNG, JPEG, GIF nor WebP."
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
