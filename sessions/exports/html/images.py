"""The images that a step's records contain as base64, recognised by their first bytes, never by name."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gistpoint.sessions.records.model import Step

LARGEST = 2_000_000
"""The size in bytes of the largest image that is shown."""
READ = 12_000_000
"""The maximum number of bytes in a step's records that are searched for images."""
_ENCODED = re.compile(rb'(?:"|base64,)((?:iVBORw0KGg|(?:\\?/)9j|R0lGOD|UklGR)(?:[A-Za-z0-9+/=]|\\/){16,})"')
_NAMED = re.compile(r"\[(?:image|computer_screenshot|document|file|media)\b")
_BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a format that every browser draws and that can't hold scripts: PNG, JPEG, GIF or WebP."""

    kind: str
    data: bytes

    @property
    def address(self) -> str:
        """The image as a `data:` URL, which causes no request."""
        return f"data:image/{self.kind};base64,{base64.b64encode(self.data).decode()}"

    @property
    def size(self) -> str:
        """The size in words, as in the text that replaces the image: rounded up to a multiple of 3 bytes."""
        return f"{-(-len(self.data) // 3) * 3:,} bytes"


def has_image_placeholder(step: Step) -> bool:
    """Return whether a string of the step replaces an image, in which case its records may contain one."""
    return any(_NAMED.search(text) for text in (step.text, *(result.text for result in step.results)))


def images_in(records: bytes) -> Iterator[Image]:
    """Yield the images in the raw JSON records of a step.

    Images that are larger than `LARGEST`, damaged or of an unknown type are left out.
    """
    for found in _ENCODED.finditer(records):
        encoded = found[1].replace(b"\\/", b"/")
        if len(encoded) > LARGEST * 4 // 3 + 4:
            continue
        try:
            data = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            continue
        if kind := _kind(data):
            yield Image(kind, data)


def _kind(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), "")
