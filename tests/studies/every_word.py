"""Searches the shown steps of recorded runs for every string of the raw records; prints a line per format.

Usage: python tests/studies/every_word.py [-v] FILE_OR_FOLDER…    exit code 1 if a string is lost

The raw records are read again by `recorded_runs.raw_texts`, independently of the readers. Columns: files and
runs; texts, and how many of them are messages, thoughts, arguments and results; found in the fields of a
step; in its part "also recorded"; in the header; listed as not shown (the list of the format, with its
reasons, is in `gistpoint show`); ids, types, times and encoded data; lost. Files of formats without a reader
are counted by the reason of their refusal.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from recorded_runs.raw_texts import Tally, tally_file

from gistpoint.sessions.runs.opening import list_runs

COLUMNS = ("runs", "texts", "said", "found", "beside", "heading", "listed", "labels")


def main() -> int:
    wordy = "-v" in sys.argv
    files, tallies, refused = Counter[str](), dict[str, Tally](), Counter[str]()
    for given in [Path(name) for name in sys.argv[1:] if name != "-v"]:
        for path in [given] if given.is_file() else sorted(p for p in given.rglob("*") if p.is_file()):
            found = list(list_runs([path]))
            if all(item.header is None for item in found):
                refused.update(
                    item.problem.replace(str(path), "It").split(". ")[0].split(":")[0] for item in found
                )
                continue
            formats = set()
            for format, one in tally_file(path):
                tallies.setdefault(format, Tally()).add(one)
                formats.add(format)
                for where, text in one.lost if wordy else ():
                    print(f"LOST {path.name} {where}: {text[:120]!r}")
            files.update(formats)
    print("".join(f"{title:>9}" for title in ("files", *COLUMNS, "lost")) + "  format")
    for format, one in sorted(tallies.items()):
        counts = (files[format], *(getattr(one, name) for name in COLUMNS), len(one.lost))
        print("".join(f"{count:>9}" for count in counts) + f"  {format}")
    for reason, count in sorted(refused.items()):
        print(f"{count:>9} files: {reason}")
    return 1 if any(one.lost for one in tallies.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
