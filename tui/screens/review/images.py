"""Opens an image of a step in the system's viewer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gistpoint.sessions.exports.html.images import READ, Image, images_in
from gistpoint.sessions.runs.document import RunDocument

_SIZE = re.compile(r"[\d,]+ bytes(?=\]|$)")


def opened_image(document: RunDocument, step: int, number: int, places: Sequence[str]) -> str:
    """Open the image at `places[number]`, and return a report of the outcome.

    `places` are the lines of the step's text that represent images. A record may contain an image twice that
    its step shows once, so duplicates are dropped. The image is written to a file that only this user can
    read; the file remains for the viewer.
    """
    image = _image_at(number, places, list(dict.fromkeys(images_in(document.raw(step, READ)))))
    if image is None:
        return (
            "This image can't be opened: only its name is recorded, its type is unknown, it is larger"
            " than 2 MB, or it is neither PNG, JPEG, GIF nor WebP."
        )
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


def _image_at(number: int, places: Sequence[str], images: Sequence[Image]) -> Image | None:
    """Return the image of a place, by its size or its order among places of equal size; None if unclear."""
    found = [_SIZE.search(place) for place in places]
    sizes = [match[0] if match else "" for match in found]
    size = sizes[number]
    if size:
        alike = [image for image in images if image.size == size]
        if len(alike) == 1:
            return alike[0]
    elif any(sizes):
        # A place without a size may represent the same image as a place with one.
        return None
    else:
        alike = list(images)
    same = [place for place, other in enumerate(sizes) if other == size]
    return alike[same.index(number)] if len(alike) == len(same) else None


def _viewer() -> list[str]:
    """Return the desktop's command for opening a file; empty if there is no such command or no desktop."""
    if sys.platform == "darwin":
        return ["open"]
    has_desktop = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    found = shutil.which("xdg-open") if has_desktop else None
    return [found] if found else []
