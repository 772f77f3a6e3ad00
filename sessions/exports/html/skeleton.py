"""Makes the head of each page that gistpoint writes, with its security policy, and escapes its text."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files

from gistpoint.core.text import bounded, visible, visible_line


def page_head(title: str, policy: str, style: str, *, links: str = "", styles: str = "") -> str:
    """Return a page up to its body.

    `title` must be escaped. `links` precede the title, and `styles` follow `style`.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{links}<title>{title}</title>\n<style>{style}</style>\n{styles}</head>\n<body>\n"
    )


def packaged(*names: str) -> str:
    """Return the concatenated contents of files of this package, such as style sheets."""
    folder = files("gistpoint.sessions.exports.html")
    return "".join(folder.joinpath(name).read_text("utf-8") for name in names)


def content_hash(text: str) -> str:
    """Return the hash of a string in the form of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def line(text: str, longest: int = 400) -> str:
    """Return `text` as one escaped line of bounded length, with glyphs for control characters."""
    return escape(visible_line(bounded(text, longest)))


def lines(text: str, longest: int) -> str:
    """Return `text` escaped and bounded, with control characters other than newlines as glyphs."""
    return escape(visible(bounded(text, longest)))
