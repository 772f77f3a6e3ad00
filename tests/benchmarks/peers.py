"""Times gistpoint, mini-swe-agent's inspector and SWE-agent's on the same runs, in turns, as ratios.

usage: python tests/benchmarks/peers.py --driver tuibench.py --maker mkhuge.py --mini COMMAND --swe COMMAND
           --mini-run FILE.traj.json --swe-run FILE.traj [--rounds N] [--cases NAME...]

The driver feeds a program in a pseudo-terminal to a screen and prints one line of JSON; the maker repeats the steps of
a real run. COMMAND is what opens a file given behind it, such as "mini-extra i". Peers are installed by whoever runs
this. Each figure is the median over the rounds; a ratio is the peer's figure by ours, above 1 where we are ahead.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LINES = 100_000
STEPS = 8
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
METRICS = ("first paint ms", "step ms", "step settled ms", "worst step ms", "jump ms", "jump settled ms", "peak MB")


@dataclass(frozen=True)
class Tool:
    """How a program is driven: what its first page shows, and which number it shows after one key."""

    name: str
    command: tuple[str, ...]
    first: str
    start: int = 1
    step: str = r"Step %d/"
    last: str = r"Step ([\d,]+)/\1\b"


@dataclass(frozen=True)
class Case:
    name: str
    file: Path
    tools: tuple[Tool, ...]
    steps: int = STEPS


class Bench:
    """Runs the driver."""

    def __init__(self, driver: Path) -> None:
        self.driver = driver
        self.environment = {**os.environ, "TEXTUAL_ANIMATIONS": "none"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are kept where a user runs it

    def drive(self, tool: Tool, file: Path | None, *options: str) -> dict[str, float]:
        """Return what the driver measured, nothing where the program did not get there."""
        start = ["--first", tool.first, "--step", tool.step, "--start", str(tool.start), "--timeout", "60", *options]
        program = [*tool.command, *([str(file)] if file else [])]
        command = [sys.executable, str(self.driver), *start, "--", *program]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        found: dict[str, float] = json.loads(done.stdout) if done.stdout else {"error": 1}
        if "error" in found:
            print(f"{tool.name} on {file}: {found['error']}", file=sys.stderr)
        return found

    def figures(self, tool: Tool, case: Case) -> Iterator[tuple[str, float]]:
        """Open a run twice: to step through it, and to jump to its end as soon as it is there."""
        stepped = self.drive(tool, case.file, "--n", str(case.steps))
        jumped = self.drive(tool, case.file, "--jump", "$", "--jumpre", tool.last)
        for metric, key, found in (
            ("first paint ms", "first_ms", stepped),
            ("step ms", "step_med", stepped),
            ("step settled ms", "settle_med", stepped),
            ("worst step ms", "settle_max", stepped),
            ("jump ms", "jump_ms", jumped),
            ("jump settled ms", "jump_settle_ms", jumped),
        ):
            if found.get(key) is not None:
                yield metric, found[key]
        peaks = [found["peak_rss_mb"] for found in (stepped, jumped) if "peak_rss_mb" in found]
        if peaks:
            yield "peak MB", max(peaks)


def with_one_observation(source: Path, target: Path, key: str) -> Path:
    """Write a run in which the first result is one text of 11 MB."""
    text = "\n".join(f"{number:6} of {LINES} " + "the same line again and again " * 3 for number in range(LINES))
    run = json.loads(source.read_text())
    if key == "trajectory":
        run[key][0]["observation"] = text
    else:
        next(m for m in run[key][3:] if m["role"] in ("user", "tool"))["content"] = text
    target.write_text(json.dumps(run, indent=2))
    return target


def cases(options: argparse.Namespace, folder: Path) -> Iterator[Case]:
    """Make the files and say who opens them."""
    ours = Tool(
        "gistpoint",
        tuple(shlex.split(options.ours)),
        r"step 1 of ",
        step=r"step %d of ",
        last=r"step ([\d,]+) of \1\b|last step",
    )
    mini = Tool("mini-swe-agent", tuple(shlex.split(options.mini)), r"Step 1/")
    swe = Tool("SWE-agent", tuple(shlex.split(options.swe)), r"Info \(|Press l|Step 1/", start=0)
    for kind, key, peer, source in (
        ("mini", "messages", mini, options.mini_run),
        ("swea", "trajectory", swe, options.swe_run),
    ):
        yield Case(f"{kind}, small", source, (ours, peer))
        for size in (50, 210):
            made = folder / f"{kind}-{size}{''.join(source.suffixes)}"
            if f"{kind}, {size} MB" in options.cases or not options.cases:
                command = [sys.executable, str(options.maker), kind, str(source), str(made), str(size)]
                subprocess.run(command, check=True, capture_output=True)
            yield Case(f"{kind}, {size} MB", made, (ours, peer))
        made = with_one_observation(source, folder / f"{kind}-one{''.join(source.suffixes)}", key)
        yield Case(f"{kind}, one result of 11 MB", made, (ours, peer), 4)


def show(case: Case, figures: dict[tuple[str, str], list[float]], empty: list[float]) -> None:
    """Print the table of one case: per metric every tool's median, the peer's by ours, and ours by an empty app's."""
    ours, peer = case.tools
    print(f"\n{case.name} ({case.file.stat().st_size / 1e6:.1f} MB)")
    print(f"  {'':<16} {ours.name:>10} {peer.name:>15} {'ratio':>6}")
    for metric in METRICS:
        cells = [statistics.median(figures.get((tool.name, metric), [float("nan")])) for tool in case.tools]
        behind = "  behind" if cells[1] < cells[0] else ""
        print(f"  {metric:<16} {cells[0]:>10.0f} {cells[1]:>15.0f} {cells[1] / cells[0]:>6.2f}{behind}")
    first = statistics.median(figures.get((ours.name, "first paint ms"), [float("nan")]))
    print(f"  first paint is {first / statistics.median(empty):.2f} x an empty Textual app's", flush=True)


def main() -> None:
    """Measure case by case."""
    parser = argparse.ArgumentParser()
    for name in ("driver", "maker", "mini-run", "swe-run"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--ours", default=f"{sys.executable} -m gistpoint review")
    parser.add_argument("--mini", required=True)
    parser.add_argument("--swe", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="*", default=[])
    options = parser.parse_args()
    bench = Bench(options.driver)
    nothing = Tool("empty app", (sys.executable, "-c", EMPTY_APP), "first text")
    with tempfile.TemporaryDirectory() as folder:
        bench.environment["GISTPOINT_HOME"] = str(Path(folder) / "home")
        for case in cases(options, Path(folder)):
            if options.cases and case.name not in options.cases:
                continue
            figures: dict[tuple[str, str], list[float]] = {}
            empty: list[float] = []
            for _ in range(options.rounds):
                empty.append(bench.drive(nothing, None, "--n", "0")["first_ms"])
                for tool in case.tools:
                    for metric, value in bench.figures(tool, case):
                        figures.setdefault((tool.name, metric), []).append(value)
            show(case, figures, empty)


if __name__ == "__main__":
    main()
