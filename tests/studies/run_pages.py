"""Opens a run's HTML pages in Chromium without a network: `run_pages.py PAGE.html… [--chromium PROGRAM]`.

Prints for each page its size, its steps, the seconds to the first paint (also as a multiple of an empty
page's) and until it has loaded (medians of three), the memory of its scripts, and the number of its requests
and console messages; exit code 1 if there is any of the latter.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from studies.report_pages import Browser

_ROUNDS = 3
_FIGURES = """
new Promise((done) => requestAnimationFrame(() => setTimeout(() => done({
  paint: (performance.getEntriesByName("first-contentful-paint")[0] || {startTime: 0}).startTime / 1000,
  loaded: performance.timing.loadEventEnd - performance.timing.navigationStart,
  heap: performance.memory.usedJSHeapSize,
  steps: document.querySelectorAll("details.step").length,
}), 50)))
"""


@dataclass(frozen=True)
class Opened:
    """The measurements of one opening of a page."""

    paint_s: float
    loaded_s: float
    heap: int
    steps: int
    faults: int
    """The number of requests and console errors."""


def opened(browser: Browser, path: Path) -> Opened:
    """Open a page in a new tab, close the tab, and return the measurements."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Network", "Page", "Runtime", "Log"):
        browser.call(f"{domain}.enable", session)
    browser.go_offline(session)
    browser.events.clear()
    address = path.resolve().as_uri()
    browser.call("Page.navigate", session, url=address)
    browser.wait("Page.loadEventFired")
    result = browser.call(
        "Runtime.evaluate", session, expression=_FIGURES, returnByValue=True, awaitPromise=True
    )
    found: dict[str, Any] = result["result"]["value"]
    faults = sum(_is_fault(event, address) for event in browser.events)
    browser.call("Target.closeTarget", targetId=target)
    return Opened(found["paint"], found["loaded"] / 1000, found["heap"], found["steps"], faults)


def _is_fault(event: dict[str, Any], address: str) -> bool:
    method = event.get("method")
    if method == "Network.requestWillBeSent":
        url = event["params"]["request"]["url"]
        return url != address and not url.startswith("data:")
    return method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


def main() -> int:
    """Open each page three times, alternating with an empty one; return 1 if a page has faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or "chrome")
    options = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory(prefix="run-pages-", ignore_cleanup_errors=True) as folder:
        empty = Path(folder) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title><p>Empty.")
        browser = Browser(options.chromium, str(Path(folder) / "profile"))
        opened(browser, empty)
        for path in options.pages:
            rounds = [(opened(browser, empty), opened(browser, path)) for _ in range(_ROUNDS)]
            pages = [page for _, page in rounds]
            paint, loaded = median(p.paint_s for p in pages), median(p.loaded_s for p in pages)
            times = median(page.paint_s / max(bare.paint_s, 0.001) for bare, page in rounds)
            faults += pages[0].faults
            print(
                f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {pages[0].steps} steps,"
                f" first paint {paint:.2f} s ({times:.1f} x empty), loaded {loaded:.2f} s,"
                f" {pages[0].heap / 1e6:.0f} MB of scripts, {pages[0].faults} faults",
                flush=True,
            )
        browser.close()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
