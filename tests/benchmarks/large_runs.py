"""Makes large recorded runs of mini-swe-agent and SWE-agent by repeating the steps of real ones.

usage: python tests/benchmarks/large_runs.py FOLDER --mini-run FILE.traj.json... --swe-run FILE.traj...
[--only NAME...]

`small` is the first run given, `mid50` and `big210` are 50 and 210 MB of its steps, and in `obs11` the first
result is a string of 11 MB. `nine` is a folder with nine files of 222 MB, 2 GB in all, made from all given
runs in turn, with their steps in different orders; SWE-agent's folder is `nine-swe`. Existing files are not
changed.
"""

from __future__ import annotations

import argparse
import json
import random
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIZES = {"mid50": 50, "big210": 210}
SUFFIXES = {"messages": ".traj.json", "trajectory": ".swe.traj"}
"""The suffixes of the formats' files, by the key of their steps."""
NAMES = ("small", *SIZES, "obs11", "nine")
_NINE = 9
_NINTH_MB = 222
_LINES = 100_000


def large_runs(folder: Path, sources: list[Path], names: tuple[str, ...] = NAMES) -> dict[str, Path]:
    """Return the paths of the named runs or folders, made from `sources`, all in one format."""
    folder.mkdir(parents=True, exist_ok=True)
    key = _key(json.loads(sources[0].read_text()))
    found: dict[str, Path] = {}
    for name in names:
        place = found[name] = folder / (name + SUFFIXES[key])
        if name == "nine":
            place = found[name] = folder / ("nine" if key == "messages" else "nine-swe")
            place.mkdir(exist_ok=True)
            for number in range(_NINE):
                source = sources[number % len(sources)]
                _write(place / f"run{number + 1}{SUFFIXES[key]}", _repeated(source, _NINTH_MB, number))
        elif name in SIZES:
            _write(place, _repeated(sources[0], SIZES[name]))
        elif name == "obs11":
            _write(place, _with_one_result(sources[0]))
        else:
            _write(place, iter([json.dumps(json.loads(sources[0].read_text()), indent=2)]))
    return found


def _key(run: dict[str, Any]) -> str:
    return next(key for key in SUFFIXES if key in run)


def _write(path: Path, parts: Iterator[str]) -> None:
    if path.exists():
        return
    written = path.with_name(path.name + ".part")
    with written.open("w", encoding="utf-8") as file:
        file.writelines(parts)
    written.replace(path)


def _repeated(source: Path, megabytes: int, seed: int | None = None) -> Iterator[str]:
    """Yield the text of the run with its steps repeated; with a seed, in a new order each later time.

    The first two messages of mini-swe-agent, the prompts, are written once.
    """
    run = json.loads(source.read_text())
    key = _key(run)
    if seed is not None:
        run["instance_id"] = f"{source.name.split('.')[0]}-{seed + 1}"
    prompts = 2 if key == "messages" else 0
    items = [textwrap.indent(json.dumps(item, indent=2), "    ") for item in run[key]]
    begins = [
        n for n, item in enumerate(run[key]) if n >= prompts and item.get("role", "assistant") == "assistant"
    ]
    steps = [",\n".join(items[a:b]) for a, b in zip(begins, [*begins[1:], len(items)], strict=True)]
    run[key] = "HERE"
    before, after = json.dumps(run, indent=2).split('"HERE"')
    shuffle, left = random.Random(seed).shuffle, megabytes * 1_000_000
    yield before + "[\n" + ",\n".join(items[: begins[0]])
    written = begins[0] > 0
    while left > 0:
        for step in steps:
            yield ",\n" * written + step
            written = True
            left -= len(step)
        if seed is not None:
            shuffle(steps)
    yield "\n  ]" + after


def _with_one_result(source: Path) -> Iterator[str]:
    text = "\n".join(
        f"{number:6} of {_LINES} " + "the same line again and again " * 3 for number in range(_LINES)
    )
    run = json.loads(source.read_text())
    if (key := _key(run)) == "trajectory":
        run[key][0]["observation"] = text
    else:
        next(message for message in run[key][3:] if message["role"] in ("user", "tool"))["content"] = text
    yield json.dumps(run, indent=2)


def main() -> None:
    """Make the runs of both formats."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mini-run", type=Path, nargs="+", default=[])
    parser.add_argument("--swe-run", type=Path, nargs="+", default=[])
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    for sources in (options.mini_run, options.swe_run):
        for path in large_runs(options.folder, sources, tuple(options.only)).values() if sources else ():
            print(path, flush=True)


if __name__ == "__main__":
    main()
