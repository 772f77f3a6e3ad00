"""The rules for deciding candidates have a version, so that verdicts under other rules are not reused."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec
from small_library import write_small_library

from gistpoint.core.code.index import DefinitionKind, index_source
from gistpoint.core.corruption.appearance import glance_weights
from gistpoint.core.corruption.corruptions import enumerate_corruptions, pairs_of
from gistpoint.core.corruption.evidence import ANY_FAILING, FEW_FAILING, MORE_FAILING, WEIGHTS
from gistpoint.core.corruption.registry import BUILT_IN
from gistpoint.core.corruption.subject import read_vocabulary
from gistpoint.core.generation import campaign, candidates, choice
from gistpoint.core.generation.intake import RUNS_OF_ONE
from gistpoint.core.generation.settings import RECIPE
from gistpoint.core.generation.trials import discovery, history
from gistpoint.core.trees import SourceTree, write_tree

DIGESTS = {14: "dc58ee5915530540"}
"""The hashes of the rules, the operators with priors, and their results on a small library, by recipe."""


def rules() -> str:
    numbers = (
        [
            candidates.WITH_HIDING_PLACES,
            candidates.USUAL,
            candidates.EXPENSIVE,
            candidates.LOCATED,
            choice.REACH,
        ],
        [discovery.MOST_PAIRS, discovery.ENOUGH, discovery.PLENTY, campaign.MOST_SHARED, candidates.SUBTLE],
        [ANY_FAILING, FEW_FAILING, MORE_FAILING, RUNS_OF_ONE, sorted(WEIGHTS.items())],
        [(operator.family, operator.prior) for operator in BUILT_IN],
        msgspec.to_builtins(glance_weights()),
        [history.MOST_CHANGED_LINES, history.MOST_PROBES, sorted(history.GONE)],
    )
    return repr(numbers)


def test_rules_that_changed_have_a_recipe_of_their_own(tmp_path: Path) -> None:
    write_tree(write_small_library(tmp_path / "small"), tmp_path / "tree.tar")
    tree = SourceTree.open(tmp_path / "tree.tar")
    vocabulary = read_vocabulary(tree, frozenset())
    digest = sha256(rules().encode())
    for path in tree.files(".py"):
        index = index_source(path, tree.read(path))
        for definition in index.definitions if not path.startswith("tests/") else ():
            if definition.kind is not DefinitionKind.CLASS:
                found = enumerate_corruptions(index, definition, vocabulary).kept
                pairs = pairs_of(found[:4], vocabulary.scope(definition))
                for item in (*found, *pairs):
                    digest.update(repr((item.families, item.prior, item.target.corrupted)).encode())
    assert DIGESTS.get(RECIPE) == digest.hexdigest()[:16], (
        "the rules changed: raise RECIPE and add its digest here"
    )
