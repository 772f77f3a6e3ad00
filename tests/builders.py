"""Tiny tasks, and everything that an app needs around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fakes import Check, FakeClock, FakeRunner

from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.code.index import index_source
from gistpoint.core.entrypoints.runs import EntrypointRunner
from gistpoint.core.generation.making import template_for
from gistpoint.core.kinds.folder import read_task, write_task
from gistpoint.core.locations import Locations
from gistpoint.core.outcomes import Writable
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import RunRequest
from gistpoint.core.tasks.brief import template_sha256
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.model import Answer, Baseline, Brief, Failure, Mode, Source, Suite, Target, Task
from gistpoint.core.tasks.protection import Protection
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import TaskStore

GOOD = {
    "shop/__init__.py": "",
    "shop/prices.py": '''"""Prices in cents."""


def discount(price, percent):
    """Return the price with a percentage taken off."""
    return price - price * percent // 100


class Basket:
    """Things that someone buys."""

    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        """Put something into the basket."""
        self.items.append((name, price, count))

    def total(self, percent=0):
        """Return what all of it costs, with a discount."""
        return discount(sum(price * count for _, price, count in self.items), percent)
''',
    "shop/stock/shelf.py": '''def capacity(width, depth=2):
    """Return how many things fit."""
    return width * depth
''',
    "README.md": "# A shop\n",
    "tests/test_prices.py": "def test_total():\n    assert True\n",
}
REMOVED = {"def discount": "    return price - price * percent // 100", "def body": "    pass"}
REPAIR = '''def discount(price, percent):
    """Return the price with a percentage taken off."""
    return price - price * percent // 100'''

SUSPICIOUS = REPAIR.replace("    return", "    import gc\n    gc.collect(0)\n    return")
"""A repair that passes and is marked as suspicious."""


def _basket(names: Mapping[str, object], percent: int) -> int:
    basket = names["Basket"]()  # type: ignore[operator]
    basket.add("apple", 30, 2)
    basket.add("pear", 40)
    total: int = basket.total(percent)
    return total


def _expects(percent: int, total: int) -> Check:
    def check(names: Mapping[str, object]) -> None:
        found = _basket(names, percent)
        assert found == total, f"{found} is not {total}"

    return check


def _capacity(names: Mapping[str, object]) -> None:
    assert names["capacity"](3) == 6  # type: ignore[operator]


CHECKS: dict[str, Check] = {
    "tests/test_prices.py::test_total": _expects(0, 100),
    "tests/test_prices.py::test_tenth": _expects(10, 90),
    "tests/test_prices.py::test_half": _expects(50, 50),
    "tests/test_prices.py::test_odd[list[int]]": _expects(33, 67),
    "tests/test_prices.py::test_all": _expects(100, 0),
    "tests/test_shelf.py::test_capacity": _capacity,
}


def build_task(
    root: Path,
    mode: Mode = Mode.REMOVE,
    *,
    budgets: Budgets | None = None,
    extra_files: Mapping[str, str] | None = None,
    failure_text: str = "AssertionError: None is not 90",
    demo: bool = False,
    library: str = "shop",
) -> Task:
    """Write a task with `shop/prices.py::discount` removed or corrupted, and read it back."""
    good = {**GOOD, **(extra_files or {})}
    path, line = "shop/prices.py", REMOVED["def discount"]
    broken = REMOVED["def body"] if mode is Mode.REMOVE else "    return price + price * percent // 100"
    bad = {**good, path: good[path].replace(line, broken)}
    folder = root / f"{mode.value}-{len(list(root.glob('*')) if root.is_dir() else [])}"
    tree_sha256 = write_files(bad, folder)
    original = index_source(path, good[path].encode()).find("discount").source
    corrupted = index_source(path, bad[path].encode()).find("discount")
    targets = (Target(path, "discount", original, corrupted.source),)
    tree = SourceTree.open(folder / "workspace" / "tree.tar")
    report = FakeRunner(CHECKS).run(RunRequest(tree, EnvironmentPins(), 10.0))
    passed = frozenset(CHECKS)
    failing = sorted(passed - report.passed)
    template = template_for(mode, 1)
    removed = mode is Mode.REMOVE
    brief = Brief(
        template,
        template_sha256(template),
        tuple(Failure(id, failure_text if n < 3 else "") for n, id in enumerate(failing)),
        target=f"{path}::discount" if removed else "",
        signature="def discount(price, percent):" if removed else "",
        docstring="Return the price with a percentage taken off." if removed else "",
    )
    ids = hash_of_ids(passed)
    source = Source("sdist", library, "1.0")
    identity = task_id(
        mode=mode,
        source_name=source.name,
        source_revision=source.revision,
        tree_sha256=tree_sha256,
        targets=targets,
        lock=(),
        ids_sha256=ids,
    )
    task = Task(
        id=identity,
        mode=mode,
        source=source,
        tree_sha256=tree_sha256,
        brief=brief,
        suite=Suite(len(passed), ids, 0.1, 10.0, test_files=("tests/test_prices.py",)),
        environment=EnvironmentPins(),
        budgets=budgets or Budgets(16, 4),
        demo=demo,
        folder=folder,
    )
    baseline = Baseline(
        backend="fake",
        environment="none",
        runs=3,
        collected=passed,
        passed=passed,
        passed_corrupted=report.passed,
        seconds=0.1,
        protections={"fake": Protection(Writable())},
    )
    write_task(task, Answer(targets, (baseline,)))
    return read_task(folder)


def write_files(files: Mapping[str, str], folder: Path) -> str:
    """Write the files and their tar as a task has them; return the tar's sha256."""
    place = folder / "files"
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8", newline="")
    return write_tree(place, folder / "workspace" / "tree.tar")


def _no_entrypoints() -> EntrypointRunner:
    raise AssertionError("The test gave nothing that runs gists.")


def build_services(
    root: Path,
    *,
    clock: FakeClock | None = None,
    runner: FakeRunner | None = None,
    role: Role = Role.BASELINE,
    entrypoints: EntrypointRunner | None = None,
) -> Services:
    """Return services with stores below `root`, and with one runner for all tasks."""
    locations = Locations(root / "data", root / "config", root / "cache")
    time = clock or FakeClock()
    running = runner or FakeRunner(CHECKS)
    return Services(
        locations=locations,
        tasks=TaskStore(locations.tasks),
        attempts=AttemptStore(locations.attempts, time, "test", locations.reviews),
        clock=time,
        runner_for=lambda task: running,
        entrypoints_for=lambda task: entrypoints or _no_entrypoints(),
        enrolment=replace(Enrolment(), role=role),
    )
