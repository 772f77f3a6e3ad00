"""Compares the original and corrupted code of tasks, and wrong repairs of them, with the original.

    python tests/studies/beyond_tests.py TASKS [WRONG.json] [--only-wrong] [--no-original] [--no-corrupted]

For each repair task in the folder the original code must not be found to differ from itself; the corrupted
code should differ. WRONG.json is a list of {task, function, code, why}: wrong repairs that pass the tests.
Each is judged by its suite first and, if it passes, must be found to differ. Prints a line for each and the
totals; exit code 1 if an original differs, or a wrong repair that passes does not.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

from gistpoint.core.errors import InfrastructureError
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.locations import Locations
from gistpoint.core.study.repairs import AttemptRepair, original_of
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.core.tasks.equivalence import Equivalence, EquivalenceReport, compare_repair
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.declaration import Replacement
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.equivalence import SandboxEquivalenceTester
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner


def words(report: EquivalenceReport) -> str:
    example = report.example
    shown = (
        f"{example.call[:90]}: {example.original[:60]!r}, not {example.repair[:60]!r}"
        if example
        else report.reason
    )
    return f"{report.verdict:14} {report.recorded:4} recorded {report.varied:4} varied  {shown}"


def main() -> int:
    backend, environments = choose(None, consented=True), EnvironmentStore(Locations.of_user().cache)
    tester = SandboxEquivalenceTester(backend, environments)
    tasks = {}
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        if (folder / TASK_FILE).is_file():
            task = read_task(folder, verify=False)
            if task.mode != Mode.GIST:
                tasks[task.short_id] = task
    counts: Counter[str] = Counter()
    for short, task in tasks.items() if "--only-wrong" not in sys.argv else ():
        answer, tree = read_answer(task), SourceTree.open(task.tree_path)
        versions = {"original": original_of(task, answer).on(tree), "corrupted": tree}
        for what, repaired in versions.items():
            if f"--no-{what}" in sys.argv:
                continue
            began = time.monotonic()
            try:
                report = compare_repair(task, answer, repaired, tester)
            except InfrastructureError as error:
                report = EquivalenceReport(Equivalence.NOT_COMPARABLE, reason=str(error))
            counts[f"{what} {report.verdict}"] += 1
            print(
                f"{short} {answer.targets[0].name:60} {what:9} {words(report)}  {time.monotonic() - began:.1f} s",
                flush=True,
            )
    wrong = (
        json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
        if sys.argv[2:] and sys.argv[2].endswith(".json")
        else []
    )
    for entry in wrong:
        task = tasks[entry["task"]]
        answer, tree = read_answer(task), SourceTree.open(task.tree_path)
        path, _, qualname = entry["function"].partition("::")
        repaired = AttemptRepair(task.id, (Replacement(path, qualname, entry["code"]),)).on(tree)
        judged = RepairJudge(task, answer, SuiteRunner(backend, environments)).judge(repaired)
        passes = judged.solved
        report = compare_repair(task, answer, repaired, tester)
        counts[f"wrong, {'passes' if passes else 'does not pass'}, {report.verdict}"] += 1
        print(
            f"{entry['task']} {entry['function']:60} passes={passes} {words(report)}  ({entry['why']})",
            flush=True,
        )
    print(dict(counts))
    bad = [name for name in counts if name.startswith("original") and Equivalence.DIFFERS in name]
    return 1 if bad or any("passes, " in name and Equivalence.DIFFERS not in name for name in counts) else 0


if __name__ == "__main__":
    raise SystemExit(main())
