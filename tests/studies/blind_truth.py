"""Scores blind readings of packets of functions, about half of which are corrupted.

    python tests/studies/blind_truth.py KEY.jsonl READER [READER ...] [--by source|library|set]

READER is a folder with `blind*.jsonl`, answered from the text alone, and `good*.jsonl`, answered after the
differences and failing tests were shown. The formats of the lines:

    key:   {"id", "library", "source", "set": "seen" | "unseen" | "new", "near": ["7 return x", ...], "glance"}
    blind: {"id", "named": string, list of strings or null, "confidence": 0 to 100, "suspects": [...],
            "remembers": "no" | "yes" | "named", "basis": "text" | "reasoning" | "memory", "task": "yes" | "no"}
    good:  {"id", "verdict": "good" | "weak" | "bad"}

An uncorrupted function has the source `untouched`. `near` contains the corrupted text's changed lines and the
lines next to them (where lines were removed, those around the gap), as in `gistpoint glance`, each with its
number. `remembers` is "named" if the line was named from memory of the library's code. `basis` is the source
of the answer: the text at first reading, reasoning about the function's behaviour, or memory; without it, a
name counts as from the text unless it was remembered. `task` is whether the reader would pass the function as
a good task, which asks for reading other code or running tests. `tests/studies/blind_packets.py` writes
packets with a form for these answers.

With several readers, each is also used once to choose corruptions, which the others then judge.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.estimates import cohen_kappa, wilson

UNTOUCHED = "untouched"
_LEAST_PART = 8
"""The minimum length of a quoted part of a line that counts as this line."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A function of the packets, as the key describes it."""

    id: str
    library: str
    source: str
    set: str
    near: frozenset[str]
    glance: float | None

    @property
    def corrupted(self) -> bool:
        return self.source != UNTOUCHED


@dataclass(frozen=True, slots=True)
class Reader:
    """The answers of one reader by the function's id."""

    name: str
    blind: dict[str, dict[str, Any]] = field(default_factory=dict)
    good: dict[str, dict[str, Any]] = field(default_factory=dict)

    def alleges(self, item: Shown) -> bool:
        """Whether a fault was named, whether in the right place or not."""
        return bool(self.blind[item.id].get("named"))

    def names(self, item: Shown) -> bool:
        """Whether the faulty line was named."""
        named = self.blind[item.id].get("named") or []
        return any(is_near(line, item.near) for line in ([named] if isinstance(named, str) else named))

    def names_from(self, item: Shown, *bases: str) -> bool:
        """Whether the faulty line was named on one of these bases."""
        answer = self.blind[item.id]
        by_default = "memory" if answer.get("remembers") == "named" else "text"
        return self.names(item) and answer.get("basis", by_default) in bases

    def would_pass(self, item: Shown) -> bool:
        """Whether the reader would pass a function as a good task, before knowing its fault."""
        return self.blind[item.id].get("task") == "yes"

    def suspects(self, item: Shown) -> bool:
        """Whether the faulty line was named or is among the suspects."""
        lines = self.blind[item.id].get("suspects") or []
        return self.names(item) or any(is_near(line, item.near) for line in lines)

    def remembers(self, item: Shown) -> bool:
        """Whether the reader recalls the library's code for this function."""
        answer = self.blind[item.id]
        return answer.get("remembers", "no") != "no" or answer.get("basis") == "memory"

    def verdict(self, item: Shown) -> str:
        return str(self.good[item.id]["verdict"])


def parts_of(line: str) -> tuple[str, str]:
    """Return the number before a line (empty if there is none) and its text with single spaces."""
    first, *others = line.split() or [""]
    number = first.rstrip("|:.")
    return (number, " ".join(others)) if number.isdigit() and others else ("", " ".join([first, *others]))


def is_near(named: str, near: Iterable[str]) -> bool:
    """Whether a named line is one of the lines: by its number, or by its text or a long enough part of it."""
    number, wanted = parts_of(named)
    for place, line in map(parts_of, near):
        shorter, longer = sorted((wanted, line), key=len)
        is_part = wanted == line or (len(shorter) >= _LEAST_PART and shorter in longer)
        if number == place if number and place else is_part:
            return True
    return False


def lines_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the JSON objects of files with one on each line."""
    text = "\n".join(path.read_text("utf-8") for path in sorted(paths))
    return [json.loads(line) for line in physical_lines(text) if line.strip()]


def key_of(path: Path) -> list[Shown]:
    """Return the functions of the packets."""
    plain = [(item, item["id"], item["library"], item["source"]) for item in lines_of([path])]
    return [
        Shown(*key, item["set"], frozenset(item.get("near", ())), item.get("glance")) for item, *key in plain
    ]


def reader_of(folder: Path) -> Reader:
    """Return the answers in a reader's folder; of two answers to one function, the first counts."""
    found = Reader(folder.name)
    for answers, pattern in ((found.blind, "blind*.jsonl"), (found.good, "good*.jsonl")):
        for item in lines_of(folder.glob(pattern)):
            answers.setdefault(item["id"], item)
    return found


def auc(scored: Sequence[tuple[float, bool]]) -> float | None:
    """Return the probability that a function whose fault was seen has a higher score than one without.

    Ties count half. None if all faults were seen, or none was.
    """
    above = [score for score, is_seen in scored if is_seen]
    below = [score for score, is_seen in scored if not is_seen]
    wins = sum((one > other) + 0.5 * (one == other) for one in above for other in below)
    return wins / (len(above) * len(below)) if above and below else None


def share(items: Sequence[Shown], holds: Callable[[Shown], bool]) -> str:
    """Return the share of items for which something holds, with its interval, as a cell of a table."""
    if not items:
        return "-"
    count = sum(map(holds, items))
    low, high = wilson(count, len(items))
    return f"{count}/{len(items)} = {count / len(items):.0%} ({low:.0%} to {high:.0%})"


def figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def rows_of(items: Sequence[Shown], reader: Reader) -> list[str]:
    """Return the cells of one reader's row; functions without an answer are not counted."""
    read = [item for item in items if item.id in reader.blind]
    corrupted = [item for item in read if item.corrupted]
    judged = [item for item in corrupted if item.id in reader.good]
    unremembered = [item for item in corrupted if not reader.remembers(item)]
    scored = [(item.glance, reader.names(item)) for item in corrupted if item.glance is not None]
    return [
        share(corrupted, reader.names),
        share(corrupted, lambda item: reader.names_from(item, "text")),
        share(corrupted, lambda item: reader.names_from(item, "text", "reasoning")),
        share(unremembered, reader.names),
        share(corrupted, reader.suspects),
        share([item for item in read if not item.corrupted], reader.alleges),
        share(corrupted, lambda item: reader.would_pass(item) and not reader.names_from(item, "text")),
        share(judged, lambda item: reader.verdict(item) == "good"),
        share(judged, lambda item: reader.verdict(item) == "good" and not reader.names(item)),
        figure(auc(scored)),
    ]


COLUMNS = (
    "named",
    "named from the text",
    "named without memory",
    "named, not remembered",
    "suspected",
    "alarms",
    "would pass, not named from the text",
    "good",
    "good, not named",
    "AUC",
)


def table(key: Sequence[Shown], readers: Sequence[Reader], by: str) -> list[str]:
    """Return the lines of a table with a row for each group and reader, and one per reader for all groups."""
    names = sorted({getattr(item, by) for item in key})
    rows = [(name, [item for item in key if getattr(item, by) == name]) for name in names] + [("all", [*key])]
    lines = [f"| {by} | reader | {' | '.join(COLUMNS)} |", "| --- " * (len(COLUMNS) + 2) + "|"]
    for name, items in rows:
        lines += [f"| {name} | {reader.name} | {' | '.join(rows_of(items, reader))} |" for reader in readers]
    return lines


def agreement(key: Sequence[Shown], one: Reader, other: Reader) -> list[str]:
    """Return lines about the agreement of two readers on named faults and on verdicts.

    They contain Cohen's kappa, and the shares of faults that both or either named and that both found good.
    """
    read = [item for item in key if item.corrupted and item.id in one.blind and item.id in other.blind]
    judged = [item for item in read if item.id in one.good and item.id in other.good]
    named = cohen_kappa((one.names(item), other.names(item)) for item in read)
    verdicts = cohen_kappa((one.verdict(item), other.verdict(item)) for item in judged)
    return [
        f"kappa, named or not: {figure(named)} of {len(read)}; verdicts: {figure(verdicts)} of {len(judged)}",
        f"named by both: {share(read, lambda item: one.names(item) and other.names(item))}",
        f"named by either: {share(read, lambda item: one.names(item) or other.names(item))}",
        f"good for both: {share(judged, lambda item: one.verdict(item) == other.verdict(item) == 'good')}",
    ]


def choice(key: Sequence[Shown], readers: Sequence[Reader]) -> list[str]:
    """Return three lines for each reader: the others' readings of the functions that it does not leave out.

    In the first line, it leaves out none; in the second, those whose fault it named from the text; in the
    third, those whose fault it named on any basis.
    """
    lines = []
    for chooser in readers:
        others = [reader for reader in readers if reader is not chooser]
        read = [item for item in key if item.corrupted and all(item.id in reader.blind for reader in readers)]
        ways: dict[str, Callable[[Shown], bool]] = {
            "nothing left out": lambda item: True,
            "left out if named from the text": lambda item, one=chooser: not one.names_from(item, "text"),
            "left out if named": lambda item, one=chooser: not one.names(item),
        }
        for way, stays in ways.items():
            left = [item for item in read if stays(item)]
            seen = sum(reader.names_from(item, "text") for reader in others for item in left)
            good = sum(
                reader.would_pass(item) and not reader.names_from(item, "text")
                for reader in others
                for item in left
            )
            lines.append(
                f"{chooser.name} chooses, {way}: {len(left)} of {len(read)} stay;"
                f" the others name {seen} of {len(left) * len(others)} from the text and would pass {good}"
            )
    return lines


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("key", type=Path)
    parser.add_argument("readers", type=Path, nargs="+", metavar="READER")
    parser.add_argument("--by", default="source", choices=("source", "library", "set"))
    options = parser.parse_args()
    key, readers = key_of(options.key), [reader_of(folder) for folder in options.readers]
    print("\n".join(table(key, readers, options.by)))
    if len(readers) == 2:
        print("\n".join(["", *agreement(key, *readers)]))
    if len(readers) > 1:
        print("\n".join(["", *choice(key, readers)]))


if __name__ == "__main__":
    main()
