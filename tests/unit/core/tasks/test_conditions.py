"""A task's id excludes budgets and arguments: tasks of one id are compared, and absurd values refused."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import build_task
from gist_tasks import build_gist_task
from small_trees import Link, write_tar

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.archive import pack_task, unpack_task
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.conditions import TaskConflictError, conditions_sha256
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.trees import sha256_of
from gistpoint.sessions.tasks import TaskStore

Change = Callable[[Task], Task]


def part(name: str, **values: Any) -> Change:
    return lambda task: replace(task, **{name: replace(getattr(task, name), **values)})


REFUSED: dict[str, Change] = {
    "budgets.tool_uses": lambda task: replace(task, budgets=Budgets(17, 4)),
    "budgets.submissions": lambda task: replace(task, budgets=Budgets(16, 9)),
    "budgets.time_limit_s": lambda task: replace(task, budgets=replace(task.budgets, time_limit_s=60)),
    "limits.search_seconds": part("limits", search_seconds=9.0),
    "limits.search_matches": part("limits", search_matches=9),
    "rules.min_failing": part("rules", min_failing=1),
    "brief.target": part("brief", target="shop/prices.py::Basket.add"),
    "brief.targets": part("brief", targets=2),
    "brief.failing": lambda task: part("brief", failing=task.brief.failing[1:])(task),
    "suite.test_files": part("suite", test_files=("tests/test_prices.py", "shop/prices.py")),
    "suite.deselected": part("suite", deselected=("tests/test_prices.py::test_all",)),
    "environment.pytest_args": part("environment", pytest_args=("-x",)),
    "environment.plugins": part("environment", plugins=("xdist",)),
}
KEPT: dict[str, Change] = {
    "suite.timeout_s": part("suite", timeout_s=77.0),
    "suite.seconds": part("suite", seconds=7.5),
    "brief.docstring": part("brief", docstring="Another text."),
    "environment.resolved": part("environment", resolved="2026-01-01"),
}


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return build_task(tmp_path / "made", Mode.REMOVE)


def changed(task: Task, change: Change, place: Path) -> Task:
    shutil.copytree(task.folder, place)
    other = replace(change(task), folder=place)
    write_task(other, read_answer(task))
    return read_task(place)


@pytest.mark.parametrize("key", REFUSED)
def test_another_task_of_a_known_id_is_refused_by_what_differs(task: Task, tmp_path: Path, key: str) -> None:
    other = changed(task, REFUSED[key], tmp_path / "other")
    pack_task(task.folder, tmp_path / "a.tar.zst")
    pack_task(other.folder, tmp_path / "b.tar.zst")
    store = TaskStore(tmp_path / "tasks")
    first = store.find(str(tmp_path / "b.tar.zst"))
    for name in (tmp_path / "a.tar.zst", task.folder):
        with pytest.raises(TaskConflictError, match=re.escape(repr(key))):
            store.find(str(name))
    assert store.find(str(tmp_path / "b.tar.zst")) == first


@pytest.mark.parametrize("key", KEPT)
def test_what_was_measured_or_worded_is_kept_and_named(task: Task, tmp_path: Path, key: str) -> None:
    other = changed(task, KEPT[key], tmp_path / "other")
    for each, name in ((task, "a"), (other, "b")):
        pack_task(each.folder, tmp_path / f"{name}.tar.zst")
    told: list[str] = []
    store = TaskStore(tmp_path / "tasks", note=told.append)
    first = store.find(str(tmp_path / "a.tar.zst"))
    assert store.find(str(tmp_path / "a.tar.zst")) == first
    assert not told
    assert store.find(str(tmp_path / "b.tar.zst")) == first == store.find(str(other.folder))
    assert len(told) == 2
    assert all(key in text for text in told)


def test_a_task_of_another_folder_of_the_store_is_known(task: Task, tmp_path: Path) -> None:
    other = changed(task, REFUSED["budgets.tool_uses"], tmp_path / "other")
    pack_task(other.folder, tmp_path / "b.tar.zst")
    (tmp_path / "demo").mkdir()
    shutil.copytree(task.folder, tmp_path / "demo" / task.id)
    with pytest.raises(TaskConflictError):
        TaskStore(tmp_path / "tasks", demo=tmp_path / "demo").add(tmp_path / "b.tar.zst")


def test_what_comes_with_the_program_takes_the_place(task: Task, tmp_path: Path) -> None:
    other = changed(task, REFUSED["budgets.tool_uses"], tmp_path / "other")
    for each, name in ((task, "a"), (other, "b")):
        pack_task(each.folder, tmp_path / f"{name}.tar.zst")
    unpack_task(tmp_path / "a.tar.zst", tmp_path / "into", replaces=True)
    found = unpack_task(tmp_path / "b.tar.zst", tmp_path / "into", replaces=True)
    assert found.budgets.tool_uses == 17
    assert [path.name for path in (tmp_path / "into").iterdir()] == [task.id]


def test_template_is_looked_at_where_the_id_is_known(task: Task, tmp_path: Path) -> None:
    pack_task(task.folder, tmp_path / "a.tar.zst")
    unpack_task(tmp_path / "a.tar.zst", tmp_path / "into")
    other = changed(task, part("brief", template="../../../etc/passwd"), tmp_path / "other")
    pack_task(other.folder, tmp_path / "b.tar.zst")
    with pytest.raises(TaskError, match=r"brief\.template"):
        unpack_task(tmp_path / "b.tar.zst", tmp_path / "into")


def test_settings_of_a_gist_are_conditions(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path / "made")
    kind = kind_of(task)
    document = kind.document(task)
    other = {**document, "gist": {**document["gist"], "execution": not document["gist"]["execution"]}}
    assert conditions_sha256(task, document, "", 2) != conditions_sha256(task, other, "", 2)


@pytest.mark.parametrize("key", [*REFUSED, "brief.docstring"])
def test_digest_tells_conditions_apart(task: Task, key: str) -> None:
    other = {**REFUSED, **KEPT}[key](task)
    digests = {conditions_sha256(each, {}, kind_of(each).brief(each), 2) for each in (task, other)}
    assert len(digests) == 2
    assert conditions_sha256(task, {}, "", 1) != conditions_sha256(task, {}, "", 2)


ABSURD: dict[str, Change] = {
    "budgets.tool_uses": lambda task: replace(task, budgets=Budgets(2**63 - 1, 4)),
    "budgets.submissions": lambda task: replace(task, budgets=Budgets(16, 99_999_999_999)),
    "limits.search_seconds": part("limits", search_seconds=1e9),
    "limits.read_file_characters": part("limits", read_file_characters=10**12),
    "suite.timeout_s": part("suite", timeout_s=1e300),
    "suite.test_files[1]": part("suite", test_files=("tests/a.py", "/etc/passwd")),
    "suite.test_files[0]": part("suite", test_files=("../a.py",)),
    "brief.target": part("brief", target="../../../../etc/passwd::x"),
}
ELSEWHERE = [
    *(spelling for option in ("--rootdir", "--confcutdir", "--config-file", "-c")
      for path in ("/", "../x", "a/../../x", "$HOME")
      for spelling in ((option, path), (f"{option}={path}",), ("--", option, path), ("-k", f"{option}={path}"))),
    ("-p",), ("-x", "-qo"), ("-c/x.ini",), ("-qc/x.ini",), ("-qc", "/x.ini"), ("-qvxc=/x.ini",),
    ("-c=/x.ini",), ("-Pc/x.ini",), ("-c",),
    ("-o", "addopts=-c/x.ini"), ("-o", "addopts='-qc' /x.ini"), ("-qoaddopts=--rootdir=/",),
    ("-o=addopts=--rootdir=/",), ("--override-ini", "addopts=--rootdir=/"), ("-o", "addopts=-c /x '"),
    ("--override-ini=addopts=-x -o 'addopts=--rootdir=/'",), ("-o", "pythonpath=. /tmp"), ("-opythonpath=..",),
    ("@x",), ("-k", "@x"), ("--", "@x"), ("-o", "addopts=@x"), ("--pdbcls=shop:Pdb",), ("--pdbcls", "shop:Pdb"),
]  # fmt: skip
LOADED = [
    ("-p", "shop.prices"), ("-pshop.prices",), ("-p", "shop"), ("-p", " shop "), ("--", "-p", "shop"),
    ("-qpshop",), ("-qp", "shop"), ("-xqvspshop",), ("-k", "-pshop"), ("-Xpshop",), ("-p", "no:a", "-pshop"),
    ("-o", "addopts=-p shop"), ("-o", "addopts=-pshop"), ("-oaddopts=-pshop",), ("-qoaddopts=-pshop",),
    ("-qo", "addopts=-q -pshop"), ("-o=addopts=-pshop",), ("--override-ini", "addopts=-p shop"),
    ("--override-ini=addopts=-p 'shop'",), ("-o", "addopts=-o 'addopts=-p shop'"), ("-o" + "addopts=-o" * 2_000,),
    ("-o", "addopts= -p shop '"),
    ("-p", "prices", "-o", "pythonpath=tests shop"), ("-o", "addopts=-p prices -o pythonpath=shop"),
]  # fmt: skip
ARGUMENTS = [*ELSEWHERE, *LOADED]


@pytest.mark.parametrize("key", ABSURD)
def test_values_that_no_honest_task_has_are_refused(task: Task, tmp_path: Path, key: str) -> None:
    with pytest.raises(TaskError, match=re.escape(repr(key))):
        changed(task, ABSURD[key], tmp_path / "other")


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_arguments_that_no_honest_task_has_are_refused(
    task: Task, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(TaskError, match=r"environment\.pytest_args"):
        changed(task, part("environment", pytest_args=arguments), tmp_path / "other")


OWN = {"entry_points": "[pytest11]\nshop = shop.prices\nbasket = shop.basket\n"}


@pytest.mark.parametrize(
    ("plugins", "pins"),
    [
        (("shop.prices",), {}), (("xdist", "shop"), {}), (("shop.stock.shelf",), {}), (("shop.prices",), OWN),
        (("shop",), {"entry_points": "[pytest11"}), (("shop",), {"entry_points": "[console_scripts]\nshop = a:b"}),
        (("stock.shelf",), {"import_roots": (".", "shop")}),
        (("prices",), {"pytest_args": ("-o", "pythonpath=shop")}),
    ],
)  # fmt: skip
def test_a_plugin_of_the_environment_is_no_code_of_solvers(
    task: Task, tmp_path: Path, plugins: tuple[str, ...], pins: dict[str, Any]
) -> None:
    entries = {"metadata": {"name": "shop", "version": "1", **pins}} if "entry_points" in pins else pins
    with pytest.raises(TaskError, match=r"environment\.plugins"):
        changed(task, part("environment", plugins=plugins, **entries), tmp_path / "other")


def test_plugins_of_others_and_of_the_project_itself_are_read(task: Task, tmp_path: Path) -> None:
    plugins = ("xdist", "shop", "basket", "tests.test_prices")
    pins = part("environment", plugins=plugins, metadata={"name": "shop", "version": "1", **OWN})
    assert changed(task, pins, tmp_path / "other").environment.plugins == plugins


def test_a_plugin_is_the_file_to_which_its_link_leads(task: Task, tmp_path: Path) -> None:
    files = {"tests/plugin.py": Link("../shop/prices.py"), "shop/prices.py": "", "tests/own.py": Link("x.py")}
    write_tar({**files, "tests/x.py": ""}, task.tree_path)
    task = replace(task, tree_sha256=sha256_of(task.tree_path))
    for name, fault in (("tests.plugin", "'environment.pytest_args' loads"), ("tests.own", "the key 'id'")):
        with pytest.raises(TaskError, match=fault):
            changed(task, part("environment", pytest_args=("-p", name)), tmp_path / name)


@pytest.mark.parametrize(
    "arguments",
    [
        ("tests", "-x", "-q"), ("-p", "no:randomly"), ("-p", "pytester"), ("-c", "tox.ini"), ("-c", "/dev/null"),
        ("--rootdir=.",), ("-p", "tests.plugin"), ("--color=no", "--co"), ("-k", "a/../b"), ("-o", "a=/x"),
        ("-o", "addopts=", "tests"), ("-oaddopts=",), ("--override-ini=addopts=-q -p no:cov",), ("-pno:shop",),
        ("-kcp/../shop",), ("-mc", "/x"), ("-rp", "shop"), ("-Wc/x",), ("-n", "auto"), ("-nauto", "shop"), ("-1",),
        ("--asyncio-mode=auto", "--ds=shop.prices", "--strict-markers"), ("-o", "pythonpath=src lib"), ("-",),
        ("--ignore=tests/a.py", "--deselect", "tests/a.py::test_a", "--import-mode=importlib", "--pyargs"),
    ],
)  # fmt: skip
def test_honest_arguments_are_read(task: Task, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    other = changed(task, part("environment", pytest_args=arguments), tmp_path / "other")
    assert other.environment.pytest_args == arguments
