"""The repair of an attempt: the code that passed, and a key that does not reveal its author."""

from __future__ import annotations

from pathlib import Path

from acted_attempts import acted
from builders import REPAIR, build_task

from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.diffs import DiffLineKind
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.study.repairs import AttemptRepair, original_of, passing_repair
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.declaration import Replacement
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.journal import read_journal

PATH, NAME = "shop/prices.py", "discount"


def state_of(act: str, folder: Path) -> AttemptState:
    return fold(read_journal(acted(act, folder)).events)


def test_the_repair_is_what_passed(tmp_path: Path) -> None:
    found = passing_repair(state_of("repair", tmp_path))
    assert found is not None
    assert [(made.path, made.qualname, made.code) for made in found.replacements] == [(PATH, NAME, REPAIR)]
    assert passing_repair(state_of("discovery", tmp_path)) is None
    assert passing_repair(state_of("gist", tmp_path)) is None


def test_the_same_code_has_one_key_whoever_wrote_it(tmp_path: Path) -> None:
    task = build_task(tmp_path, Mode.REMOVE)
    original = original_of(task, read_answer(task))
    code = original.replacements[0].code
    again = AttemptRepair(
        task.id, (Replacement(PATH, NAME, "x"), Replacement(PATH, NAME, code.replace("\n", "  \n") + "\n"))
    )
    assert again.key == original.key
    assert AttemptRepair(task.id, (Replacement(PATH, NAME, code.replace("100", "99")),)).key != original.key
    assert AttemptRepair("other", original.replacements).key != original.key


def test_a_change_is_shown_against_the_corrupted_tree(tmp_path: Path) -> None:
    task = build_task(tmp_path, Mode.DISCOVERY)
    (diff,) = original_of(task, read_answer(task)).change(SourceTree.open(task.tree_path))
    lines = [line for hunk in diff.hunks for line in hunk.lines]
    assert diff.path == PATH
    assert [line.text.strip() for line in lines if line.kind is DiffLineKind.REMOVED] == [
        "return price + price * percent // 100"
    ]
    assert [line.text.strip() for line in lines if line.kind is DiffLineKind.ADDED] == [
        "return price - price * percent // 100"
    ]
