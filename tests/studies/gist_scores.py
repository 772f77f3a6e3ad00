"""Scores gists of known quality on entrypoints of real libraries, and lists refused entrypoints.

    python tests/studies/gist_scores.py LAB [LIBRARY ...] [--count 10] [--seed 0] [--seconds 60]
        [--out scores.jsonl]
    python tests/studies/gist_scores.py --table scores.jsonl [scores.jsonl ...]

LAB is a folder for fetched and built files. The gists of each entrypoint are the pasted modules that ran, an
empty file, the test alone, the unchanged test file, which imports the package, the same with mocks instead of
the imports, and the reference gist. Further gists, with one run each, are the pasted modules and the
reference gist folded onto few lines, the reference gist padded with a line that exists and runs, and fakes of
it (`gist_tricks`). The output has one JSON object per line; `--table` prints figures by library and kind, the
effect of padding and folding on the rates, and the faithful fakes without a flag. Existing results in --out
are kept.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from gist_lab import LIBRARIES, Lab, made_reference
from gist_tricks import fakes, folded, padded

from gistpoint.core.kinds.gist.flags import module_names
from gistpoint.core.kinds.gist.intake import NoGistError
from gistpoint.core.kinds.gist.judge import GistJudge, sources_of
from gistpoint.core.kinds.gist.lines import import_texts
from gistpoint.core.kinds.gist.model import entrypoint_of
from gistpoint.core.kinds.gist.original_test import imports_owned, original_test
from gistpoint.core.kinds.gist.rates import ExistenceReport
from gistpoint.core.kinds.gist.reference import pasted
from gistpoint.core.kinds.gist.trace import read_trace
from gistpoint.core.trees import SourceTree

KINDS = ("pasted", "empty", "test alone", "importing", "mocking", "reference")
MOVED = {"pasted, folded": "pasted", "padded": "reference", "folded": "reference"}
"""For each of these kinds, the kind that must have the same rates."""


def mocking(judge: GistJudge) -> str:
    """Return the test file with a mock in place of each name that it imports from the codebase."""
    assert judge.answer.test is not None
    source, owned = judge.answer.test.source, judge.answer.owned
    names: list[str] = []
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if any(imports_owned(text, owned) for text in import_texts(node)):
            names += [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    head = ["import sys", "from unittest.mock import MagicMock"]
    head += [f"sys.modules[{name!r}] = MagicMock()" for name in owned]
    head += [f"{name} = MagicMock()" for name in dict.fromkeys(names) if name.isidentifier()]
    future = [line for line in lines if line.startswith("from __future__")]
    return "\n".join([*future, *head, *(line for line in lines if line not in future)]) + "\n"


def scored(judge: GistJudge, gist: str, *, thorough: bool = True) -> dict[str, Any]:
    """Return the figures of one gist."""
    began = time.monotonic()
    judgement = judge.judge(gist, thorough=thorough)
    score = judgement.score
    error = score.error
    return {
        "fidelity": score.execution_fidelity,
        "self_contained": score.self_contained,
        "execution": score.execution.rate if score.execution else None,
        "existence": score.existence.rate if score.existence else None,
        "paper": [report.paper.rate if report else None for report in (score.execution, score.existence)],
        "existence_without_test": score.existence.rate_without_test if score.existence else None,
        "test_score": score.test.recall if score.test else None,
        "error": f"{error.category} {error.kind}".rstrip() if error else "",
        "evidence": error.evidence[:300] if error else "",
        "flags": {
            name: getattr(score.flags, name) for name in score.flags.__slots__ if getattr(score.flags, name)
        },
        "flips": judgement.flips,
        "seconds": round(time.monotonic() - began, 1),
    }


def study(judge: GistJudge, seconds: float) -> dict[str, Any]:
    """Return an entrypoint's size, the scores of its gists by kind, and data on its reference gist."""
    answer, test = judge.answer, judge.answer.test
    assert test is not None
    sources = sources_of(SourceTree.open(judge.task.tree_path))
    reference, runs = made_reference(judge, seconds)
    gists = {
        "pasted": pasted(sources, read_trace(answer.trace), answer.owned),
        "empty": "",
        "test alone": original_test(test.source, test.qualname),
        "importing": test.source,
        "mocking": mocking(judge),
    }
    scores = {kind: scored(judge, gist) for kind, gist in gists.items()}
    tricks = {"pasted, folded": folded(gists["pasted"])}
    if reference.faithful:
        scores["reference"] = scored(judge, reference.text)
        tricks |= _tricks(judge, reference.text)
    scores |= {kind: scored(judge, gist, thorough=False) for kind, gist in tricks.items()}
    made = {
        "faithful": reference.faithful,
        "how": reference.how,
        "reason": reference.reason[:600],
        "runs": runs,
    }
    made |= {"seconds": reference.seconds, "text": reference.text}
    return {
        "calls": answer.difficulty.calls,
        "files": answer.difficulty.files,
        "scores": scores,
        "reference": made,
    }


def _tricks(judge: GistJudge, reference: str) -> dict[str, str]:
    answer, test = judge.answer, judge.answer.test
    assert test is not None
    existence = judge.judge(reference, thorough=False).score.existence
    names = module_names(test.source, answer.owned, answer.modules)
    made = fakes(reference, original_test(test.source, test.qualname), names)
    found = {f"fake by {kind}": gist for kind, gist in made.items()}
    return {"padded": padded(reference, _padding(existence)), "folded": folded(reference), **found}


def _padding(existence: ExistenceReport | None) -> str:
    """Return an import that exists in both the gist and the codebase; `1` if there is none."""
    lines = (one.line.text for one in (existence.lines if existence else ()) if one.exists and not one.block)
    return next(
        (text for text in lines if text.startswith(("import ", "from ")) and "__future__" not in text), "1"
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the results in a file; empty if there is no file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.is_file() else []


def table(paths: list[Path]) -> None:
    """Print the figures of the result files by library and kind of gist."""
    rows = [row for path in paths for row in rows_of(path)]
    for library in dict.fromkeys(row["library"] for row in rows):
        own = [row for row in rows if row["library"] == library]
        made = [row for row in own if "refused" not in row]
        refused = Counter(row["refused"] for row in own if "refused" in row)
        print(f"\n{library}: {len(made)} made, refused {dict(refused)}")
        for kind in KINDS:
            scores = [row["scores"][kind] for row in made if kind in row["scores"]]
            if scores:
                print(f"  {kind:<11} {_figures(scores)}")
        for kind, base in MOVED.items():
            pairs = [(row["scores"][kind], row["scores"][base]) for row in made if kind in row["scores"]]
            if pairs:
                print(f"  {kind:<14} {_moved(pairs)}")
        tricked = [
            (kind, score)
            for row in made
            for kind, score in row["scores"].items()
            if kind.startswith("fake by ")
        ]
        for kind in dict.fromkeys(kind for kind, _ in tricked):
            faithful = [score for name, score in tricked if name == kind and score["fidelity"]]
            print(
                f"  {kind:<18} faithful {len(faithful)}, no flag {sum(not s['flags'].get('mocked') for s in faithful)}"
            )
        references = [row["reference"] for row in made]
        if references:
            times = statistics.median(one["seconds"] for one in references)
            print(
                f"  reference gists: {sum(one['faithful'] for one in references)} faithful, median {times:.0f} s"
            )


def _moved(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """Return the maximum increase of the gists' rates over those of others, by both definitions."""

    def most(rates: list[tuple[float | None, float | None]]) -> str:
        moved = [one - other for one, other in rates if one is not None and other is not None]
        return f"{max(moved):+.1f}" if moved else "-"

    own = ", ".join(
        f"{key} {most([(a[key], b[key]) for a, b in pairs])}" for key in ("execution", "existence")
    )
    paper = ", ".join(most([(a["paper"][n], b["paper"][n]) for a, b in pairs]) for n in (0, 1))
    return f"n {len(pairs)}, moves {own}; as the paper counts {paper}"


def _figures(scores: list[dict[str, Any]]) -> str:
    def median(key: str) -> str:
        found = [score[key] for score in scores if score[key] is not None]
        return f"{statistics.median(found):.1f}" if found else "-"

    errors = Counter(score["error"] for score in scores if score["error"])
    flags = Counter(name for score in scores for name in score["flags"])
    return (
        f"n {len(scores)}, fidelity {sum(score['fidelity'] for score in scores)}, "
        f"self-contained {sum(score['self_contained'] for score in scores)}, execution {median('execution')}, "
        f"existence {median('existence')} (without test {median('existence_without_test')}), "
        f"test {median('test_score')}, errors {dict(errors)}, flags {dict(flags)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("lab", nargs="?", type=Path)
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path("scores.jsonl"))
    parser.add_argument("--table", type=Path, nargs="+")
    options = parser.parse_args()
    if options.table:
        table(options.table)
        return
    lab = Lab(options.lab.resolve())
    for name in options.libraries or LIBRARIES:
        known = {
            row["entrypoint"]: "refused" not in row for row in rows_of(options.out) if row["library"] == name
        }
        for found in lab.tasks(LIBRARIES[name], options.count, options.seed, known=known):
            if isinstance(found, GistJudge):
                row = {
                    "library": name,
                    "entrypoint": entrypoint_of(found.task),
                    **study(found, options.seconds),
                }
                told = {
                    kind: (s["fidelity"], s["error"], s["existence"]) for kind, s in row["scores"].items()
                }
            else:
                command, refusal = found
                assert isinstance(refusal, NoGistError)
                row = {
                    "library": name,
                    "entrypoint": command,
                    "refused": refusal.reason,
                    "why": str(refusal)[:600],
                }
                told = {"refused": refusal.reason}
            with options.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(name, row["entrypoint"], told, flush=True)


if __name__ == "__main__":
    main()
