"""Writes `docs/guide/keys.md`, the list of all key bindings.

usage: python docs/keys_page.py
"""

from __future__ import annotations

from pathlib import Path

from gistpoint.tui.keys import keys_page

if __name__ == "__main__":
    Path(__file__).with_name("guide").joinpath("keys.md").write_text(keys_page(), encoding="utf-8")
