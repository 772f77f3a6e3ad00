"""An image of a step is opened with the system's viewer; without one its file is named."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from screens.review.reviewing import reviewing

DOT = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()


@pytest.mark.parametrize("has_viewer", [True, False])
async def test_enter_on_an_image_opens_it_or_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_viewer: bool
) -> None:
    shot = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}
    large = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(2_100_000)).decode()
    too_large = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{large}"}}
    linked = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    drawing = base64.b64encode(b"<svg/>").decode()
    drawn = {"type": "image_url", "image_url": {"url": f"data:image/svg+xml;base64,{drawing}"}}
    content = [{"type": "text", "text": "Look:"}, linked, drawn, too_large, shot]
    run = tmp_path / "a.json"
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "user", "content": content},
        {"role": "assistant", "content": "I", "tool_calls": [call]},
    ]
    run.write_text(json.dumps({"messages": messages}))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "xdg-open").write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/opening\nmv {tmp_path}/opening {tmp_path}/opened\n'
    )
    (programs / "xdg-open").chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":0" if has_viewer else "")
    monkeypatch.setenv("WAYLAND_DISPLAY", "")
    async with reviewing(run, size=(100, 30)) as driver:
        await driver.until_read(0)
        await driver.until(lambda: re.search(r"ls +\?", driver.text()))  # the sign of a call without a result
        page = driver.review.step_page
        *none, line = page.places
        await driver.press("tab")
        await driver.until(lambda: page.has_focus)
        assert len(none) == 2
        for place in none:
            driver.app.clear_notifications()
            await driver.until(lambda: "larger than 2 MB" not in driver.text())
            page.go_to(place + page.first_line)
            await driver.press("enter")
            await driver.until(lambda: "larger than 2 MB" in driver.text())
        page.go_to(line + page.first_line)
        await driver.press("enter")
        await driver.until(lambda: list(tmp_path.glob("gistpoint-*/step-1-image-3.png")))
        (file,) = tmp_path.glob("gistpoint-*/step-1-image-3.png")
        assert file.read_bytes() == base64.b64decode(DOT)
        if has_viewer:
            await driver.until((tmp_path / "opened").exists)
            assert (tmp_path / "opened").read_text() == f"{file}\n"
        else:
            await driver.until(lambda: "There is no viewer here" in driver.text())
