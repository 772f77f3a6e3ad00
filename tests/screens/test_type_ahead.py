"""What is typed after a key goes to what the key opens, however slow the machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from screens.driving import solving
from screens.settling import send_keys
from textual.message_pump import MessagePump
from textual.widgets import Input


def slow_down(monkeypatch: pytest.MonkeyPatch, every: int = 3) -> None:
    """Have every third message wait in its queue, so that keys overtake what the first of them has caused."""
    handle, count = MessagePump._dispatch_message, [0]

    async def late(self: MessagePump, message: object) -> None:
        count[0] += 1
        if count[0] % every == 0:
            await asyncio.sleep(0.002)
        await handle(self, message)  # type: ignore[arg-type]

    monkeypatch.setattr(MessagePump, "_dispatch_message", late)


async def test_a_pattern_typed_at_once_is_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with solving(tmp_path) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4")
        slow_down(monkeypatch)
        before = len(driver.state.calls)
        send_keys(driver.app, "Sdef reach")
        await driver.until(lambda: driver.solve.console.line.value == "def reach")
        assert driver.solve.focused is driver.solve.console.line
        assert len(driver.state.calls) == before
        assert isinstance(driver.screen.focused, Input)
