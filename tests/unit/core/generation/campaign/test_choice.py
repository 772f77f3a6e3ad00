"""The explicit choice of functions: the candidates, their strata, and the refusals."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_benches import SHOP, Shop

from gistpoint.core.callgraph import build_call_graph
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.errors import UserError
from gistpoint.core.generation.candidates import CandidatePlan, in_reach, plan
from gistpoint.core.generation.choice import Choice, GroupRules, read_bars, read_functions, read_sizes
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.making import write_kept
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.metrics.bars import MetricBar, MetricEnd, at_bars
from gistpoint.core.metrics.table import ColumnError, measure_functions

CHAIN = 24


def source() -> str:
    """Return functions f0 to f23: fN has N more lines than f0 and calls its predecessor."""
    made = []
    for n in range(CHAIN):
        lines = "".join(f"    x += {k}\n" for k in range(n))
        made.append(
            f"def f{n}(x):\n    if x > 3:\n        return 0\n{lines}    return {f'f{n - 1}(x)' if n else 'x'}\n"
        )
    return SHOP + "\n\n" + "\n\n".join(made)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> SourceLibrary:
    shop = Shop(tmp_path_factory.mktemp("chain"), source=source())
    learned = shop.library()
    files = {"shop.py": source().encode()}
    graph = build_call_graph(files)
    tests = sorted(learned.intake.passed)
    return replace(
        learned,
        rows=tuple(row for row in measure_functions(graph, files) if "::f" in row.function),
        edges=frozenset((edge.caller, edge.callee) for edge in graph.edges),
        test_map=TestMap(
            {f"shop.py::f{n}": frozenset(tests) for n in range(CHAIN)}, tests=dict.fromkeys(tests, 0.01)
        ),
    )


def planned(library: SourceLibrary, mode: str = "remove", seed: int = 0, **settings: Any) -> CandidatePlan:
    return plan(library, CampaignSettings(CampaignMode(mode), seed, **settings))


def numbers(found: CandidatePlan) -> list[int]:
    return sorted(int(candidate.name.removeprefix("shop.py::f")) for candidate in found.candidates)


def test_conditions_choose_and_percentiles_are_those_of_the_library(library: SourceLibrary) -> None:
    found = planned(library, choice=Choice(where=("code_lines >= p50", "not f23")))
    assert numbers(found) == list(range(12, 23))
    assert found.left_out["not_chosen"] == 13
    assert not found.strata.names


def test_a_list_chooses_even_short_functions_and_names_what_is_unknown(library: SourceLibrary) -> None:
    listed = read_functions("# mine\nshop.py::f3\n\nshop.py::f0\n", "mine.txt")
    assert numbers(planned(library, choice=Choice(functions=listed))) == [0, 3]
    wrong = read_functions("shop.py::f3\nshop.py::g\nelse.py::h\n", "mine.txt")
    with pytest.raises(UserError, match=r"line 2: shop\.py::g, line 3: else\.py::h"):
        planned(library, choice=Choice(functions=wrong))


@pytest.mark.parametrize("text", ["", "# none\n", "shop.py::f1\nf2\n"])
def test_what_is_no_list_of_functions_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"mine\.txt"):
        read_functions(text, "mine.txt")


def test_bars_have_metrics_ends_and_a_percentile(library: SourceLibrary) -> None:
    bars = read_bars("code_lines,harmonic_out:low")
    assert bars == (MetricBar("code_lines"), MetricBar("harmonic_out", MetricEnd.LOW))
    easy = planned(
        library, hard=True, choice=Choice(bars=read_bars("code_lines:low,out_degree:high"), percentile=75)
    )
    assert numbers(easy) == [1, 2, 3, 4, 5]
    assert easy.left_out["not_in_the_hard_set"] == 19
    assert numbers(
        planned(library, hard=True, choice=Choice(bars=read_bars("code_lines"), percentile=50))
    ) == list(range(12, 24))


def test_bars_are_percentiles_among_those_that_are_left(library: SourceLibrary) -> None:
    choice = Choice(where=("code_lines < p50",), bars=read_bars("code_lines"), percentile=90)
    assert numbers(planned(library, hard=True, choice=choice)) == [10, 11]
    assert at_bars([], read_bars("degree")) == []


def test_a_plane_has_cells_of_quantiles_and_all_get_their_turn(library: SourceLibrary) -> None:
    choice = Choice(plane=("code_lines", "halstead_volume_paper"), bins=4)
    found = planned(library, choice=choice, seed=3)
    assert found.filled() == [(name, 6, 0) for name in sorted(found.strata.names)]
    assert set(found.strata.names) == {f"code_lines {n}/4, halstead_volume_paper {n}/4" for n in range(1, 5)}
    first = [candidate.stratum for candidate in found.candidates[:4]]
    assert sorted(first) == sorted(found.strata.names)
    assert found == planned(library, choice=choice, seed=3)
    assert len({planned(library, choice=choice, seed=seed).strata.names for seed in range(9)}) > 1


def test_quadrants_are_high_and_low(library: SourceLibrary) -> None:
    found = planned(library, choice=Choice(plane=("code_lines", "in_degree"), bins=2, equal=True))
    cells = Counter(candidate.stratum for candidate in found.candidates)
    assert cells == {"code_lines low, in_degree low": 12, "code_lines high, in_degree low": 12}
    assert found.strata.equal


def test_sizes_make_a_candidate_of_each_size(library: SourceLibrary) -> None:
    sizes, wanted = read_sizes("1:2,3:4")
    found = planned(library, "multi", groups=GroupRules(sizes, wanted))
    keys = [candidate.key for candidate in found.candidates[:3]]
    assert found.filled(keys) == [("1 function", CHAIN, 2), ("3 functions", CHAIN, 1)]
    assert found.strata.fixed == {"1 function": 2, "3 functions": 4}
    assert {candidate.size for candidate in found.candidates} == {1, 3}
    assert all(not candidate.partners for candidate in found.candidates if candidate.size == 1)
    assert len({candidate.key for candidate in found.candidates}) == 2 * CHAIN


def test_partners_are_as_near_as_asked(library: SourceLibrary) -> None:
    for rules, most in ((GroupRules((2,), distance=1), 1), (GroupRules((3,), chain=True, distance=2), 4)):
        for candidate in planned(library, "multi", groups=rules).candidates:
            steps = library.reach.steps(candidate.name)
            assert candidate.partners
            assert max(steps[name] for name in candidate.partners) <= most
    others = ("shop.py::f5", "shop.py::f6")
    assert not in_reach(library, GroupRules(distance=1), "shop.py::f7", others)
    assert in_reach(library, GroupRules(distance=1, chain=True), "shop.py::f7", others)
    assert not in_reach(library, GroupRules(distance=1, chain=True), "shop.py::f6", others)


@pytest.mark.parametrize(
    ("text", "sizes", "wanted"),
    [
        ("3", (3,), ()),
        ("1..4", (1, 2, 3, 4), ()),
        ("1,2,8", (1, 2, 8), ()),
        ("1:10,2:10,4:5", (1, 2, 4), (10, 10, 5)),
    ],
)
def test_sizes_are_read(text: str, sizes: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    assert read_sizes(text) == (sizes, wanted)


@pytest.mark.parametrize("text", ["", "x", "0..3", "4..2", "1..9", "1:2,3", "2:0", "1..2..3", "2:x"])
def test_what_says_no_sizes_is_refused(text: str) -> None:
    with pytest.raises(UserError) as caught:
        read_sizes(text)
    assert "--size" in caught.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        {"sizes": (2, 2)},
        {"sizes": (9,)},
        {"distance": 0},
    ],
)
def test_rules_of_groups_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        GroupRules(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"where": ("colour > 3",)},
        {"bars": (MetricBar("colour"),)},
        {"bars": (MetricBar("kind"),)},
        {"plane": ("code_lines",)},
        {"plane": ("code_lines", "code_lines")},
        {"plane": ("code_lines", "line")},
        {"percentile": 100.0},
        {"percentile": float("nan")},
        {"bins": 1},
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Choice(**settings)


@pytest.mark.parametrize("text", ["degree:up", "degree:", "cyclomatic,degree:x"])
def test_an_end_is_high_or_low(text: str) -> None:
    with pytest.raises(UserError, match="followed by :low or :high"):
        read_bars(text)


def test_an_unknown_metric_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ColumnError) as caught:
        Choice(bars=read_bars("colour"))
    assert "harmonic_out" in caught.value.hint


def test_what_belongs_to_groups_needs_groups() -> None:
    with pytest.raises(UserError, match="makes no groups"):
        CampaignSettings(CampaignMode.DISCOVERY, groups=GroupRules((3,)))
    with pytest.raises(UserError, match="but not both"):
        CampaignSettings(
            CampaignMode.MULTI, groups=GroupRules((3,), (4,)), choice=Choice(plane=("code_lines", "degree"))
        )


def test_settings_without_a_choice_are_written_as_before_and_a_choice_is_no_part_of_a_verdict() -> None:
    plain = CampaignSettings(CampaignMode.MULTI)
    assert {"choice", "groups"}.isdisjoint(plain.to_json())
    chosen = replace(
        plain, hard=True, choice=Choice(where=("degree > 1",)), groups=GroupRules(tell_count=True)
    )
    assert chosen.deciding() == plain.deciding()
    assert chosen.to_json() != plain.to_json()
    assert replace(plain, groups=GroupRules(chain=True)).deciding() != plain.deciding()
    assert replace(plain, groups=GroupRules((3,))).deciding() != plain.deciding()
    listed = [Choice(functions={"a::b": 1, "a::c": 2}), Choice(functions={"a::c": 1, "a::b": 7})]
    assert listed[0].to_json() == listed[1].to_json()


def test_the_campaign_of_a_chosen_set_goes_on_with_the_same_candidates(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    counts, kept = shop.campaign("remove", choice=Choice(where=("code_lines > 5",)))
    assert {name for verdict in kept for name in verdict.names} == {"shop.py::price", "shop.py::bill"}
    again, _ = shop.campaign("remove", choice=Choice(where=("code_lines > 5",)))
    assert [verdict.key for verdict in again.verdicts] == [verdict.key for verdict in counts.verdicts]


def test_groups_have_exactly_the_size_that_is_asked_for(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    _, kept = shop.campaign("multi", 4, min_failing=2, groups=GroupRules((1, 2, 5), tell_count=True))
    assert sorted({len(verdict.names) for verdict in kept}) == [1, 2]
    settings = CampaignSettings(CampaignMode.MULTI, min_failing=2, groups=GroupRules((2,), tell_count=True))
    asked = replace(settings, groups=GroupRules((2, 5)))
    assert plan(shop.library(), asked).filled() == [("2 functions", 3, 0), ("5 functions", 0, 0)]
    pair = next(verdict for verdict in kept if len(verdict.names) == 2)
    assert pair.kept is not None
    assert pair.kept.provenance["stratum"] == "2 functions"
    task = write_kept(shop.library(), settings, pair.kept, tmp_path / "tasks")
    assert task.rules.tell_count
    assert task.brief.targets == 2


def test_a_chain_leads_from_each_to_the_next(tmp_path: Path) -> None:
    rules = GroupRules((3,), chain=True, distance=1)
    _, kept = Shop(tmp_path).campaign("multi", 1, min_failing=2, groups=rules)
    assert [verdict.names for verdict in kept] == [("shop.py::price", "shop.py::bill", "shop.py::stock")]
