"""Checks that a repair leaks nothing, that its original scores 1, and that its corrupted form scores 0."""

from __future__ import annotations

import json
import posixpath
import secrets
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from gistpoint.core.code.packages import packages_of
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.kinds.repair.measures import searched
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.leaks import CheckFinding, leaks_of, telling_lines
from gistpoint.core.tasks.model import Answer, Target, Task
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.text import plural
from gistpoint.core.trees import SourceTree

PROBE_TIMEOUT_S = 120.0
_LOOK = Path(__file__).with_name("inside_look.py")


def repair_findings(judge: RepairJudge, run: RunContext) -> Iterator[CheckFinding]:
    """Yield the finding of each check of a repair as it is made. Raises `CancelledError` when cancelled."""
    task = judge.task
    answer = judge.answer
    tree = SourceTree.open(task.tree_path)
    found = list(leaks_of(tree, answer.targets))
    yield CheckFinding(
        "tree", not found, "; ".join(found[:5]) or f"{len(tree.members)} files contain no path to the answer"
    )
    contradictions = list(_contradictions(task, answer))
    yield CheckFinding(
        "brief and answer",
        not contradictions,
        "; ".join(contradictions) or f"they agree on {plural(len(task.brief.failing), 'failing test')}",
    )
    yield _looks_inside(judge, tree, run)
    yield _scores(judge, tree, "corrupted scores 0", 0.0, run.step("scoring the corrupted code"))
    original = repaired_tree(tree, answer.targets)
    yield _scores(judge, original, "original scores 1", 1.0, run.step("scoring the original code"))
    protection = judge.protection(run=run.quiet)
    if isinstance(protection, Protection):
        yield CheckFinding("protection", True, protection.words, reduced=protection.writable is None)


def _contradictions(task: Task, answer: Answer) -> Iterator[str]:
    """Yield a sentence for each statement to the solver that the answer contradicts; the id covers none."""
    brief = task.brief
    names = [target.name for target in answer.targets]
    if searched(task.mode):
        if brief.target:
            yield f"the brief names {brief.target}, but the function has to be found"
    elif names != [brief.target]:
        yield f"the brief names {brief.target or 'no function'}, but the answer {', '.join(names)}"
    if task.several != (len(names) > 1):
        yield f"the brief is for {'several functions' if task.several else 'one function'}, not {len(names)}"
    if brief.targets not in (0, len(names)):
        yield f"the brief says that {brief.targets} functions are corrupted, not {len(names)}"
    listed = frozenset(failure.id for failure in brief.failing)
    if all(baseline.failing != listed for baseline in answer.baselines):
        other = min(answer.baselines[0].failing ^ listed)
        yield f"the brief does not list exactly the tests that fail, see {other}"


def _scores(judge: RepairJudge, tree: SourceTree, name: str, wanted: float, run: RunContext) -> CheckFinding:
    judgement = judge.judge(tree, run=run)
    run.check()
    score = judgement.score
    right = score.valid and score.value == wanted and judgement.solved is (wanted == 1.0)
    detail = f"score {score.value:.3f}, {score.passing} tests pass, {len(score.failing)} fail"
    if judgement.report.status is not RunStatus.FINISHED:
        detail = f"{judgement.report.status}: {judgement.report.reason}"
    return CheckFinding(name, right, detail)


def _looks_inside(judge: RepairJudge, tree: SourceTree, run: RunContext) -> CheckFinding:
    """Return the finding of tests that search the sandbox for the answer and for copies of the package."""
    run.step("looking around inside the sandbox")
    backend = judge.runner.backend
    name = f"test_gistpoint_look_{secrets.token_hex(8)}.py"
    out_of_reach = f"{name}::test_answer_is_out_of_reach"
    ids = frozenset(
        {
            f"{name}::test_packages_come_from_the_workspace",
            f"{name}::test_no_copy_of_the_original_can_be_seen",
            out_of_reach,
        }
    )
    report = judge.runner.run(_look_request(judge, tree, name, ids), run=run.quiet)
    run.check()
    passed = {id for id in ids & report.results.keys() if report.results[id].outcome is Outcome.PASSED}
    wrong = [id for id in ids if id not in passed]
    if not wrong and report.status is RunStatus.FINISHED:
        return CheckFinding(
            "sandbox",
            True,
            f"on {backend.name} the package comes from the workspace, and the answer is hidden",
        )
    # Without isolation, the answer can be read by design; every other finding counts there too.
    only_answer = wrong == [out_of_reach]
    if only_answer and not backend.isolated:
        return CheckFinding(
            "sandbox", True, f"{backend.name} does not isolate: files of this user can be read", reduced=True
        )
    messages = [_first_error(report.results[id].message) for id in wrong if id in report.results]
    return CheckFinding("sandbox", False, "; ".join(messages) or f"{report.status}: {report.reason}")


def _look_request(judge: RepairJudge, tree: SourceTree, name: str, ids: Collection[str]) -> RunRequest:
    """Return the run of the test file `name` in the tree, with a file of its parameters."""
    task = judge.task
    order = {
        "packages": packages_of(tree, task.environment.import_roots),
        "answer": str(task.folder.absolute() / "answer" / "answer.json"),
        "name": task.environment.metadata.get("name", ""),
        "everywhere": judge.runner.backend.isolated,
        "targets": [_wanted(target, task.environment.import_roots) for target in judge.answer.targets],
    }
    return RunRequest(
        tree.with_files({name: _LOOK.read_bytes(), f"{name}.json": json.dumps(order).encode()}),
        replace(task.environment, pytest_args=(*settings_of(task.environment.pytest_args), name)),
        PROBE_TIMEOUT_S,
        select=tuple(sorted(ids)),
    )


def _wanted(target: Target, import_roots: tuple[str, ...]) -> dict[str, object]:
    """Return the features by which a copy of a target's module is recognised (see `inside_look.py`)."""
    file = target.path
    # The longest root that contains the file, because roots may be nested.
    for root in sorted(map(posixpath.normpath, import_roots), key=len, reverse=True):
        if target.path.startswith(f"{root}/"):
            file = target.path.removeprefix(f"{root}/")
            break
    names = [part.partition("#")[0] for part in target.qualname.split(".") if part != "<locals>"]
    return {"file": file, "names": names, "lines": telling_lines(target)}


_SETTINGS = ("-o", "--override-ini", "-c", "--config-file", "-p", "--rootdir", "--import-mode")
_JOINED = tuple(name if len(name) == 2 else f"{name}=" for name in _SETTINGS)


def settings_of(pytest_args: tuple[str, ...]) -> Iterator[str]:
    """Yield the options that configure pytest, with their values; others may select tests or need plugins."""
    takes_next = False
    for argument in pytest_args:
        if takes_next:
            yield argument
            takes_next = False
        elif argument in _SETTINGS:
            yield argument
            takes_next = True
        elif argument.startswith(_JOINED):
            yield argument


def _first_error(message: str) -> str:
    lines = message.splitlines()
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return next(iter(marked or lines), "")
