"""Runs a team's study with eight machines, 40 simulated people and two browsers, and kills the server twice.

usage: python tests/studies/team_study.py [--machines 8] [--people 40] [--kills 2] [--browsers 2]
[--no-report]

Checks that no participant gets a task twice, no acknowledged record is lost, the folders of all machines are
equal, their audits are clean, and the reports of two machines and of a plain copy of the folder are equal
byte for byte.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from browser_windows import BrowserWindow, chromium, open_window  # noqa: E402
from served_windows import serving as serving_programs  # noqa: E402
from team_crowd import Crowd  # noqa: E402
from team_studies import serving  # noqa: E402

NO_3D = "--disable-3d-apis"
KEYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Rather not say", ("Enter",)),
    ("needs an answer", ("1", "F9")),
    ("More details, in your own words", ("Enter", "Enter")),
    ("Not now", ("Enter",)),
    ("Read the task", ("F9",)),
    ("Between two tasks", ("F9",)),
    (": the rules", ("F9",)),
    ("tool uses left", ("Control+g",)),
    ("You have 6 tool uses", ("Enter",)),
    ("After task", ("F9",)),
    ("some questions", ("F9",)),
    ("(needed)", ("Space", "F9")),
    ("Your code was", ()),
)
"""Words on the screen, and the keys that a participant then presses; the first words found count."""
LOOK_S = 0.5


async def in_browser(window: BrowserWindow, seen: list[str]) -> None:
    """Take part in a browser to the end: agree, start each task, view it, give up, and skip questions."""
    before = ""
    while True:
        await asyncio.sleep(LOOK_S)
        text = window.text
        words, keys = next(((words, keys) for words, keys in KEYS if words in text), ("", ()))
        if words == "Your code was":
            return
        if text == before:  # the screen is being drawn or a key is pending
            before = ""
            continue
        before = text
        seen.append(words or "something else")
        await window.press(*(keys if words else ("Escape",)))


async def guests(crowd: Crowd, pictures: Path) -> list[str]:
    """Let the guests take part through links to the organiser's machine; return those who did not finish."""
    seen: dict[str, list[str]] = {code: [] for code in crowd.guests}
    people = len(crowd.codes) + len(crowd.guests)
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(
            serving_programs(crowd.organiser.home, people, "--study", str(crowd.root))
        )
        browser = await stack.enter_async_context(chromium(NO_3D))
        windows = [await open_window(browser, served.links[code]) for code in crowd.guests]
        ways = [in_browser(window, seen[code]) for code, window in zip(crowd.guests, windows, strict=True)]
        done = await asyncio.gather(*(asyncio.wait_for(way, 900) for way in ways), return_exceptions=True)
        for code, window, result in zip(crowd.guests, windows, done, strict=True):
            await window.picture(pictures / f"{code}.png")
            if result is not None:
                print(f"{code}: {result!r}\n{window.text}\n{seen[code]}")
        await served.stop()
    complaints = [words for window in windows for words in window.complaints]
    print({code: len(steps) for code, steps in seen.items()}, "pages left; complaints:", complaints or "none")
    return [code for code, result in zip(crowd.guests, done, strict=True) if result is not None]


def report(home: Path, study: Path, into: Path) -> dict[str, bytes]:
    """Write the report of a study on a machine and return its files."""
    into.mkdir()
    words = ["study", "report", str(study), "-o", str(into / "report.html")]
    done = subprocess.run(
        [sys.executable, "-m", "gistpoint", *words],
        env={**os.environ, "GISTPOINT_HOME": str(home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout.strip().replace(str(into), "…")[:300], done.stderr.strip()[-300:])
    return {path.name: path.read_bytes() for path in into.iterdir()}


def checked(home: Path) -> str:
    """Return the output of `store check` for a machine, or an empty string if all is well."""
    done = subprocess.run(
        [sys.executable, "-m", "gistpoint", "store", "check"],
        env={**os.environ, "GISTPOINT_HOME": str(home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else f"{home.name}: {done.stdout}{done.stderr}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--browsers", type=int, default=2)
    parser.add_argument("--pictures", type=Path, default=None)
    parser.add_argument("--no-report", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, serving() as server:
        base = Path(name)
        pictures = given.pictures or base / "pictures"
        pictures.mkdir(parents=True, exist_ok=True)
        codes = tuple(f"P{number:02}" for number in range(1, given.people + 1))
        crowd = Crowd(base, server, given.machines, codes, tuple(f"B{n + 1}" for n in range(given.browsers)))
        crowd.begin()
        stuck = []
        with crowd.at_work(given.kills):
            if crowd.guests:
                stuck = asyncio.run(guests(crowd, pictures))
        found = crowd.end()
        homes = [crowd.organiser.home, *(base / f"machine-{number}" for number in range(given.machines))]
        found.wrong += [words for words in map(checked, homes) if words]
        print(found)
        print("\n".join([*found.faults, *stuck]))
        if not given.no_report:
            began = time.monotonic()
            places = {"organiser": (crowd.organiser.home, crowd.root)}
            first = base / "machine-0"
            places["machine-0"] = (first, first / "data" / "studies" / crowd.name)
            places["folder"] = (base / "plain-home", crowd.plain_copy(base / "plain"))
            pages = {who: report(*place, base / f"report-{who}") for who, place in places.items()}
            equal = pages["organiser"] == pages["machine-0"] == pages["folder"] and len(pages["folder"]) > 2
            sizes = {file: len(data) for file, data in pages["folder"].items()}
            print(
                f"reports of {', '.join(places)} equal: {equal}; {sizes} bytes; {time.monotonic() - began:.0f} s"
            )
            return int(bool(found.faults or stuck) or not equal)
        return int(bool(found.faults or stuck))


if __name__ == "__main__":
    sys.exit(main())
