"""Windows in a real Chromium, driven by playwright; their text is read from the server's messages."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pyte
from playwright.async_api import Browser, Page, WebSocket, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
UNTIL_S = 400.0
MAIL = "http://mail.example/"
"""Another site, on which a participant finds the link."""
_PASTE = """text => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    const keys = document.querySelector(".xterm-helper-textarea");
    keys.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""
_KEYS_TAKEN = "() => document.activeElement?.classList.contains('xterm-helper-textarea')"


class BrowserWindow:
    """A window of one participant: its input, its text, and its requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        """The addresses of all requests, including WebSockets."""
        self.complaints: list[str] = []
        """Uncaught errors of scripts, and errors in the browser's console."""
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        self._text: str | None = None
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("websocket", self._connected)

    def _connected(self, socket: WebSocket) -> None:
        self._screen.reset()
        self.requests.append(socket.url)
        socket.on("framereceived", self._drawn)
        socket.on("framesent", self._sent)

    def _drawn(self, data: str | bytes) -> None:
        if isinstance(data, bytes):
            self._stream.feed(data)
            self._text = None

    def _sent(self, data: str | bytes) -> None:
        kind, *content = json.loads(data)
        if kind == "resize":
            self._screen.resize(content[0]["height"], content[0]["width"])
            self._text = None

    @property
    def text(self) -> str:
        """The text in the terminal."""
        if self._text is None:
            self._text = "\n".join(line.rstrip() for line in self._screen.display).rstrip()
        return self._text

    async def come(self, link: str) -> None:
        """Open the link as if it were in an email read in the browser."""
        await self.page.route(
            MAIL, lambda route: route.fulfill(body=f'<a href="{link}">go</a>', content_type="text/html")
        )
        await self.page.goto(MAIL)
        await self.page.click("a")
        await self.ready()

    async def reload(self) -> None:
        """Load the page again, even while something is under way."""
        await self.page.reload()
        await self.ready()

    async def ready(self) -> None:
        """Wait until the terminal accepts keys."""
        await self.page.wait_for_selector("body.-first-byte", timeout=UNTIL_S * 1000)
        await self.page.wait_for_function(_KEYS_TAKEN, timeout=UNTIL_S * 1000)

    async def press(self, *keys: str) -> None:
        """Press keys, by playwright's names for them."""
        for key in keys:
            await self.page.keyboard.press(key)

    async def type(self, text: str) -> None:
        """Type text."""
        await self.page.keyboard.type(text)

    async def paste(self, text: str) -> None:
        """Paste text."""
        await self.page.evaluate(_PASTE, text)

    async def until(self, met: Callable[[str], object]) -> None:
        """Wait until a condition on the terminal's text holds; fail after `UNTIL_S` seconds."""
        for _ in range(int(UNTIL_S / 0.2)):
            if met(self.text):
                return
            await asyncio.sleep(0.2)
        raise AssertionError(f"never came about; {await self.said()!r}, {self.complaints}:\n{self.text}")

    async def said(self) -> str:
        """Return the notice that the page shows instead of the terminal."""
        return await self.page.inner_text("#notice")

    async def picture(self, path: Path) -> None:
        """Save a picture of the page."""
        await self.page.screenshot(path=path)


@asynccontextmanager
async def chromium(*arguments: str) -> AsyncIterator[Browser]:
    """Start the system's Chromium without a screen, and yield it."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *arguments])
        try:
            yield browser
        finally:
            await browser.close()


async def open_window(browser: Browser, link: str, size: tuple[int, int] = (1280, 800)) -> BrowserWindow:
    """Open a link in a new browser context, without the cookies of other windows."""
    context = await browser.new_context(viewport={"width": size[0], "height": size[1]})
    window = BrowserWindow(await context.new_page())
    await window.come(link)
    return window
