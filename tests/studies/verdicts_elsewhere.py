"""Checks that the bundle for other harnesses decides as gistpoint does, on trees of repairs and on gists.

Usage: python tests/studies/verdicts_elsewhere.py [--trees 200] [--gists 100] [--python PYTHON] [--seed N]

Trees and gists of the demo's tasks are judged here and by the bundle. PYTHON is an interpreter with pytest
that every user may run: the tested code then runs as another user, as in a container; without it, the code
runs as the user who runs the study. Prints each difference, for gists with the reason of the verdict
here (a busy machine exceeds time limits), and counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from verifying import Elsewhere, as_taken, gists, trees, write_place

from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.model import is_gist
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner


def main() -> int:
    """Judge and compare; return 1 if a verdict differs, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--gists", type=int, default=100)
    parser.add_argument("--python", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        base.chmod(0o755)
        backend, environments = choose(None, consented=True), EnvironmentStore(base / "cache")
        tasks = [task for _, task in unpack_demo(base / "demo")]
        repairs = [task for task in tasks if not is_gist(task)]
        for number, task in enumerate(tasks):
            answer = read_answer(task)
            python = [options.python] if options.python else ()
            other = Elsewhere.of(task, answer, backend.name, base / f"elsewhere-{number}", python)
            if is_gist(task):
                judge = GistJudge(task, gist_answer(answer), GistRunner(backend, environments))
                for n, (kind, text) in enumerate(gists(answer, options.gists, options.seed)):
                    verdict = judge.verdict(text, thorough=True)
                    ours = 0 if verdict.score is None else verdict.score.execution_fidelity
                    place = base / f"gist-{n}"
                    place.mkdir()
                    (place / "test_gist.py").write_text(text, encoding="utf-8")
                    why = f" ({verdict.status}: {verdict.reason})"
                    note(counts, "gist", kind, (bool(ours), float(ours)), other.verdict(place), why)
                continue
            suite = RepairJudge(task, answer, SuiteRunner(backend, environments))
            share = options.trees // len(repairs) + (repairs.index(task) < options.trees % len(repairs))
            for n, (kind, tree) in enumerate(trees(task, answer, share, options.seed)):
                place = write_place(tree, base / f"tree-{number}-{n}")
                found = suite.judge(as_taken(task, place))
                note(counts, "tree", kind, (found.solved, found.score.value), other.verdict(place))
    print(", ".join(f"{word}: {count}" for word, count in sorted(counts.items())))
    return int(any(word.endswith("differ") for word in counts))


def note(
    counts: Counter[str],
    what: str,
    kind: str,
    ours: tuple[bool, float],
    theirs: dict[str, object],
    why: str = "",
) -> None:
    """Count a pair of verdicts and print it if they differ."""
    same = ours == (bool(theirs["solved"]), theirs["score"])
    counts[f"{what}s"] += 1
    counts[f"{what}s solved"] += ours[0]
    counts[f"{what}s with a score between 0 and 1"] += 0 < ours[1] < 1
    if not same:
        counts[f"{what}s that differ"] += 1
        print(f"{what}, {kind}: here {ours}{why}, in the bundle {theirs}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
