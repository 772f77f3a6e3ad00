"""Makes wrong repairs that pass their suites, and counts those found: `wrong_repairs.py TASKS [MOST]`.

The repairs are single corruptions of the tasks' true functions with which the suites pass. Some are not
faults; a person has to decide which. A repair is found if it is contradicted or has a smallest input on which
it differs. Prints a line for each with its change, and the counts; stops after the task with which MOST (60)
repairs are reached.
"""

from __future__ import annotations

import ast
import difflib
import sys
import textwrap
from collections import Counter
from pathlib import Path

from confirming import controls_of, tasks_in

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.model import Confirmed
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.equivalence import SandboxEquivalenceTester
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner

_TRIED = 12
"""The maximum number of corruptions of a function for which the suite is run."""


def changed_lines(before: str, after: str) -> str:
    """Return the lines that differ, joined into one of at most 160 characters."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return " / ".join(line for line in lines if line[:2] not in ("--", "++", "@@"))[:160]


class _WithoutTexts(ast.NodeTransformer):
    """Removes the arguments of the exceptions that a function raises."""

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        if isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        return node


def changes_only_a_text(before: str, after: str) -> bool:
    """Return whether two versions of a function differ only in the texts of exceptions that they raise."""
    trees = (_WithoutTexts().visit(ast.parse(textwrap.dedent(code))) for code in (before, after))
    return len(set(map(ast.dump, trees))) == 1


def main() -> int:
    """Find wrong repairs that pass, and print whether they are confirmed."""
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    backend, environments = choose(None, consented=True), EnvironmentStore(Locations.of_user().cache)
    confirmer = SandboxConfirmer(
        backend, environments, beyond=SandboxEquivalenceTester(backend, environments)
    )
    runner = SuiteRunner(backend, environments)
    counts: Counter[str] = Counter()
    for task in tasks_in(Path(sys.argv[1])):
        answer = read_answer(task)
        controls = controls_of(confirmer, task, answer)
        if not controls.confirmable:
            continue
        original = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
        judge, target = RepairJudge(task, answer, runner), answer.targets[0]
        index = index_source(target.path, original.read(target.path))
        found = enumerate_corruptions(
            index, index.get(target.qualname), vocabulary_of([index]), composed=False
        )
        for corruption in found.kept[-_TRIED:]:
            try:
                tree = with_definition(original, target.path, target.qualname, corruption.target.corrupted)
            except UserError:
                continue
            if not judge.judge(tree).solved:
                counts["fails its suite"] += 1
                continue
            came = confirmer.confirm(task, answer, controls, tree)
            is_found = came.result is Confirmed.CONTRADICTED or came.beyond is not None
            only_text = changes_only_a_text(target.original, corruption.target.corrupted)
            missed = "changes only the text of an exception" if only_text else f"not found, {came.words}"
            counts["found" if is_found else missed] += 1
            change = changed_lines(target.original, corruption.target.corrupted)
            print(f"{target.name}: {came.words}, {came.varied} varied; {change}; {came.beyond}", flush=True)
        print(dict(counts), flush=True)
        if counts.total() - counts["fails its suite"] >= most:
            break
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
