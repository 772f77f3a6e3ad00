"""The glance score: its features detect the signs of a change, without running the code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from small_trees import tree_of

from gistpoint.core.corruption.appearance import GlanceScorer, GlanceWeights, Weight, glance_weights
from gistpoint.core.corruption.appearance.naturalness import (
    CodeModel,
    StandardCounts,
    mean_bits,
    pruned,
    tokens_of,
)
from gistpoint.core.tasks.model import Target

MODULE = '''\
class Shelf:
    def widest_of_boxes(self, boxes, least=1):
        """Return the widest box that fits, and its height."""
        found = None
        width = 0
        height = 0
        for box in boxes:
            # boxes below this width are not counted
            if box.width < least:
                continue
            if box.width > width and box.depth <= self.depth:
                found = box
                width = box.width
                height = box.height
        if found is None:
            raise ValueError("no box fits")
        return found, height

    def lowest(self, boxes):
        found = None
        for box in boxes:
            if box.height < self.limit:
                found = box
        return found
'''
METHOD = "\n".join(line[4:] for line in MODULE.split("\n")[1:17])


class Eager:
    """A linter that reports a fault wherever a function contains `height = 0.0`."""

    def findings(self, texts: Sequence[str]) -> list[Counter[str]]:
        return [Counter({"X": text.count("height = 0.0")}) for text in texts]


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> GlanceScorer:
    tree = tree_of(
        {"shelf.py": MODULE, "tests/test_shelf.py": "junk = junk\n"}, tmp_path_factory.mktemp("tree")
    )
    return GlanceScorer(tree, frozenset(), Eager())


def changed(old: str, new: str) -> Target:
    assert METHOD.count(old) == 1, old
    return Target("shelf.py", "Shelf.widest_of_boxes", METHOD, METHOD.replace(old, new))


def feature(scorer: GlanceScorer, name: str, old: str, new: str) -> float:
    return scorer.features([changed(old, new)])[0][name]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("lint", "height = 0\n", "height = 0.0\n"),
        ("docstring", "return found, height", "return found, width"),
        ("comments", "box.width < least", "box.depth < least"),
        ("names", "for box in boxes", "for box in found"),
        ("message", "if found is None", "if found is not None"),
        ("disagreement", "height = box.height", "height = box.depth"),
        ("asymmetry", "            width = box.width", "            width = least + 1"),
        ("doubled_names", "box.width < least", "box.width < box.depth"),
        ("idle", "return found, height", "return found, found"),
        ("swap", "box.depth <= self.depth", "box.depth <= self.limit"),
        ("constant", "width = 0\n", "width = 1\n"),
        ("negation", "if found is None", "if found is not None"),
        ("boundary", "box.width > width", "box.width >= width"),
        ("logic", "width and box", "width or box"),
        ("removal", "            height = box.height\n", ""),
        ("foreign", "least=1):", "least=1):\n    total = 0"),
        ("in_return", "return found, height", "return found, width"),
        ("in_test", "box.width > width", "box.width >= width"),
    ],
)
def test_a_feature_sees_the_change_that_it_is_for(
    scorer: GlanceScorer, name: str, old: str, new: str
) -> None:
    assert feature(scorer, name, old, new) > 0


@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: f"# coding: latin-1\n{text}".encode("latin-1"),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
    ],
)
def test_the_library_is_read_in_its_encodings(encoded: Callable[[str], bytes], tmp_path: Path) -> None:
    texts = {"shelf.py": MODULE.replace("least", "größe"), "base.py": "größe = größe + width\n" * 3}
    target = Target(
        "shelf.py",
        "Shelf.widest_of_boxes",
        METHOD.replace("least", "größe"),
        METHOD.replace("least", "größe").replace("box.width < größe", "box.depth < größe"),
    )
    found = []
    for name, files in (("plain", texts), ("encoded", {name: encoded(text) for name, text in texts.items()})):
        (tmp_path / name).mkdir()
        found.append(
            GlanceScorer(tree_of(files, tmp_path / name), frozenset(), Eager()).features([target])[0]
        )
    assert found[1] == pytest.approx(found[0])


def test_a_boundary_shows_in_no_feature_of_what_is_said(scorer: GlanceScorer) -> None:
    found = scorer.features([changed("box.width > width", "box.width >= width")])[0]
    silent = (
        "lint",
        "docstring",
        "comments",
        "names",
        "message",
        "disagreement",
        "idle",
        "swap",
        "constant",
        "logic",
    )
    assert {name: found[name] for name in silent} == dict.fromkeys(silent, 0.0)


def test_code_that_is_like_nothing_around_it_is_less_natural(scorer: GlanceScorer) -> None:
    odd, usual = (
        ("if box.height < self.limit", "for x in {found: []}"),
        ("box.width < least", "box.width <= least"),
    )
    assert feature(scorer, "surprise", "if box.width < least", odd[1]) > feature(scorer, "surprise", *usual)


def test_a_model_predicts_what_it_has_read_but_not_from_the_function_itself() -> None:
    line = "for item in self.items.values():\n    total += item.price\n"
    other = "def f(self):\n    return self.name\n"
    standard = StandardCounts.read(b'{"words": ["return", "self"], "grams": [[0, 5, 1, 5], [0, 1, 5], []]}')
    read = CodeModel([tokens_of(line), tokens_of(other)], standard)
    fresh, own = read.of_function(other), read.of_function(line)
    assert mean_bits(fresh.bits(line), {1, 2}) < mean_bits(own.bits(line), {1, 2})
    assert mean_bits(fresh.bits("return self"), {1}) < mean_bits(fresh.bits("self return"), {1})


def test_counts_of_code_keep_what_is_frequent() -> None:
    stored = pruned(["for x in y:\n    pass\n" * 8, "rare = 1\n"], 2)
    assert "for" in stored.words
    assert "rare" not in stored.words
    assert "<name>" in stored.words
    assert StandardCounts.read(msgspec.json.encode(stored)).counts.grams["for", "x"] == 8


def test_the_score_is_the_logistic_of_standardised_features() -> None:
    weights = GlanceWeights(0.5, 0.6, {"lint": Weight(2.0, 1.0, 0.5), "size": Weight(-1.0, 0.0, 2.0)})
    assert weights.score({"lint": 1.0, "size": 1.0, "other": 9.0}).value == 0.5
    assert weights.score({"lint": 2.0, "size": 1.0}).value == pytest.approx(0.982, abs=1e-3)
    assert weights.score({"lint": 1.0, "size": 1.0, "other": 9.0}).features == {"lint": 1.0, "size": 1.0}


def test_scores_come_in_the_order_of_the_corruptions_and_without_a_run(scorer: GlanceScorer) -> None:
    quiet = changed("box.width > width", "box.width >= width")
    loud = changed("height = box.height", "height = box.depth")
    assert scorer.scores([]) == []
    first, second = scorer.scores([quiet, loud])
    assert scorer.scores([loud, quiet]) == [second, first]
    assert first.value < second.value
    assert first.features.keys() == glance_weights().weights.keys()


def test_what_can_not_be_read_is_taken_as_seen(scorer: GlanceScorer) -> None:
    broken = Target("shelf.py", "Shelf.widest_of_boxes", METHOD, "def widest(:\n")
    assert [score.value for score in scorer.scores([broken])] == [1.0]


def test_a_tree_without_code_can_be_scored(tmp_path: Path) -> None:
    empty = GlanceScorer(tree_of({"README": ""}, tmp_path), frozenset(), Eager())
    assert 0 < empty.scores([changed("box.width > width", "box.width >= width")])[0].value < 1
