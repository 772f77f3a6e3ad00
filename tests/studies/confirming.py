"""Tests whether passes of tasks can be confirmed, with right and wrong repairs: `confirming.py TASKS`.

For each repair task in the folder the controls are taken from its answer, or made; then the true function has
to be confirmed and the corrupted one contradicted. Prints a line for each task and the counts of all reasons.
`--sandbox NAME` chooses the backend.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from gistpoint.core.confirmation.model import Confirmed, Controls, reasons_in_words
from gistpoint.core.kinds.confirming import known_controls
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.core.tasks.model import Answer, Mode, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose


def tasks_in(folder: Path) -> list[Task]:
    """Return the repair tasks of a folder."""
    found = [
        read_task(path, verify=False) for path in sorted(folder.iterdir()) if (path / TASK_FILE).is_file()
    ]
    return [task for task in found if task.mode != Mode.GIST]


def controls_of(confirmer: SandboxConfirmer, task: Task, answer: Answer) -> Controls:
    """Return the controls that were made with the task, or new ones."""
    return known_controls(task) or confirmer.control(task, answer)


def judged(confirmer: SandboxConfirmer, task: Task, answer: Answer, controls: Controls) -> Counter[str]:
    """Print and count the results of the true function and the corrupted one."""
    given = SourceTree.open(task.tree_path)
    counts: Counter[str] = Counter()
    for name, tree in (("true", repaired_tree(given, answer.targets)), ("corrupted", given)):
        found = confirmer.confirm(task, answer, controls, tree)
        counts[f"{name} {found.words}"] += 1
        right = found.result is (Confirmed.CONFIRMED if name == "true" else Confirmed.CONTRADICTED)
        example = found.contradiction
        words = (
            f"{example.call[:80]} = {example.original[:60]}, not {example.submission[:60]}" if example else ""
        )
        sign = " " if right else "!"
        print(
            f"  {sign} {name:9} {found.words:24} {found.calls:6} calls {found.seconds:6.1f} s {found.detail}{words}"
        )
    return counts


def main() -> int:
    """Confirm the true and the corrupted functions of the confirmable tasks, and print the counts."""
    name = sys.argv[sys.argv.index("--sandbox") + 1] if "--sandbox" in sys.argv else None
    confirmer = SandboxConfirmer(choose(name, consented=True), EnvironmentStore(Locations.of_user().cache))
    counts: Counter[str] = Counter()
    for task in tasks_in(Path(sys.argv[1])):
        answer, began = read_answer(task), time.monotonic()
        controls = controls_of(confirmer, task, answer)
        seconds = time.monotonic() - began
        counts["confirmable" if controls.confirmable else f"not confirmable: {controls.reason}"] += 1
        targets = ", ".join(target.name for target in answer.targets)
        shown = "confirmable" if controls.confirmable else f"{controls.reason}: {controls.detail[:160]}"
        tests = f"{len(controls.tests)} of {controls.entering} tests, {len(controls.telling)} tell"
        print(
            f"{task.source.name} {targets}: {shown}; {tests}; {controls.calls} calls, {seconds:.1f} s; ",
            end="",
        )
        print(reasons_in_words(controls.reasons), flush=True)
        if controls.confirmable:
            counts += judged(confirmer, task, answer, controls)
    print()
    for what, count in sorted(counts.items()):
        print(f"{count:5} {what}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
