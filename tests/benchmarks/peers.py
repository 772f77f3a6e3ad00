"""Times review and search against other programs: an empty Textual app, two inspectors, and ripgrep.

usage: python tests/benchmarks/peers.py --mini-run FILE.traj.json... --swe-run FILE.traj...
           [--mini COMMAND] [--swe COMMAND] [--rg COMMAND] [--files FOLDER] [--rows NAME...] [--rounds N]

COMMAND opens the file or folder that follows it; a program whose command can't be started is "not there".
Nothing is installed. The inspectors are those of mini-swe-agent and SWE-agent. mini-swe-agent is on PyPI (`uv
tool install mini-swe-agent`, then `--mini "mini-extra inspect"`); SWE-agent is not: `uv pip install` a
checkout of github.com/SWE-agent/SWE-agent into a separate environment, then `--swe ".../bin/sweagent
inspect"`; `--rg rg` is the default. The given runs, which may be any recorded ones, are enlarged by
`large_runs.py`, once in each format: 5 GB in FOLDER, which is kept if it is given.

In each round, the programs open each row one after the other. A figure is the median over the rounds; × is
the median ratio of the other program's figure to gistpoint's in the same round, with the smallest and largest
ratio; above 1, gistpoint is faster. "first paint" is the first word on the screen and "first step" the second
line of the first step's text, both since the start. For a folder, gistpoint shows its list first, and Enter
is pressed as soon as it has a row. "at the end" is also since the start: the last step is requested as soon
as the first one is shown, and has arrived when its number and the number of steps are shown. A step has
settled with the last byte before 0.12 s of silence. Searches are whole commands; "beyond start" is the time
that one takes in addition to its time on the small run, and "hits/s" the number of lines printed per second
after the first.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import pty
import re
import select
import shlex
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyte
from large_runs import NAMES, large_runs

COLUMNS, LINES = 160, 48
VIEWED: tuple[str, ...] = ("first paint", "first step", "at the end", "step", "worst step", "peak MB")
QUIET_S, LIMIT_S, OPENING_LIMIT_S = 0.12, 15.0, 90.0
STEPS = {"obs11": 1}
"""The number of steps to go through, if not eight; an inspector needs ten seconds per step of this row."""
NOWHERE = "qqzzqq"
TITLES = {
    "small": "small",
    "mid50": "50 MB",
    "big210": "210 MB",
    "obs11": "a result of 11 MB",
    "nine": "2 GB in nine",
}
EMPTY_APP = """
from textual.app import App
from textual.widgets import Footer, Header, Static
class Empty(App):
    def compose(self):
        yield Header()
        yield Static("first text", markup=False)
        yield Footer()
Empty().run()
"""
MISSING = math.inf
"""The figure for anything that did not appear within the limit."""


@dataclass(frozen=True)
class Viewer:
    """How to drive a program that shows runs.

    `step` is the regex of a step's number and the number of steps.
    """

    name: str
    command: tuple[str, ...]
    step: str = r"[Ss]tep {0}(?:/| of ){1}(?![\d,+…])"
    following: str = "l"
    first: str = "0"
    into_run: str = ""
    """The key that leads from the first screen of a file to its first step, if one is needed."""
    list_row: str = ""
    """The regex of the first screen of a folder from which Enter leads to a run; empty if a run is opened."""

    def at(self, step: str, of: str) -> re.Pattern[str]:
        return re.compile(self.step.format(step, of))


@dataclass
class Drawn:
    """A program in a pseudo-terminal; times are those of the clock `time.perf_counter`."""

    command: Sequence[str]
    environment: dict[str, str]
    screen: pyte.Screen = field(default_factory=lambda: pyte.Screen(COLUMNS, LINES))
    is_open: bool = False
    """Whether the program has taken over the screen; its earlier output does not count."""

    def __enter__(self) -> Drawn:
        self.stream = pyte.ByteStream(self.screen)
        self.started = self.last_byte = time.perf_counter()
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.environ.clear()
            os.environ.update(self.environment, TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(LINES))
            try:
                os.execvp(self.command[0], list(self.command))
            finally:
                os._exit(127)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.file)

    def until(self, shown: Callable[[str], object], limit_s: float = LIMIT_S) -> float | None:
        """Return the time at which the screen's text met a condition; None if that took too long."""
        deadline = time.perf_counter() + limit_s
        while not (self.is_open and shown("\n".join(self.screen.display))):
            if not self._read(deadline - time.perf_counter()):
                return None
        return self.last_byte

    def settled(self) -> float:
        """Return when the last byte before a silence arrived."""
        while self._read(QUIET_S):
            pass
        return self.last_byte

    def press(self, key: str) -> float:
        os.write(self.file, key.encode())
        return time.perf_counter()

    @property
    def peak_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def _read(self, wait_s: float) -> bool:
        if wait_s <= 0 or not select.select([self.file], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self.file, 1 << 16)
        except OSError:  # the program has ended
            return False
        self.last_byte = time.perf_counter()
        _, page, after = data.rpartition(b"\x1b[?1049h")
        if page:
            self.screen.reset()
            self.is_open = True
        self.stream.feed(after)
        return True


Figures = dict[str, float]


def viewed(viewer: Viewer, path: Path, marker: str, steps: int, environment: dict[str, str]) -> Figures:
    """Open a run, jump to its end, return to its first step and continue from there; return the figures."""
    found: Figures = dict.fromkeys(VIEWED, MISSING)
    with Drawn([*viewer.command, str(path)], environment) as drawn:

        def is_at(step: str, of: str = r"[\d,]+") -> Callable[[str], object]:
            return viewer.at(step, of).search

        def seen(text: str) -> bool:
            return marker in " ".join(text.split())

        found["first paint"] = since(
            drawn, drawn.until(lambda text: re.search(r"[^\W\d_]{2}", text), OPENING_LIMIT_S)
        )
        if path.is_dir() and viewer.list_row:
            drawn.until(re.compile(viewer.list_row).search)
            drawn.press("\r")
        elif viewer.into_run:
            drawn.until(re.compile(r"Press l").search)
            drawn.press(viewer.into_run)
        found["first step"] = since(drawn, drawn.until(seen))
        if found["first step"] < MISSING:
            drawn.press("$")
            found["at the end"] = since(drawn, drawn.until(is_at(r"([\d,]+)", r"\1")))
            drawn.settled()
            drawn.press(viewer.first)
            drawn.until(is_at("1"))
            drawn.settled()
            taken = [step_taken(drawn, viewer, is_at(str(number + 2))) for number in range(steps)]
            found["step"], found["worst step"] = statistics.median(taken), max(taken)
        found["peak MB"] = drawn.peak_mb
    return found


def since(drawn: Drawn, moment: float | None) -> float:
    return MISSING if moment is None else moment - drawn.started


def step_taken(drawn: Drawn, viewer: Viewer, is_there: Callable[[str], object]) -> float:
    pressed = drawn.press(viewer.following)
    return MISSING if drawn.until(is_there) is None else drawn.settled() - pressed


def empty_app(environment: dict[str, str]) -> Figures:
    with Drawn([sys.executable, "-c", EMPTY_APP], environment) as drawn:
        return {"first paint": since(drawn, drawn.until(lambda text: "first text" in text))}


def looked_through(command: Sequence[str], pattern: str, path: Path, environment: dict[str, str]) -> Figures:
    """Search for a missing word and for `pattern`; return the figures.

    In a folder, the search ends with the first hit.
    """
    found: Figures = {"search MB": 0.0}
    for words in (NOWHERE, pattern):
        started, count, first = time.perf_counter(), 0, 0.0
        with subprocess.Popen(
            [*command, words, str(path)], env=environment, stdout=subprocess.PIPE, bufsize=0
        ) as run:
            assert run.stdout
            while chunk := run.stdout.read(1 << 20):
                first = first or time.perf_counter() - started
                count += chunk.count(b"\n")
                if path.is_dir():
                    os.kill(run.pid, signal.SIGKILL)  # Popen.kill would consume the status that wait4 needs
            _, _, used = os.wait4(run.pid, 0)
            run.returncode = 0
        taken = time.perf_counter() - started
        found["search MB"] = max(found["search MB"], used.ru_maxrss / 1024)
        if words == NOWHERE:
            found["no hit"] = taken
            continue
        found["first hit"] = first or MISSING
        if path.is_file():
            found["hits/s"] = count / (taken - first)
    return found


@dataclass(frozen=True)
class Format:
    """The runs of a format, the inspector that reads them, and a string that the first step shows."""

    name: str
    files: dict[str, Path]
    peer: Viewer
    marker: str


def first_text(path: Path) -> str:
    """Return the beginning of the second line of the first step, because some lists show the first line."""
    run = json.loads(path.read_text())
    text = run["messages"][0]["content"] if "messages" in run else run["trajectory"][0]["thought"]
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return lines[min(1, len(lines) - 1)][:32].strip()


LINE = "  {:<14} {:>11} {:>16}  {}"


def show(
    format: Format, row: str, rounds: list[dict[str, Figures]], starts: list[dict[str, Figures]] | None
) -> None:
    """Print a row of a format: each figure of gistpoint and of the other program, and their ratio.

    `starts` are the figures of the small runs, or None for the small run itself.
    """
    place = format.files[row]
    size = sum(file.stat().st_size for file in ([place] if place.is_file() else place.iterdir()))
    print(f"\n{TITLES[row]}, {format.name} ({size / 1e6:.1f} MB)")
    print(LINE.format("", "gistpoint", format.peer.name, "× (range)"))
    for name in VIEWED:
        compare(name, "ours", "peer", rounds)
    paints = [(found["ours"]["first paint"], found["empty"]["first paint"]) for found in rounds]
    empty = statistics.median(paint for _, paint in paints)
    print(
        f"  first paint is {spread([ours / paint for ours, paint in paints])} x an empty app's, {empty:.2f} s"
    )
    print(LINE.format("", "gistpoint", "ripgrep", ""))
    for name in rounds[0]["search"]:
        compare(name, "search", "rg", rounds)
    pairs = [
        (one, start["search"]["no hit"])
        for one, start in zip(rounds, starts or [], strict=False)
        if "rg" in one
    ]
    if beyond := [(one["search"]["no hit"] - start) / one["rg"]["no hit"] for one, start in pairs]:
        print(f"  no hit, beyond start: {spread(beyond)} x ripgrep's time", flush=True)


def compare(name: str, ours: str, other: str, rounds: list[dict[str, Figures]]) -> None:
    """Print a line for one figure; the ratio is inverted if a higher figure is better."""
    pairs = [(found[ours][name], found.get(other, {}).get(name)) for found in rounds]
    left = statistics.median(one for one, _ in pairs)
    others = [one for _, one in pairs if one is not None]
    if not others:
        print(LINE.format(name, cell(name, left), "not there", ""))
        return
    ratios = [a / b if name == "hits/s" else b / a for a, b in pairs if b is not None and a < MISSING]
    note = "  behind" if other == "peer" and ratios and statistics.median(ratios) < 1 else ""
    print(LINE.format(name, cell(name, left), cell(name, statistics.median(others)), spread(ratios) + note))


def cell(name: str, figure: float) -> str:
    if figure == MISSING:
        return f"not in {LIMIT_S:.0f} s"
    return f"{figure:,.0f}" if name in ("peak MB", "search MB", "hits/s") else f"{figure:.2f} s"


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "-"


def main() -> None:
    """Measure round by round, then print the results row by row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--mini-run", type=Path, nargs="+", default=[])
    parser.add_argument("--swe-run", type=Path, nargs="+", default=[])
    parser.add_argument("--mini", default="mini-extra inspect", type=shlex.split)
    parser.add_argument("--swe", default="sweagent inspect", type=shlex.split)
    parser.add_argument("--rg", default="rg", type=shlex.split)
    parser.add_argument("--ours", default=f"{shlex.quote(sys.executable)} -m gistpoint", type=shlex.split)
    parser.add_argument("--pattern", default="import", help="what the search with hits looks for")
    parser.add_argument("--files", type=Path)
    parser.add_argument("--rows", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        places = {f"XDG_{kind}_HOME": folder for kind in ("DATA", "CONFIG", "STATE", "CACHE")}
        environment = {
            **os.environ,
            **places,
            "GISTPOINT_HOME": f"{folder}/home",
            "TEXTUAL_ANIMATIONS": "none",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are kept, as for users
        formats: list[Format] = []
        for name, sources, peer in (
            ("mini-swe-agent", options.mini_run, Viewer("mini-swe-agent", tuple(options.mini))),
            ("SWE-agent", options.swe_run, Viewer("SWE-agent", tuple(options.swe), into_run="l")),
        ):
            if sources:
                files = large_runs(options.files or Path(folder) / "runs", sources, tuple(options.rows))
                formats.append(Format(name, files, peer, first_text(sources[0])))
        cases = [(format, row) for row in options.rows for format in formats]
        measured: dict[tuple[str, str], list[dict[str, Figures]]] = {}
        for number in range(options.rounds):
            for format, row in cases:
                print(
                    f"\rround {number + 1} of {options.rounds}: {format.name}, {row}\x1b[K",
                    end="",
                    file=sys.stderr,
                )
                found = measure(format, row, options, environment)
                measured.setdefault((format.name, row), []).append(found)
        print("\r\x1b[K", end="", file=sys.stderr)
    print(f"Rounds: {options.rounds}. Seconds since the start, or since the key.")
    for format, row in cases:
        starts = measured.get((format.name, "small")) if row != "small" else None
        show(format, row, measured[format.name, row], starts)


def measure(
    format: Format, row: str, options: argparse.Namespace, environment: dict[str, str]
) -> dict[str, Figures]:
    """Return the figures of one round of a row by program."""
    path, steps = format.files[row], STEPS.get(row, 8)
    task = r"\d+ of \d+ runs|run\d\S*\.traj"
    ours = Viewer("gistpoint", (*options.ours, "review"), following="]", first="^", list_row=task)
    found = {"empty": empty_app(environment), "ours": viewed(ours, path, format.marker, steps, environment)}
    if shutil.which(format.peer.command[0]):
        found["peer"] = viewed(format.peer, path, format.marker, steps, environment)
    found["search"] = looked_through((*options.ours, "search"), options.pattern, path, environment)
    if shutil.which(options.rg[0]):
        rg = (*options.rg, "--smart-case", "--only-matching", "--no-filename", "--line-number")
        found["rg"] = looked_through(rg, options.pattern, path, environment)
    return found


if __name__ == "__main__":
    main()
