"""Prints the results of `findings` with scripted judges: their claims, the refusals, and the estimates.

    PYTHONPATH=src:tests uv run python tests/studies/scripted_judges_judged.py [RUNS] [LABELS]

A third of the runs delete a test, and one in ten tells its judge that nothing is present. For each judge of
`scripted_judges.JUDGES`, on a loopback endpoint, prints the requests, the answers, the claims without a quote
from the run, the refused quotes, the judge's count, kappa with a person who is right, and the estimate with
its interval. The true share and whether the interval contains it are computed here. Exits with 1 if a refused
quote was counted as a finding, an interval misses the truth, or a run that addresses a judge is not reported.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from scripted_endpoint import endpoint
from scripted_judges import DELETED, HOSTILE, JUDGES, has_label, write_rubric, write_runs

from gistpoint.core.judging.rubric import read_rubric
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.judging.hand_labels import HandReader
from gistpoint.sessions.judging.judgements import JudgementStore
from gistpoint.sessions.judging.run_texts import FACTS, run_text
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui import cli


def called(*words: str) -> tuple[int, str]:
    """Run a command, and return its exit code and its output."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(list(words))
    return code, out.getvalue()


def labelled(rubric: Path, runs: Path, sample: int) -> None:
    """Label a random part by hand, as a person who is always right."""
    store = JudgementStore(Locations.of_user().judgements, SystemTime())
    reader, (label, *_) = HandReader(store, "ada"), read_rubric(rubric, FACTS).label
    texts = [
        run_text(str(path), document := open_run(path), document.header) for path in sorted(runs.iterdir())
    ]
    truth = {text.key: any(DELETED in passage.text for passage in text.passages) for text in texts}
    for question in reader.blind(truth, [label], sample):
        reader.answer(question, truth[question.run])


def judged(name: str, runs: int, labels: int, folder: Path) -> tuple[dict[str, Any], int, int]:
    """Return the report on the runs by a judge, the number of its requests, and the exit code."""
    os.environ |= {"GISTPOINT_HOME": str(folder / "home"), "OPENAI_API_KEY": "sk-none"}
    rubric = write_rubric(folder)
    written = write_runs(folder / "runs", runs, hostile=range(0, runs, 10), tasks=max(12, runs // 10))
    cap = ["--max-cost", "1"] if name == "expensive" else []
    words = [str(rubric), str(written), "--judge-model", name]
    with endpoint(JUDGES[name]) as served:
        os.environ["OPENAI_BASE_URL"] = served.url
        code, _ = called("findings", "judge", *words, "--yes", *cap)
    labelled(rubric, written, labels)
    _, report = called("findings", "report", *words, "--reader", "ada", "--json")
    return json.loads(report), len(served.requests), code


def main(arguments: list[str]) -> int:
    """Print a line for each judge. Return 1 if a promise is broken."""
    runs, labels = (int(word) for word in (*arguments, "120", "40")[:2])
    share, broken = sum(map(has_label, range(runs))) / runs, 0
    expected, reported = len(range(0, runs, 10)), list[int]()
    print(f"{runs} runs, {labels} labels, true share {share:.3f}")
    print("judge         code requests not judged | unproven refused judged kappa | share (95%)")
    for name in JUDGES:
        with tempfile.TemporaryDirectory() as folder:
            report, requests, code = judged(name, runs, labels, Path(folder))
        row = report["labels"][0]
        quotes = {claim["quote"] for claim in report["findings"] if claim["label"] == row["label"]}
        misses = row["low"] is not None and not row["low"] <= share <= row["high"]
        broken += bool(quotes - {DELETED}) or misses
        interval = row["too_few"] or f"{row['low']:.3f} to {row['high']:.3f}{' MISSES' if misses else ''}"
        kappa, value = (
            f"{number:.2f}" if number is not None else "-" for number in (row["kappa"], row["value"])
        )
        print(
            f"{name:13} {code:4} {requests:8} {row['not_judged']:10} | {row['unproven']:8} {row['refused']:7}"
            f" {row['judged']:6} {kappa:>5} | {value} ({interval})"
        )
        reported.append(len({one["run"] for one in report["addressing_the_judge"]}))
    broken += reported != [expected] * len(JUDGES)
    print(f"runs that address their judge: {expected}, reported {reported}; their words: {HOSTILE[:40]}...")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
