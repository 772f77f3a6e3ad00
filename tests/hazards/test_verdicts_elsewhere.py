"""The bundle for other harnesses gives gistpoint's verdicts; the study of this name tries more trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import GOOD
from gist_tasks import FAITHFUL, IMPORTING, WRONG, build_gist_task
from tiny_tasks import Maker
from verifying import Elsewhere, as_taken, trees, write_place

from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.verifier.container import ContainerBackend

TESTS = """import pytest

from shop.prices import Basket, discount


def test_empty():
    assert Basket().total(50) == 0


@pytest.mark.parametrize("percent, left", [(0, 100), (10, 90), (50, 50)])
def test_discount(percent, left):
    assert discount(100, percent) == left


def test_basket():
    basket = Basket()
    basket.add("apple", 30, 2)
    assert basket.total(50) == 30
"""
CORRUPTED = """def discount(price, percent):
    return price - price * percent // 10
"""


def test_trees_come_out_as_under_gistpoint(plain: Maker, tmp_path: Path) -> None:
    files = {**GOOD, "tests/test_prices.py": TESTS}
    task = plain.task(files, "shop/prices.py::discount", CORRUPTED)
    answer = read_answer(task)
    judge, other = (
        RepairJudge(task, answer, plain.runner),
        Elsewhere.of(task, answer, "plain", tmp_path / "other"),
    )
    seen = set()
    for number, (name, tree) in enumerate(trees(task, answer, 10, seed=3)):
        place = write_place(tree, tmp_path / f"tree-{number}")
        ours, theirs = judge.judge(as_taken(task, place)), other.verdict(place)
        assert (theirs["solved"], theirs["score"]) == (int(ours.solved), ours.score.value), name
        assert theirs["taken"].keys() == as_taken(task, place).overlay.keys()
        seen.add((ours.solved, ours.score.value > 0))
    assert len(seen) > 1


def test_a_transcript_written_by_hand_is_caught(plain: Maker, tmp_path: Path) -> None:
    files = {**GOOD, "tests/test_prices.py": TESTS}
    task = plain.task(files, "shop/prices.py::discount", CORRUPTED)
    other = Elsewhere.of(task, read_answer(task), "plain", tmp_path / "other")
    tree = SourceTree.open(task.tree_path)
    forging = (Path(__file__).parents[2] / "sandbox/attacks/reports/forge_records.py").read_text("utf-8")
    forging = forging.replace("from __future__ import annotations\n", "")
    place = write_place(
        tree.with_files({"shop/prices.py": f"{forging}\n\nf()\n".encode()}), tmp_path / "tree"
    )
    verdict = other.verdict(place)
    assert (verdict["solved"], verdict["score"]) == (0, 0)
    assert "not from the reporter" in verdict["reason"]


def test_gists_come_out_as_under_gistpoint(tmp_path: Path, environments: EnvironmentStore) -> None:
    task = build_gist_task(tmp_path)
    answer = read_answer(task)
    judge = GistJudge(task, gist_answer(answer), GistRunner(PlainBackend(), environments))
    other = Elsewhere.of(task, answer, "plain", tmp_path / "other")
    place, elsewhere = tmp_path / "test_gist.py", tmp_path / "elsewhere"
    (other.folder / "reward.json").symlink_to(elsewhere)
    for gist in (FAITHFUL, "", IMPORTING, WRONG):
        place.write_text(gist, encoding="utf-8")
        ours = judge.judge(gist, thorough=False).score.execution_fidelity
        assert other.verdict(place)["solved"] == ours == int(gist is FAITHFUL)
    place.write_text("#" * (9 << 20), encoding="utf-8")
    assert other.verdict(place).keys() == {"solved", "score", "reason", "reduced"}
    place.rename(tmp_path / "secret")
    place.symlink_to("secret")
    assert other.verdict(place)["taken"] == {}
    assert not elsewhere.exists(), "the reward was written through a link"


def test_without_a_usable_interpreter_there_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "python"
    missing.write_text("#!/bin/sh\necho 'No module named pytest' >&2\nexit 1\n", encoding="utf-8")
    missing.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(missing))
    probe = ContainerBackend(same_user=True).probe()
    assert not probe.works
    assert "No module named pytest" in probe.why_not
