"""Opens reports in Chromium with the network off.

usage: python tests/studies/report_pages.py REPORT.html… [--shots FOLDER] [--chromium PROGRAM]

Prints for each page and width how many requests it made, how many console errors it logged, whether the page
is wider than the window, and how many labels of figures leave their figure; exit code 1 if any of these is
not zero. Tables that have to be scrolled are counted too. Chromium is driven with its own protocol over two
pipes, so nothing else is needed.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WIDTHS = (1280, 800)
LOOK = """
(() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const out = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const own = text.getBoundingClientRect();
      if (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1)
        out.push(svg.querySelector("title").textContent + ": " + text.textContent.slice(0, 60));
    }
  }
  const scrolled = [...document.querySelectorAll(".scroll")].filter(d => d.scrollWidth > d.clientWidth + 1)
    .map(d => d.querySelector("caption").textContent.slice(0, 80) + ": " + d.scrollWidth + " of " + d.clientWidth);
  return {wide, out, scrolled, figures: document.querySelectorAll("figure svg").length,
    tables: document.querySelectorAll("table").length,
    marked: [...document.querySelectorAll("figure svg")].filter(s => s.textContent.includes("SIMULATED")).length,
    captions: [...document.querySelectorAll("figcaption, caption")]
      .filter(s => s.textContent.includes("SIMULATED")).length,
    height: document.documentElement.scrollHeight};
})()
"""


class Browser:
    """A Chromium without a window, controlled by messages that end in a zero byte."""

    def __init__(self, program: str, profile: str) -> None:
        to_it, self._out = os.pipe()
        self._in, from_it = os.pipe()
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--remote-debugging-pipe", f"--user-data-dir={profile}",
        ]  # fmt: skip
        shell = f'exec "$@" 3<&{to_it} 4>&{from_it}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "-", *command], pass_fds=(to_it, from_it), stderr=subprocess.DEVNULL
        )
        os.close(to_it)
        os.close(from_it)
        self._number, self._buffer = 0, b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events that arrive in between are kept.

        Raises `RuntimeError` if the command fails.
        """
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                result: dict[str, Any] = found["result"]
                return result
            self.events.append(found)

    def wait(self, method: str) -> None:
        """Wait for an event."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def go_offline(self, session: str) -> None:
        """Let no request of a tab reach a network."""
        off = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        self.call("Network.emulateNetworkConditions", session, offline=True, **off)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium ended.")
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the browser."""
        self.call("Browser.close")
        self._process.wait()


def look(browser: Browser, path: Path, width: int, shots: Path | None) -> dict[str, Any]:
    """Open a page at a width, and return its figures, requests and console messages.

    With `shots`, screenshots of the page are saved there, and a PDF for the first width.
    """
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Network", "Page", "Runtime", "Log"):
        browser.call(f"{domain}.enable", session)
    browser.go_offline(session)
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        session,
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    browser.events.clear()
    address = path.resolve().as_uri()
    browser.call("Page.navigate", session, url=address)
    browser.wait("Page.loadEventFired")
    found = browser.call("Runtime.evaluate", session, expression=LOOK, returnByValue=True)["result"]["value"]
    of = [event for event in browser.events if event.get("method")]
    sent = [
        event["params"]["request"]["url"] for event in of if event["method"] == "Network.requestWillBeSent"
    ]
    wrong = [
        event["params"]
        for event in of
        if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    ]
    if shots is not None:
        for number, top in enumerate(range(0, found["height"], 2400)):
            clip = {"x": 0, "y": top, "width": width, "height": min(2400, found["height"] - top), "scale": 1}
            shot = browser.call("Page.captureScreenshot", session, clip=clip, captureBeyondViewport=True)
            (shots / f"{path.stem}-{width}-{number:02}.png").write_bytes(base64.b64decode(shot["data"]))
        if width == WIDTHS[0]:
            printed = browser.call("Page.printToPDF", session, printBackground=False)
            (shots / f"{path.stem}.pdf").write_bytes(base64.b64decode(printed["data"]))
    browser.call("Target.closeTarget", targetId=target)
    return {**found, "requests": [url for url in sent if url != address], "console": wrong}


def main() -> int:
    """Look at each page at each width; return 1 if a count that must be 0 is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--shots", type=Path, help="a folder for screenshots and the printed page")
    parser.add_argument(
        "--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser") or "chrome"
    )
    options = parser.parse_args()
    if options.shots is not None:
        options.shots.mkdir(parents=True, exist_ok=True)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="report-pages-", ignore_cleanup_errors=True) as profile:
        browser = Browser(options.chromium, profile)
        for path in options.pages:
            for width in WIDTHS:
                found = look(browser, path, width, options.shots)
                print(
                    f"{path.name} at {width}: {found['figures']} figures ({found['marked']} say SIMULATED), "
                    f"{found['tables']} tables ({found['captions']} captions say SIMULATED), "
                    f"{len(found['requests'])} requests, {len(found['console'])} console errors, "
                    f"{found['wide']} pixels too wide, {len(found['scrolled'])} tables to be scrolled, "
                    f"{len(found['out'])} labels outside of their figure"
                )
                for line in (
                    *found["requests"],
                    *map(str, found["console"]),
                    *found["out"],
                    *found["scrolled"],
                ):
                    print(f"    {line}")
                bad += (
                    len(found["requests"]) + len(found["console"]) + len(found["out"]) + max(0, found["wide"])
                )
        browser.close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
