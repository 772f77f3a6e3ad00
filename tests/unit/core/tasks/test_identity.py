"""A task's id depends on what the format specifies, and on nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import build_task

from gistpoint.core.code.index import index_source
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.pins import ImagePins
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.model import Mode, Rules, Target, ToolLimits

IMAGE = ImagePins("org/image", f"sha256:{'1' * 64}", "linux/amd64", "/testbed", "/usr/bin/python3")
CONTENT: dict[str, Any] = {
    "mode": Mode.REMOVE,
    "source_name": "shop",
    "source_revision": "1.0",
    "tree_sha256": "a" * 64,
    "targets": (
        Target("a.py", "f", "def f(): 1", "def f(): 2"),
        Target("b.py", "g", "def g(): 1", "def g(): 2"),
    ),
    "lock": ("pytest==8.4.2 --hash=sha256:1", "pluggy==1.6.0 --hash=sha256:2"),
    "ids_sha256": hash_of_ids(["t::a", "t::b"]),
}


@pytest.mark.parametrize(
    "change",
    [
        {"mode": Mode.DISCOVERY},
        {"source_name": "shop2"},
        {"source_revision": "1.1"},
        {"tree_sha256": "b" * 64},
        {"targets": CONTENT["targets"][:1]},
        {"targets": (replace(CONTENT["targets"][0], corrupted="def f(): 3"), CONTENT["targets"][1])},
        {"targets": (replace(CONTENT["targets"][0], path="c.py"), CONTENT["targets"][1])},
        {"targets": (replace(CONTENT["targets"][0], qualname="h"), CONTENT["targets"][1])},
        {"lock": ("pytest==8.4.2 --hash=sha256:1",)},
        {"ids_sha256": hash_of_ids(["t::a"])},
        {"of_kind": {"entrypoint": "a.py::main"}},
        {"image": IMAGE},
    ],
)
def test_id_changes_with_the_content(change: dict[str, Any]) -> None:
    assert task_id(**{**CONTENT, **change}) != task_id(**CONTENT)


@pytest.mark.parametrize(
    "change",
    [
        {"targets": tuple(reversed(CONTENT["targets"]))},
        {"lock": tuple(reversed(CONTENT["lock"]))},
        {"targets": tuple(replace(t, original="something else") for t in CONTENT["targets"])},
    ],
)
def test_id_does_not_change_with_order_or_originals(change: dict[str, Any]) -> None:
    assert task_id(**{**CONTENT, **change}) == task_id(**CONTENT)


def test_budgets_limits_texts_baselines_and_metrics_are_outside_the_id(tmp_path: Path) -> None:
    task = build_task(tmp_path, Mode.DISCOVERY)
    answer = read_answer(task)
    other = replace(
        task,
        budgets=Budgets(4, 1, 60),
        limits=ToolLimits(read_file_characters=10),
        rules=Rules(min_failing=2),
        brief=replace(task.brief, failing=()),
        suite=replace(task.suite, seconds=9.0, timeout_s=99.0),
        demo=True,
    )
    baseline = replace(answer.baselines[0], backend="bwrap", seconds=3.0, passed_corrupted=frozenset())
    write_task(other, replace(answer, baselines=(*answer.baselines, baseline), metrics={"lines": 3}))
    assert read_task(task.folder).id == task.id
    assert read_answer(task).baseline_for("bwrap").seconds == 3.0
    assert read_answer(task).baseline_for("unheard of") == read_answer(task).baselines[0]


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
def test_public_part_holds_neither_an_original_nor_a_hash_of_one(tmp_path: Path, mode: Mode) -> None:
    task = build_task(tmp_path, mode)
    public = (task.folder / "task.toml").read_bytes() + (task.folder / "workspace" / "tree.tar").read_bytes()
    for target in read_answer(task).targets:
        index = index_source(target.path, target.original.encode())
        texts = {
            target.original,
            target.original.strip(),
            target.original + "\n",
            index.definitions[0].dedented,
        }
        for text in texts:
            assert text.encode() not in public
            for algorithm in ("sha256", "sha1", "md5", "sha512", "blake2b"):
                assert hashlib.new(algorithm, text.encode()).hexdigest().encode() not in public
        if mode is Mode.DISCOVERY:
            assert target.name.encode() not in public


def test_the_digest_of_an_image_takes_the_place_of_the_lock() -> None:
    imaged = {**CONTENT, "image": IMAGE}
    assert task_id(**{**imaged, "lock": ()}) == task_id(**imaged)
    assert task_id(
        **{**imaged, "image": replace(IMAGE, name="elsewhere/image", python="/bin/py")}
    ) == task_id(**imaged)
    assert task_id(**{**imaged, "image": replace(IMAGE, digest=f"sha256:{'2' * 64}")}) != task_id(**imaged)
