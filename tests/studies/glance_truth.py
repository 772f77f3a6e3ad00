"""Determines what readers see at a glance: draws corruptions, makes blind packets, and joins the readings.

    python tests/studies/glance_truth.py draw POOL.jsonl --home HOME --only NAME ... [--each 8] [--seed 1]
    python tests/studies/glance_truth.py packet POOL.jsonl PACKET --home HOME [--seed 1] [--originals 40]
        [--most N]
    python tests/studies/glance_truth.py reveal PACKET BLIND.jsonl
    python tests/studies/glance_truth.py join PACKET READER BLIND.jsonl VERDICTS.jsonl --into TRUTH.jsonl
    python tests/studies/glance_truth.py table TRUTH.jsonl

HOME is a GISTPOINT_HOME whose libraries `gistpoint task generate` analysed. A packet contains numbered
functions, corrupted and untouched ones in one random order; a separate file, for `reveal` and `join`, records
which are corrupted. A blind line is {"n": 3, "blind": "fault" | "unsure" | "clean", "line": 7, "words":
"..."}. A verdict line, given after the differences were revealed, is {"n": 3, "verdict": "good", "words":
"..."}; the verdict is a value of `GlanceVerdict`.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gistpoint.core.code.index import Definition, DefinitionKind, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.corruption.blind import GlanceVerdict
from gistpoint.core.corruption.corruptions import Corruption, enumerate_corruptions, record_of, replay
from gistpoint.core.generation.context import Context, close_contexts
from gistpoint.core.generation.library import SourceLibrary, read_library
from gistpoint.core.generation.removal import definitions
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.locations import Locations
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Target
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.pools import SandboxHarness
from gistpoint.sandbox.testruns import SuiteRunner

LEAST_LINES = 4
"""The minimum number of code lines of a function that is read."""
TRIES = 5
"""The maximum number of functions probed for each wanted function."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, call, places in (
        ("draw", draw, ("pool",)),
        ("packet", packet, ("pool", "packet")),
        ("reveal", reveal, ("packet", "blind")),
        ("join", join, ("packet", "reader", "blind", "verdicts")),
        ("table", table, ("truth",)),
    ):
        command = commands.add_parser(name)
        for place in places:
            command.add_argument(place, type=str if place == "reader" else Path)
        command.set_defaults(call=call)
        command.add_argument("--home", type=Path)
        command.add_argument("--only", nargs="*", default=[])
        command.add_argument("--families", nargs="*", default=[], help="corruptions with one of these alone")
        command.add_argument("--each", type=int, default=8)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--originals", type=int, default=40)
        command.add_argument("--most", type=int)
        command.add_argument("--into", type=Path)
    options = parser.parse_args()
    if options.home:
        os.environ["GISTPOINT_HOME"] = str(options.home)
    options.call(options)


def harness() -> SandboxHarness:
    """Return the harness of this machine's strongest backend, with the cache of the home."""
    runner = SuiteRunner(choose(None, consented=False), EnvironmentStore(Locations.of_user().cache))
    return SandboxHarness.on(runner.backend)


def libraries(home: Path, only: Sequence[str] = ()) -> Iterator[tuple[Path, str, SourceLibrary]]:
    """Yield the analysed libraries in a GISTPOINT_HOME: the folder, `name==version`, and the library."""
    backend = harness().runner().backend.name
    for folder in sorted((home / "cache" / "libraries").iterdir()):
        try:
            library = read_library(folder, backend)
        except (FileNotFoundError, ValueError):
            continue
        source = library.intake.repository.source
        named = f"{source.name}=={source.revision}"
        if not only or named in only:
            yield folder, named, library


def corruptible(library: SourceLibrary) -> dict[str, Definition]:
    """Return the functions of at least `LEAST_LINES` code lines that a test covers, by name.

    Functions that run at import are left out.
    """
    found: dict[str, Definition] = {}
    tree = library.intake.repository.tree
    for definition in definitions(tree, library.test_files):
        name = str(definition.ref)
        row = library.by_name.get(name)
        lines = 0 if row is None or row.complexity is None else row.complexity.code_lines
        if lines < LEAST_LINES or not library.seeing((name,)):
            continue
        if definition.kind is not DefinitionKind.CLASS and name not in library.test_map.at_import:
            found[name] = definition
    return found


def draw(options: argparse.Namespace) -> None:
    """Draw corruptions that break a test, each of another function, up to `each` from each library."""
    for folder, source, library in libraries(options.home):
        if options.only and source.partition("==")[0] not in options.only:
            continue
        chance = random.Random(f"{options.seed} {source}")
        functions = corruptible(library)
        names = sorted(functions)
        chance.shuffle(names)
        context = Context(
            folder,
            harness(),
            CampaignSettings(CampaignMode.DISCOVERY),
            learned=library,
        )
        kept = 0
        for name in names[: TRIES * options.each]:
            if kept == options.each:
                break
            definition = functions[name]
            index = index_source(
                definition.ref.path, library.intake.repository.tree.read(definition.ref.path)
            )
            choices = _fitting(
                enumerate_corruptions(index, definition, library.vocabulary).kept, options.families
            )
            if not choices:
                continue
            item = _by_family(choices, chance)
            report = context.prober.decide((item.target,), library.seeing((name,)), stop_after=3)
            if report.status is not RunStatus.FINISHED or not report.failed:
                continue
            kept += 1
            with options.pool.open("a", encoding="utf-8") as file:
                file.write(
                    json.dumps({"source": source, "record": record_of(item), "failing": len(report.failed)})
                )
                file.write("\n")
        context.prober.close()
        print(f"{source}: {kept} drawn of {len(names)} functions", file=sys.stderr, flush=True)
    close_contexts()


def _fitting(found: Sequence[Corruption], families: Sequence[str]) -> list[Corruption]:
    return [item for item in found if not families or set(item.families) & set(families)]


def _by_family(found: Sequence[Corruption], chance: random.Random) -> Corruption:
    """Draw a family, then one of its corruptions, so that common families do not crowd out the others."""
    by_family: dict[tuple[str, ...], list[Corruption]] = defaultdict(list)
    for item in found:
        by_family[item.families].append(item)
    family = chance.choices(
        sorted(by_family), [max(by_family[key][0].prior, 0.02) for key in sorted(by_family)]
    )[0]
    return chance.choice(by_family[family])


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the values of a file of JSON lines."""
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def packet(options: argparse.Namespace) -> None:
    """Write a packet: `packet.md` to read blind, and `key.jsonl` with the origin of each number."""
    chance = random.Random(f"packet {options.seed}")
    pool = lines_of(options.pool)
    sources = sorted({entry["source"] for entry in pool})
    known = {source: library for _, source, library in libraries(options.home, sources)}
    if missing := set(sources) - set(known):
        sys.exit(f"The analysis of {', '.join(sorted(missing))} can't be read.")
    functions = {source: corruptible(known[source]) for source in sources}
    chance.shuffle(pool)
    pool = pool[: options.most]
    items: list[tuple[dict[str, Any], Target]] = []
    for entry in pool:
        items.append((entry, replay(entry["record"], known[entry["source"]].intake.repository.tree)))
    taken = {(entry["source"], target.name) for entry, target in items}
    for source, name in untouched(functions, taken, options.originals, chance):
        text = functions[source][name].dedented
        path, _, qualname = name.partition("::")
        items.append(({"source": source}, Target(path, qualname, text, text)))
    chance.shuffle(items)
    options.packet.mkdir(parents=True, exist_ok=True)
    with (
        (options.packet / "packet.md").open("w", encoding="utf-8") as text,
        (options.packet / "key.jsonl").open("w", encoding="utf-8") as key,
    ):
        for n, (entry, target) in enumerate(items, start=1):
            numbered = "\n".join(
                f"{i:3} {line}" for i, line in enumerate(target.corrupted.split("\n"), start=1)
            )
            text.write(f"## {n}\n{entry['source']} {target.name}\n```\n{numbered}\n```\n\n")
            key.write(
                json.dumps({"n": n, **entry, "original": target.original, "corrupted": target.corrupted})
                + "\n"
            )


def untouched(
    functions: Mapping[str, Collection[str]],
    taken: Collection[tuple[str, str]],
    most: int,
    chance: random.Random,
) -> list[tuple[str, str]]:
    """Draw up to `most` functions that are not taken, by source, each with its source."""
    every = {(source, name) for source, names in functions.items() for name in names}
    sources = sorted(source for source, names in functions.items() if names)
    found: list[tuple[str, str]] = []
    while len(found) < min(most, len(every.difference(taken))):
        source = chance.choice(sources)
        drawn = source, chance.choice(sorted(functions[source]))
        if drawn not in taken and drawn not in found:
            found.append(drawn)
    return found


def changed(original: str, corrupted: str) -> set[int]:
    """Return the numbers of the corrupted text's changed lines; around deleted lines, both neighbours."""
    matcher = difflib.SequenceMatcher(None, original.split("\n"), corrupted.split("\n"), autojunk=False)
    found: set[int] = set()
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag != "equal":
            found |= set(range(start, end + 2)) if start == end else set(range(start + 1, end + 1))
    return found


def reveal(options: argparse.Namespace) -> None:
    """Print the difference of each corrupted function of a packet, with its blind reading."""
    blind = {line["n"]: line for line in lines_of(options.blind)}
    for item in lines_of(options.packet / "key.jsonl"):
        if "record" in item:
            said = blind.get(item["n"], {})
            print(
                f"## {item['n']}\nblind: {said.get('blind')} line {said.get('line')}: {said.get('words')}\n```diff"
            )
            sides = item["original"].split("\n"), item["corrupted"].split("\n")
            print(
                "\n".join(list(difflib.unified_diff(*sides, "original", "corrupted", lineterm="", n=4))[2:])
            )
            print("```\n")


def join(options: argparse.Namespace) -> None:
    """Add a reader's readings of a packet to the truth, and print the reader's false alarms."""
    truth = lines_of(options.into) if options.into.is_file() else []
    by_hash = {(entry["source"], entry["record"]["corrupted_sha256"]): entry for entry in truth}
    blind = {line["n"]: line for line in lines_of(options.blind)}
    verdicts = {line["n"]: line for line in lines_of(options.verdicts)}
    alarms, originals = 0, 0
    for item in lines_of(options.packet / "key.jsonl"):
        said = blind[item["n"]]
        if "record" not in item:
            originals, alarms = originals + 1, alarms + (said["blind"] == "fault")
            continue
        place = (item["source"], item["record"]["corrupted_sha256"])
        entry = by_hash.get(place)
        if entry is None:
            entry = by_hash[place] = {"source": item["source"], "record": item["record"], "readings": []}
            truth.append(entry)
        near = {line + step for line in changed(item["original"], item["corrupted"]) for step in (-1, 0, 1)}
        entry["readings"].append(
            {
                "reader": options.reader,
                "blind": said["blind"],
                "line_hit": said.get("line") in near,
                "verdict": GlanceVerdict(verdicts[item["n"]]["verdict"]).value,
                "words": verdicts[item["n"]]["words"],
            }
        )
    options.into.write_text("".join(json.dumps(entry, sort_keys=True) + "\n" for entry in truth), "utf-8")
    print(f"{len(truth)} corruptions; false alarms of {options.reader}: {alarms} of {originals} originals")


def kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Return Cohen's kappa of two readings."""
    agreed = sum(one == two for one, two in pairs) / len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(two for _, two in pairs)
    expected = sum(first[name] * second[name] for name in first) / len(pairs) ** 2
    return (agreed - expected) / (1 - expected) if expected < 1 else 1.0


def table(options: argparse.Namespace) -> None:
    """Print the first verdicts by library and by family, and the agreement on corruptions read twice."""
    truth = lines_of(options.truth)
    names = [verdict.value for verdict in GlanceVerdict]
    for title, groups in (
        ("library", lambda entry: [entry["source"]]),
        ("family", lambda entry: [" + ".join(entry["record"]["families"])]),
        ("all", lambda entry: ["all"]),
    ):
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for entry in truth:
            for name in groups(entry):
                counts[name][entry["readings"][0]["verdict"]] += 1
        print(f"| {title} | n | {' | '.join(names)} |\n{'|---' * (len(names) + 2)}|")
        for name, found in sorted(counts.items(), key=lambda item: (-sum(item[1].values()), item[0])):
            print(
                f"| {name} | {sum(found.values())} | {' | '.join(str(found[verdict]) for verdict in names)} |"
            )
        print()
    twice = [entry["readings"] for entry in truth if len(entry["readings"]) > 1]
    if twice:
        full = [(readings[0]["verdict"], readings[1]["verdict"]) for readings in twice]
        seen = [(str(one == "at a glance"), str(two == "at a glance")) for one, two in full]
        print(
            f"read twice: {len(twice)}; kappa of four verdicts {kappa(full):.2f}, at a glance or not {kappa(seen):.2f}"
        )
        print(Counter(full).most_common())


if __name__ == "__main__":
    try:
        main()
    except CodeError as error:
        sys.exit(str(error))
