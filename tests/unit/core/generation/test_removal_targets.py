"""Functions for remove mode: named ones, and random ones chosen by a seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trees import tree_of

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import SourceError
from gistpoint.core.generation.intake import Intake, NoGood, NoTaskError
from gistpoint.core.generation.removal import is_class, random_targets, removal_by, removal_target
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.tasks.trees import corrupted_tree, repaired_tree

MODULE = '''class Shop:
    """A shop."""

    def sell(self, thing):
        """Sell it."""
        self.sold.append(thing)
        self.count += 1
        return thing

    def buy(self, thing):
        self.count += 1
        self.money -= thing.price
        return thing


def tiny():
    return 1


def sell(thing):
    if thing:
        return thing.price
    return 0
'''
FILES = {
    "pkg/shop.py": MODULE,
    "tests/test_shop.py": "def test_a():\n    x = 1\n    y = 2\n    assert x < y\n",
    "bad.py": "def (",
}


def intake_of(folder: Path) -> Intake:
    tree = tree_of(FILES, folder)
    repository = Repository(Source("folder", "shop", "1"), tree, EnvironmentPins())
    ids = frozenset({"tests/test_shop.py::test_a"})
    return Intake(repository, ids, ids, (), 0.1, 3)


def test_named_function_loses_its_body_and_gets_it_back(tmp_path: Path) -> None:
    tree = tree_of(FILES, tmp_path)
    target = removal_target(tree, "pkg/shop.py::Shop.sell")
    assert target.corrupted == 'def sell(self, thing):\n    """Sell it."""\n    pass'
    broken = corrupted_tree(tree, (target,))
    assert broken.read("pkg/shop.py").decode() == MODULE.replace(
        "        self.sold.append(thing)\n        self.count += 1\n        return thing\n\n    def buy",
        "        pass\n\n    def buy",
    )
    assert repaired_tree(broken, (target,)).read("pkg/shop.py") == MODULE.encode()


def test_bare_name_must_be_unique(tmp_path: Path) -> None:
    tree = tree_of(FILES, tmp_path)
    assert removal_target(tree, "buy").name == "pkg/shop.py::Shop.buy"
    with pytest.raises(SourceError, match=r"names 2 functions: pkg/shop\.py::Shop\.sell, pkg/shop\.py::sell"):
        removal_target(tree, "sell")
    with pytest.raises(SourceError, match="names 0 functions"):
        removal_target(tree, "nothing")
    with pytest.raises(SourceError, match="There is no file"):
        removal_target(tree, "nowhere.py::f")
    with pytest.raises(CodeError):
        removal_target(tree, "pkg/shop.py::nothing")
    with pytest.raises(CodeError):
        removal_target(tree, "bad.py::f")


def test_a_class_loses_the_bodies_of_its_methods_and_keeps_what_an_import_needs(tmp_path: Path) -> None:
    module = MODULE.replace('    """A shop."""\n', '    """A shop."""\n\n    open = sorted([9, 8])\n')
    module = module.replace("def tiny", "class Branch(Shop):\n    hours = Shop.open\n\n\ndef tiny")
    tree = tree_of({"pkg/shop.py": module}, tmp_path)
    target = removal_target(tree, "Shop")
    assert target.name == "pkg/shop.py::Shop"
    assert is_class(target)
    assert removal_by(target) == "remove_methods"
    assert target.corrupted.split("\n") == [
        "class Shop:",
        '    """A shop."""',
        "",
        "    open = sorted([9, 8])",
        "",
        "    def sell(self, thing):",
        '        """Sell it."""',
        "        pass",
        "",
        "    def buy(self, thing):",
        "        pass",
    ]
    broken = corrupted_tree(tree, (target,))
    names: dict[str, object] = {}
    exec(broken.read("pkg/shop.py"), names)
    assert names["Branch"].hours == [8, 9]  # type: ignore[attr-defined]
    assert repaired_tree(broken, (target,)).read("pkg/shop.py") == module.encode()


def test_inner_classes_lose_their_bodies_too_and_functions_inside_go_with_them(tmp_path: Path) -> None:
    text = (
        "class A:\n    class B:\n        @property\n        def x(self):\n            def f():\n"
        "                return 1\n            return f()\n        @x.setter\n        def x(self, value):\n"
        "            self._x = value\n    async def g(self): return 3\n"
    )
    target = removal_target(tree_of({"a.py": text}, tmp_path), "a.py::A")
    assert target.corrupted == (
        "class A:\n    class B:\n        @property\n        def x(self):\n            pass\n        @x.setter\n"
        "        def x(self, value):\n            pass\n    async def g(self):\n        pass"
    )


def test_a_class_without_methods_has_no_body_to_remove(tmp_path: Path) -> None:
    with pytest.raises(NoTaskError, match="has no method") as caught:
        removal_target(tree_of({"a.py": "class A:\n    x = 1\n    y = 2\n"}, tmp_path), "a.py::A")
    assert caught.value.reason is NoGood.NOT_REMOVABLE


def test_random_pick_is_decided_by_the_seed_and_leaves_out_tests_and_next_to_nothing(tmp_path: Path) -> None:
    intake = intake_of(tmp_path)
    names = [target.name for target in random_targets(intake, 1)]
    assert set(names) == {"pkg/shop.py::Shop.sell", "pkg/shop.py::Shop.buy", "pkg/shop.py::sell"}
    assert names == [target.name for target in random_targets(intake, 1)]
    orders = {tuple(target.name for target in random_targets(intake, seed)) for seed in range(20)}
    assert len(orders) > 1
