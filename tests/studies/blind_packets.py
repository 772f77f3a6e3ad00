"""Writes packets of functions for blind readers, about half of them corrupted, and a key that they don't see.

    python tests/studies/blind_packets.py HOME [HOME ...] --into FOLDER --key KEY.jsonl
        [--new LIBRARY ...] [--seen LIBRARY ...] [--most 150] [--size 30] [--seed 1]

HOME is a GISTPOINT_HOME in which `gistpoint task generate` made campaigns, or for which
`tests/studies/faults_by_probe.py` drew faults. Up to --most proven corruptions of single functions are shown,
including those that did not become a task. For each of them, the files FOLDER/packet-N.md also contain an
untouched function of the same library and about the same length, if one is left.
`tests/studies/blind_truth.py` scores the answers.

Anything that would give a corruption away without reading it is left out. Each function occurs once in all
packets, in one version. Functions of a packet don't explain one another: none calls another, has its name, or
has a text that mentions it. If possible, they don't belong to one class either. All of them are laid out by
the same formatter, with their own comments.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from studies.blind_truth import UNTOUCHED

from gistpoint.core.code.index import Definition
from gistpoint.core.corruption.blind import BlindItem, ShownVersion
from gistpoint.core.generation.candidates import nested
from gistpoint.core.generation.library import SourceLibrary, read_library
from gistpoint.core.generation.removal import MIN_LINES, definitions
from gistpoint.core.generation.verdicts import CandidateVerdict, glance_of
from gistpoint.core.tasks.model import Target
from gistpoint.sandbox.ladder import choose

WIDTH = 100
"""The line length of the formatter."""
_FEW_WORDS = 4
"""The minimum length of a name that counts as mentioned; shorter ones are in most texts."""

FORM = """\
Each function below is from a Python library. Some contain one fault that makes tests of the library fail;
the others are as their authors left them. How many of each is not said. Open nothing but this packet.

Answer with a line of JSON for each function, in the order of the packet, in `blind-{number}.jsonl`:

    {{"id": "{example}", "named": ["7 return x"], "suspects": [], "confidence": 80,
     "basis": "text", "remembers": "no", "task": "yes"}}

- `named`: the faulty line, or at most two, each with its number; `[]` if you see nothing wrong.
- `suspects`: at most three lines that you doubt without being sure; `[]` if there are none.
- `confidence`: from 0 to 100, in `named`, also if it is empty.
- `basis` of `named`: `text` if the text alone shows it at first reading, `reasoning` if you had to work out how
  the function behaves, `memory` if you recall this library's code; also for `[]`.
- `remembers`: `yes` if you recall the code of this function, `named` if you named the line because of it,
  otherwise `no`.
- `task`: `yes` if finding out whether something is wrong here asks for reading other code or running tests, so
  that it would be a good task for a person; otherwise `no`.
"""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A function that a packet may show."""

    library: str
    home: SourceLibrary
    name: str
    """The function as `path::qualname`."""
    target: Target
    """Its text before and after, which are equal if it is untouched."""
    source: str = UNTOUCHED
    about: Mapping[str, Any] = field(default_factory=dict)
    """Further members of its line in the key."""

    @property
    def corrupted(self) -> bool:
        return self.source != UNTOUCHED

    @property
    def owner(self) -> str:
        """The class or function that contains it, with its file; empty at the top level."""
        path, _, qualname = self.name.partition("::")
        inner = qualname.rpartition(".")[0]
        return f"{path}::{inner}" if inner else ""

    @property
    def bare_name(self) -> str:
        return self.name.rpartition("::")[2].rpartition(".")[2].partition("#")[0]

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of both versions."""
        text = f"{self.target.original} {self.target.corrupted}"
        return frozenset("".join(c if c.isalnum() or c == "_" else " " for c in text).split())

    @property
    def lines(self) -> int:
        return self.target.corrupted.count("\n") + 1

    @property
    def item(self) -> BlindItem:
        return BlindItem("", self.library, self.target)

    def mentions(self, other: Candidate) -> bool:
        return len(other.bare_name) >= _FEW_WORDS and other.bare_name in self.words

    def explains(self, other: Candidate) -> bool:
        """Whether one of the two functions shows how the other should work."""
        if self.library != other.library:
            return False
        is_near = other.name in self.home.reach.steps(self.name, 1) or nested(self.name, other.name)
        is_named = self.bare_name == other.bare_name or self.mentions(other) or other.mentions(self)
        return is_near or is_named


def campaigns(home: Path) -> Iterator[tuple[str, str, list[CandidateVerdict]]]:
    """Yield the library, the source of the faults, and the verdicts of each campaign in a GISTPOINT_HOME."""
    for path in [
        *sorted((home / "data" / "campaigns").glob("*.jsonl")),
        *sorted((home / "probed").glob("*.jsonl")),
    ]:
        lines = [json.loads(line) for line in path.read_bytes().splitlines() if line.endswith(b"}")]
        settings = lines[0]["settings"]
        source = "rewrite" if settings.get("rewrite") else settings.get("source", "operators")
        rows = [line for line in lines if line.get("type") == "verdict"]
        bare = [{key: row[key] for key in row if key != "type"} for row in rows]
        yield lines[0]["source"][1], source, [CandidateVerdict.from_json(row) for row in bare]


def libraries(homes: Iterable[Path]) -> dict[str, SourceLibrary]:
    """Return the libraries in GISTPOINT_HOME folders by name, without those that can't be read."""
    backend = choose(None, consented=False).name
    found: dict[str, SourceLibrary] = {}
    for folder in sorted(folder for home in homes for folder in (home / "cache" / "libraries").iterdir()):
        try:
            library = read_library(folder, backend)
        except (FileNotFoundError, ValueError):
            continue
        found.setdefault(library.intake.repository.source.name, library)
    return found


def proven(homes: Iterable[Path], known: Mapping[str, SourceLibrary]) -> list[Candidate]:
    """Return the proven corruptions of single functions, each function once, those of operators first.

    Those of libraries that are not `known` are left out, and the libraries are named on standard error.
    """
    found: dict[tuple[str, str], Candidate] = {}
    every = [campaign for home in homes for campaign in campaigns(home)]
    for name in sorted({name for name, *_ in every} - set(known)):
        print(f"{name} is left out: its analysis can't be read.", file=sys.stderr)
    every = [campaign for campaign in every if campaign[0] in known]
    for name, source, verdicts in sorted(every, key=lambda campaign: campaign[1] != "operators"):
        kept = [verdict for verdict in verdicts if verdict.kept and len(verdict.kept.targets) == 1]
        for verdict in kept:
            assert verdict.kept is not None
            (target,) = verdict.kept.targets
            about = {
                "glance": glance_of(verdict),
                "proof": verdict.kept.provenance.get("proof", "suite"),
                "pool": len(kept),
                "candidates": len(verdicts),
                "failing": sorted(verdict.kept.failing_ids)[:5],
                "failing_tests": len(verdict.kept.failing_ids),
                "confirmable": verdict.controls.confirmable if verdict.controls else None,
                "parts": [_key_members(part) for part in verdict.kept.provenance.get("parts", ())],
            }
            candidate = Candidate(name, known[name], target.name, target, source, about)
            # The text of an inner function is part of the outer one's, so only one of them is shown.
            if not any(lib == name and nested(target.name, other) for lib, other in found):
                found.setdefault((name, target.name), candidate)
    return list(found.values())


def _key_members(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return those members of a part's provenance that the key contains."""
    wanted = ("families", "signs", "origin", "history", "subtlety")
    return {key: part[key] for key in wanted if key in part}


def untouched(library: str, home: SourceLibrary, taken: frozenset[str]) -> list[Candidate]:
    """Return the functions of a library that are not `taken`, too short, or overloads."""
    found = definitions(home.intake.repository.tree, home.test_files)
    return [
        Candidate(library, home, str(one.ref), Target(one.ref.path, one.qualname, *[one.dedented] * 2))
        for one in found
        if one.end_line - one.def_line >= MIN_LINES and str(one.ref) not in taken and not _is_stub(one)
    ]


def _is_stub(one: Definition) -> bool:
    return any("overload" in text for text in one.decorators)


def formatted(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the functions laid out by one formatter, without corruptions that changed only the layout."""
    with tempfile.TemporaryDirectory() as place:
        for number, one in enumerate(candidates):
            for kind, text in (("a", one.target.original), ("b", one.target.corrupted)):
                Path(place, f"{number}{kind}.py").write_text(text, "utf-8")
        options = [f"--line-length={WIDTH}", "--config=format.skip-magic-trailing-comma=true"]
        ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--quiet", *options]
        subprocess.run([*ruff, place], check=False)
        texts = [
            [Path(place, f"{number}{kind}.py").read_text("utf-8") for kind in "ab"]
            for number in range(len(candidates))
        ]
    laid = [
        replace(one, target=replace(one.target, original=before, corrupted=after))
        for one, (before, after) in zip(candidates, texts, strict=True)
    ]
    return [one for one in laid if one.corrupted == (one.target.original != one.target.corrupted)]


def beside(corrupted: Sequence[Candidate], chance: random.Random) -> list[Candidate]:
    """Return an untouched function of the same library and about the same length for each corrupted one.

    It preferably explains no corruption. There is none if all of the library's functions are used.
    """
    found: list[Candidate] = []
    for library, own in by_library(corrupted).items():
        home = own[0].home
        left = untouched(library, home, frozenset(one.name for one in own))
        chance.shuffle(left)
        left.sort(key=lambda one: sum(map(one.explains, own)))
        left = [one for one in left if not any(nested(one.name, other.name) for other in own)]
        for one in own:
            free = [other for other in left if not any(map(other.explains, own))] or left
            if free:
                length = one.lines
                chosen = min(free[:40], key=lambda other: abs(other.lines - length))
                found.append(chosen)
                left.remove(chosen)
    return found


def by_library(candidates: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    found: defaultdict[str, list[Candidate]] = defaultdict(list)
    for one in candidates:
        found[one.library].append(one)
    return dict(found)


def drawn(candidates: Sequence[Candidate], most: int, chance: random.Random) -> list[Candidate]:
    """Return up to `most` corruptions.

    Those of all sources but the most frequent one come first, then those of that source, with its libraries
    in turn.
    """
    frequent = Counter(one.source for one in candidates).most_common(1)[0][0]
    found = [one for one in candidates if one.source != frequent][:most]
    queues = list(by_library(one for one in candidates if one.source == frequent).values())
    for queue in queues:
        chance.shuffle(queue)
    while len(found) < most and any(queues):
        found += [queue.pop() for queue in queues if queue][: most - len(found)]
    return found


def packets_of(
    candidates: Sequence[Candidate], size: int, chance: random.Random
) -> tuple[list[list[Candidate]], list[Candidate]]:
    """Return the functions in packets of about the same size, and those that fit into none."""
    packets: list[list[Candidate]] = [[] for _ in range(max(1, round(len(candidates) / size)))]
    left: list[Candidate] = []
    order = list(candidates)
    chance.shuffle(order)
    # Functions with many relatives are placed while there is still room away from them.
    order.sort(key=lambda one: -sum(map(one.explains, candidates)))
    for one in order:
        fitting = [packet for packet in packets if not any(map(one.explains, packet))]
        if not fitting:
            left.append(one)
            continue
        min(fitting, key=lambda packet: _crowding(one, packet)).append(one)
    for packet in packets:
        chance.shuffle(packet)
    return packets, left


def _crowding(one: Candidate, packet: Sequence[Candidate]) -> tuple[int, int, int]:
    """Return how badly a function fits into a packet; lower is better."""
    siblings = sum(bool(one.owner) and (one.owner, one.library) == (it.owner, it.library) for it in packet)
    alike = sum(it.corrupted == one.corrupted for it in packet)
    return siblings, alike, sum(it.library == one.library for it in packet)


def shown(one: Candidate, id: str) -> Iterator[str]:
    """Yield the lines with which a packet shows a function."""
    yield f"## {id}"
    yield f"{one.library}, `{one.name.partition('#')[0]}`"
    yield "```python"
    rows = one.item.text(ShownVersion.CORRUPTED).splitlines()
    yield from (f"{number:>3} | {row}".rstrip() for number, row in enumerate(rows, start=1))
    yield "```"
    yield ""


def key_line(one: Candidate, id: str, packet: int, set: str) -> dict[str, Any]:
    """Return a function's line of the key."""
    plain = {"id": id, "packet": packet, "library": one.library, "set": set, "source": one.source}
    if not one.corrupted:
        return {**plain, "function": one.name}
    item = one.item
    before, after = (item.text(it).splitlines() for it in (ShownVersion.ORIGINAL, ShownVersion.CORRUPTED))
    near = [f"{number} {row.strip()}" for number, row in enumerate(after, start=1) if item.is_hit(number)]
    diff = "\n".join(difflib.unified_diff(before, after, lineterm="", n=2))
    return {**plain, "function": one.name, "near": near, **one.about, "diff": diff}


def parsed() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("homes", type=Path, nargs="+", metavar="HOME")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--new", nargs="*", default=[], help="libraries too recent to be remembered")
    parser.add_argument("--seen", nargs="*", default=[], help="libraries of earlier studies")
    parser.add_argument("--most", type=int, default=150)
    parser.add_argument("--size", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    options = parsed()
    chance = random.Random(options.seed)
    candidates = formatted(proven(options.homes, libraries(options.homes)))
    if not candidates:
        sys.exit("There are no proven corruptions of single functions.")
    corrupted = drawn(candidates, options.most, chance)
    others = formatted(beside(corrupted, chance))
    packets, left = packets_of([*corrupted, *others], options.size, chance)
    options.into.mkdir(parents=True, exist_ok=True)
    sets = dict.fromkeys(options.new, "new") | dict.fromkeys(options.seen, "seen")
    ids = iter(chance.sample(range(100, 1000), sum(map(len, packets))))
    key = []
    for number, packet in enumerate(packets, start=1):
        named = [(f"F{next(ids)}", one) for one in packet]
        rows = [
            FORM.format(number=number, example=named[0][0]),
            *(row for id, one in named for row in shown(one, id)),
        ]
        (options.into / f"packet-{number}.md").write_text("\n".join(rows), "utf-8")
        key += [key_line(one, id, number, sets.get(one.library, "unseen")) for id, one in named]
    options.key.write_text("".join(json.dumps(line) + "\n" for line in key), "utf-8")
    for (library, source), count in sorted(Counter((it["library"], it["source"]) for it in key).items()):
        print(f"{library:20} {source:12} {count}")
    print(f"{len(key)} functions in {len(packets)} packets; {len(left)} fit into none")


if __name__ == "__main__":
    main()
