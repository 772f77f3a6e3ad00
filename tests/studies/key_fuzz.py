"""Posts pairs and triples of keys and clicks at once to every screen and dialog, on a deliberately slow loop.

Each chunk of sequences runs in a separate process; a share of them is killed at a random moment. After every
sequence the screen must be one that its history explains, the journals whole, no lock left behind, each call
paid for knowingly, and each letter in the field that its key opened.

Usage: PYTHONPATH=src:tests python tests/studies/key_fuzz.py FOLDER [SEQUENCES] [ROOM...]

FOLDER keeps the results: the same command continues where it was stopped, until SEQUENCES (default: 4,000)
were run. Prints a line per chunk and the counts; exit code 1 if anything was found.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

WEIGHTS = {"play": 50, "review": 20, "validate": 12, "study": 8, "glance": 5, "watch": 5}
CHUNK = 25
KILLED = 0.1
"""The share of the chunks that are killed."""
LONGEST_S = 1_800.0
DONE = "done.jsonl"


def chunk(folder: Path, room: str, seed: int) -> None:
    """Run a chunk in this process and print its findings after each app."""
    os.environ |= {
        "GISTPOINT_HOME": str(folder / "home"),
        "TEXTUAL_ANIMATIONS": "none",
        "COLORTERM": "truecolor",
    }
    from key_fuzzing import ROOMS, Found, sequences

    found, done, apps = Found(), 0, 0
    while done < CHUNK and apps < CHUNK and not found.broken:
        before = done
        done += asyncio.run(
            sequences(ROOMS[room], folder, seed * 1000 + apps, CHUNK - done, found, lambda words: None)
        )
        apps += 1
        report: dict[str, Any] = {"done": done - before, "broken": found.broken, "opened": found.opened}
        print(json.dumps(report | {"kinds": found.kinds, "stages": found.stages}), flush=True)


def run_chunk(folder: Path, number: int, rooms: list[str]) -> dict[str, Any]:
    """Run a chunk in a separate process, which may be killed, and return its figures."""
    rng = random.Random(number)
    room = rng.choices(rooms, [WEIGHTS[name] for name in rooms])[0]
    place = folder / f"chunk-{number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    kill_after = rng.uniform(5, 60) if rng.random() < KILLED else LONGEST_S
    command = [sys.executable, __file__, "--chunk", str(place), room, str(number)]
    begun = time.monotonic()
    out, errors = place / "out.jsonl", place / "errors.txt"
    with (
        out.open("wb") as to,
        errors.open("wb") as aside,
        subprocess.Popen(command, stdout=to, stderr=aside) as child,
    ):
        try:
            code = child.wait(kill_after)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
    reports = [json.loads(line) for line in out.read_bytes().splitlines() if line.startswith(b"{")]
    broken = list(reports[-1]["broken"]) if reports else []
    killed = code == -9 and kill_after < LONGEST_S
    if code and not killed:
        broken.append(f"chunk {number} in {room} ended with {code}: {errors.read_text()[-3000:]}")
    broken += _journals_after(place)
    if not broken:
        shutil.rmtree(place, ignore_errors=True)
    last = reports[-1] if reports else {}
    return {
        "number": number, "room": room, "done": sum(one["done"] for one in reports), "killed": killed,
        "opened": last.get("opened", {}), "kinds": last.get("kinds", {}), "stages": last.get("stages", {}),
        "broken": broken, "seconds": round(time.monotonic() - begun),
    }  # fmt: skip


def _journals_after(place: Path) -> list[str]:
    """Return the fault of the journals that a chunk, killed or not, left on the disk; empty if none."""
    from key_fuzzing import Broken, build_services, check_journals

    try:
        # a torn last line is repaired when the attempt is resumed, and the lock has ended with its process
        check_journals(build_services(place), left=False)
    except Broken as error:
        return [f"{place.name}: {error}"]
    return []


def main(folder: Path, wanted: int, rooms: list[str]) -> int:
    """Run chunks up to the wanted number of sequences and print the counts.

    Returns 1 if anything was found, else 0.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / DONE
    past = [json.loads(line) for line in record.read_bytes().splitlines()] if record.exists() else []
    while sum(one["done"] for one in past) < wanted:
        figures = run_chunk(folder, len(past), rooms)
        past.append(figures)
        with record.open("a") as file:
            file.write(json.dumps(figures) + "\n")
        words = "killed" if figures["killed"] else f"{len(figures['broken'])} broken"
        total = sum(one["done"] for one in past)
        print(
            f"{total:6} {figures['room']:9} {figures['done']:4} in {figures['seconds']:4} s  {words}",
            flush=True,
        )
        for one in figures["broken"]:
            print(one, flush=True)
    for name in ("kinds", "stages", "opened"):
        counts: Counter[str] = Counter()
        for one in past:
            counts.update(one[name])
        print(f"{name}: {dict(counts.most_common())}")
    broken = [words for one in past for words in one["broken"]]
    killed = sum(one["killed"] for one in past)
    print(f"{sum(one['done'] for one in past)} sequences, {killed} kills, {len(broken)} found")
    return int(bool(broken))


if __name__ == "__main__":
    if sys.argv[1] == "--chunk":
        chunk(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        given = sys.argv[2:]
        count = int(given.pop(0)) if given and given[0].isdigit() else 4_000
        sys.exit(main(Path(sys.argv[1]), count, given or list(WEIGHTS)))
