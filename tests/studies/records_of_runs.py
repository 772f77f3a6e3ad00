"""Counts the steps and records of recorded runs, and counts the records again with only `json` and `zipfile`.

Usage: python tests/studies/records_of_runs.py FILE_OR_FOLDER…
"""

from __future__ import annotations

import json
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gistpoint.core.code.source_text import physical_lines
from gistpoint.sessions.runs.opening import list_runs, open_run

ARRAYS = ("trajectory", "events", "messages", "steps", "log", "history")


def count(document: Any) -> int:
    """Return the number of records in a JSON document of one run."""
    if isinstance(document, list):
        return len(document)
    return next((len(document[key]) for key in ARRAYS if isinstance(document.get(key), list)), 1)


def direct(path: Path) -> Iterator[int]:
    """Yield the number of records of each run of a file, in order."""
    if zipfile.is_zipfile(path):
        yield from (count(json.loads(data)) for name, data in members(path) if name.startswith("samples/"))
        return
    text = path.read_text(encoding="utf-8")
    try:
        yield count(json.loads(text))
    except ValueError:
        lines = [json.loads(line) for line in physical_lines(text) if line.strip()]
        if all("history" in line or "messages" in line for line in lines):
            yield from (count(line) for line in lines)
        else:
            yield len(lines)


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    import zstandard

    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            start = info.header_offset + 30
            start += sum(int.from_bytes(data[start - n : start - n + 2], "little") for n in (4, 2))
            packed = data[start : start + info.compress_size]
            if info.compress_type == 93:
                yield info.filename, zstandard.ZstdDecompressor().stream_reader(packed).read()
            else:
                yield info.filename, zlib.decompress(packed, -15) if info.compress_type == 8 else packed


def main() -> int:
    wrong = 0
    print(
        f"{'file':<62} {'format':<16} {'version':<14} {'runs':>4} {'steps':>6} {'records':>8} {'direct':>7}"
    )
    for given in map(Path, sys.argv[1:]):
        for path in [given] if given.is_file() else sorted(p for p in given.rglob("*") if p.is_file()):
            runs, steps, records, names = 0, 0, [], set()
            for listed in [found for found in list_runs([path]) if found.header is not None]:
                document = open_run(listed.name)
                document.build()
                runs += 1
                steps += document.step_count
                records.append(document.record_count)
                names.add((document.header.format, document.header.format_version))
            if not records:
                print(f"{path.name[-62:]:<62} no run of a format that is known")
                continue
            told = list(direct(path))
            wrong += told != records
            format, version = names.pop() if names else ("none", "")
            mark = "" if told == records else "  DIFFERS"
            shown = f"{path.name[-62:]:<62} {format:<16} {version:<14} {runs:>4} {steps:>6}"
            print(f"{shown} {sum(records):>8} {sum(told):>7}{mark}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
