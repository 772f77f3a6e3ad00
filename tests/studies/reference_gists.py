"""Reference gists of real libraries, made and tried where gists are scored: how many hold, what they reach and cost.

    python tests/studies/reference_gists.py LAB [LIBRARY ...] [--count 10] [--seed 0] [--seconds 60] [--out refs.jsonl]
    python tests/studies/reference_gists.py --table refs.jsonl [MORE.jsonl ...]

LAB is a folder for what is fetched and built. `--table` also reads what `gist_scores.py` wrote.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gist_lab import LIBRARIES, Lab, made_reference

from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.model import entrypoint_of


def table(paths: Iterable[Path]) -> None:
    """Print shares, medians and reasons by library."""
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    made = [row for row in rows if "reference" in row]
    for library in [*dict.fromkeys(row["library"] for row in made), ""]:
        own = [row for row in made if not library or row["library"] == library]
        held = [row for row in own if row["reference"]["faithful"]]
        print(f"{library or 'all':<10} {len(held)}/{len(own)} faithful, {_medians(held)}")
    reasons = Counter(
        (row["library"], row["reference"]["reason"].splitlines()[0][:120]) for row in made if row["reference"]["reason"]
    )
    for (library, reason), count in reasons.most_common():
        print(f"  {count} {library}: {reason}")


def _medians(held: list[dict[str, Any]]) -> str:
    def of(values: list[float | None]) -> str:
        known = [value for value in values if value is not None]
        return f"{statistics.median(known):.1f}" if known else "-"

    figures = [row["scores"].get("reference", {}) if "scores" in row else row["reference"] for row in held]
    execution = of([one.get("execution", one.get("line_execution")) for one in figures])
    existence = of([one.get("existence", one.get("line_existence")) for one in figures])
    seconds = of([row["reference"]["seconds"] for row in held])
    return f"execution {execution}, existence {existence}, {seconds} s (medians)"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("lab", nargs="?", type=Path)
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path("refs.jsonl"))
    parser.add_argument("--table", type=Path, nargs="+")
    options = parser.parse_args()
    if options.table:
        table(options.table)
        return
    lab = Lab(options.lab.resolve())
    for name in options.libraries or LIBRARIES:
        for found in lab.tasks(LIBRARIES[name], options.count, options.seed):
            if not isinstance(found, GistJudge):
                print(name, found[0], "refused:", found[1].reason, flush=True)
                continue
            reference, runs = made_reference(found, options.seconds)
            values = {slot: getattr(reference, slot) for slot in reference.__slots__}
            row = {"library": name, "entrypoint": entrypoint_of(found.task), "reference": {**values, "runs": runs}}
            with options.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(
                name, entrypoint_of(found.task), {k: v for k, v in row["reference"].items() if k != "text"}, flush=True
            )


if __name__ == "__main__":
    main()
