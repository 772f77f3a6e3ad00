"""Campaigns on a little library: the kept tasks, their order, and no work done twice."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_benches import CHECKS, ENTERED, SHOP, FakeBench, Shop

from gistpoint.core.errors import InfrastructureError, UserError
from gistpoint.core.generation.campaign import control, decide
from gistpoint.core.generation.candidates import CorruptionCandidate, plan
from gistpoint.core.generation.context import close_contexts
from gistpoint.core.generation.making import write_kept
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeFailure, ProbeReport
from gistpoint.core.tasks.model import Mode, Target
from gistpoint.core.tasks.trees import corrupted_tree

MODES = ["remove", "discovery", "multi"]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def told(verdicts: list[CandidateVerdict]) -> list[object]:
    """Return the verdicts in their saved form, with null in place of their costs."""
    return [{**verdict.to_json(), "cost": None} for verdict in verdicts]


@pytest.mark.parametrize("mode", MODES)
def test_verdicts_are_the_same_whatever_the_number_of_workers(tmp_path: Path, mode: str) -> None:
    found = []
    for workers in (1, 2, 5):
        (tmp_path / str(workers)).mkdir()

        def late(targets: tuple[Target, ...]) -> None:
            time.sleep(random.random() / 200)

        counts, kept = Shop(tmp_path / str(workers), FakeBench(wish=late)).campaign(
            mode, workers=workers, min_failing=2
        )
        found.append([told(counts.verdicts), told(kept)])
    assert found[0] == found[1] == found[2]
    assert found[0][1]


@pytest.mark.parametrize("mode", MODES)
def test_seed_decides_order_and_corruptions(shop: Shop, mode: str) -> None:
    library = shop.library()

    def order(seed: int) -> list[tuple[str, ...]]:
        candidates = plan(library, CampaignSettings(CampaignMode(mode), seed, 2)).candidates
        return [(candidate.name, *candidate.partners) for candidate in candidates]

    assert order(3) == order(3)
    assert len({tuple(order(seed)) for seed in range(6)}) > 1


def test_campaign_ends_with_the_count_and_the_rest_is_decided_when_more_is_wanted(shop: Shop) -> None:
    counts, kept = shop.campaign("remove", count=1)
    assert (counts.kept, len(kept)) == (1, 1)
    assert counts.tried < 3
    more, all_kept = shop.campaign("remove", count=99)
    assert told(more.verdicts)[: counts.tried] == told(counts.verdicts)
    assert told(all_kept[:1]) == told(kept)
    assert len(all_kept) == 3


def test_repeated_run_reads_what_it_knows_and_runs_nothing(shop: Shop) -> None:
    first, kept = shop.campaign("discovery", min_failing=2)
    runs, recorded = shop.bench.runs, [mapper.ran for mapper in shop.bench.mappers]
    assert recorded == [1]
    second, again = shop.campaign("discovery", min_failing=2)
    assert told(second.verdicts) == told(first.verdicts)
    assert told(again) == told(kept)
    assert shop.bench.runs == runs
    assert [mapper.ran for mapper in shop.bench.mappers] == [1]


def test_damaged_file_of_a_library_is_determined_again(shop: Shop) -> None:
    first = shop.library()
    for name in ("intake", "calls", "repository"):
        path = shop.folder / "library" / f"{name}.json"
        whole = json.loads(path.read_text())
        path.write_text(json.dumps({"version": 1, "source": {"kind": 1}, "rows": [{}]}))
        again = shop.library()
        assert again.intake.passed == first.intake.passed
        assert (again.edges, again.rows) == (first.edges, first.rows)
        assert json.loads(path.read_text()).keys() == whole.keys()


def test_functions_that_few_tests_see_or_that_are_short_are_no_candidates(shop: Shop) -> None:
    planned = plan(shop.library(), CampaignSettings(CampaignMode.REMOVE))
    assert sorted(candidate.name for candidate in planned.candidates) == sorted(ENTERED)
    assert planned.functions == 4
    assert planned.left_out == {"too_short": 0, "seen_by_too_few_tests": 1, "not_in_the_hard_set": 0}
    assert (
        plan(shop.library(), CampaignSettings(CampaignMode.REMOVE, min_failing=13)).left_out[
            "seen_by_too_few_tests"
        ]
        == 3
    )


@pytest.mark.parametrize("mode", MODES)
def test_functions_that_run_at_import_come_last(shop: Shop, mode: str) -> None:
    library = shop.library()
    imported = replace(library.test_map, at_import=frozenset({"shop.py::stock"}))
    for seed in range(4):
        planned = plan(replace(library, test_map=imported), CampaignSettings(CampaignMode(mode), seed, 2))
        assert [candidate.name for candidate in planned.candidates][-1] == "shop.py::stock"
        assert all("shop.py::stock" not in candidate.partners[:-1] for candidate in planned.candidates)


def test_hard_candidates_are_complex_and_well_connected(shop: Shop) -> None:
    planned = plan(shop.library(), CampaignSettings(CampaignMode.REMOVE, hard=True))
    assert [candidate.name for candidate in planned.candidates] == ["shop.py::bill"]
    assert planned.left_out["not_in_the_hard_set"] == 2


def test_discovery_keeps_only_good_corruptions_and_their_record_replays(shop: Shop) -> None:
    from gistpoint.core.corruption.corruptions import replay

    _, kept = shop.campaign("discovery", min_failing=2)
    tree = shop.library().intake.repository.tree
    assert len(kept) == 3
    for verdict in kept:
        assert verdict.kept is not None
        (part,) = verdict.kept.provenance["parts"]
        evidence = part["evidence"]
        assert part["good"]
        assert 2 <= evidence["failing"] == len(verdict.kept.failing) <= 15
        assert replay(part["record"], tree) == verdict.kept.targets[0]
        assert set(part["subtlety"]) == {"value", "parts"}


def test_what_is_seen_at_a_glance_is_not_tried(tmp_path: Path) -> None:
    counts, kept = Shop(tmp_path, FakeBench(glance=0.99)).campaign("discovery", min_failing=2)
    assert not kept
    assert set(counts.reasons) == {Reason.AT_A_GLANCE}
    assert counts.fates[Reason.AT_A_GLANCE] >= 3
    assert not any(verdict.cost.probes for verdict in counts.verdicts)
    counts, _ = Shop(tmp_path, FakeBench(glance=0.99)).campaign("discovery", min_failing=2, max_glance=1.0)
    assert Reason.AT_A_GLANCE not in counts.fates


def test_a_bound_on_the_glance_score_is_part_of_the_settings_and_not_for_a_model() -> None:
    usual, wider = (CampaignSettings(CampaignMode.DISCOVERY, max_glance=most) for most in (None, 0.5))
    assert wider.deciding() == {**usual.deciding(), "max_glance": 0.5}
    with pytest.raises(UserError, match="without a model"):
        CampaignSettings(CampaignMode.DISCOVERY, model="m", max_glance=0.5)


def test_group_is_near_and_proven_together(shop: Shop) -> None:
    _, kept = shop.campaign("multi", min_failing=2)
    library = shop.library()
    for verdict in kept:
        assert verdict.kept is not None
        proof, names = verdict.kept, verdict.names
        assert 2 <= len(names) == len(set(names)) <= 4
        assert all(alone < len(proof.failing) for alone in proof.provenance["failing_alone"])
        assert all(len(path) - 1 <= 4 for path in proof.provenance["paths"])
        assert proof.provenance["largest_distance"] == max(
            len(path) - 1 for path in proof.provenance["paths"]
        )
        for target in proof.targets:
            others = tuple(other for other in proof.targets if other is not target)
            for part in ((target,), others):
                report = shop.bench.prober(library).decide(part, tuple(CHECKS))
                assert report.failed


@pytest.mark.parametrize("mode", MODES)
def test_task_of_a_verdict_holds_metrics_with_percentiles_and_where_it_came_from(
    shop: Shop, mode: str
) -> None:
    _, kept = shop.campaign(mode, min_failing=2)
    library, settings = shop.library(), CampaignSettings(CampaignMode(mode), min_failing=2)
    assert kept[0].kept is not None
    task = write_kept(replace(library, stars=7), settings, kept[0].kept, shop.folder / "tasks")
    assert write_kept(library, settings, kept[0].kept, shop.folder / "tasks").id == task.id
    assert len(list((shop.folder / "tasks").iterdir())) == 1
    answer = read_answer(task)
    assert task.mode is (Mode.REMOVE if mode == "remove" else Mode.DISCOVERY)
    assert {failure.id for failure in task.brief.failing} == answer.baselines[0].failing
    assert sum(bool(failure.text) for failure in task.brief.failing) == 3
    assert sorted(answer.metrics["functions"]) == sorted(kept[0].names)
    assert answer.metrics["population"] == 4
    for metrics in answer.metrics["functions"].values():
        assert {"cyclomatic", "harmonic_out", "pagerank", "betweenness", "code_lines", "nesting"} <= set(
            metrics
        )
    assert answer.provenance["campaign"]["mode"] == mode
    assert answer.provenance["map"]["entering"] == {name: len(ENTERED[name]) for name in kept[0].names}
    assert answer.provenance["stars"] == 7


def test_percentile_is_the_share_of_functions_at_or_below(shop: Shop) -> None:
    metrics = shop.library().metrics_of("shop.py::bill")
    assert metrics["out_degree"] == {"value": 2, "percentile": 100.0}
    assert metrics["in_degree"] == {"value": 0, "percentile": 50.0}
    assert metrics["eigenvector"] == {"value": None, "percentile": None}


def verdict_of(
    shop: Shop, mode: str, name: str, partners: tuple[str, ...] = (), **options: Any
) -> CandidateVerdict:
    shop.library()
    settings = CampaignSettings(CampaignMode(mode), **options)
    try:
        return decide(shop.place(settings), CorruptionCandidate(name, "key", partners, 1 + len(partners)))
    finally:
        close_contexts()


def failing(*ids: str, through_target: bool = False, assertion: bool = True) -> ProbeReport:
    failure = ProbeFailure("E", assertion=assertion, through_target=through_target)
    return ProbeReport(RunStatus.FINISHED, dict.fromkeys(ids, failure), len(CHECKS), 0.001)


IDS = list(CHECKS)


@pytest.mark.parametrize(
    ("mode", "report", "reason", "fate"),
    [
        ("remove", failing(*IDS[:4]), Reason.TOO_FEW_FAILING, None),
        ("remove", ProbeReport(RunStatus.TIMED_OUT), Reason.HANGS, None),
        ("remove", ProbeReport(RunStatus.OUT_OF_MEMORY), Reason.HANGS, None),
        ("discovery", failing(), Reason.NONE_GOOD, "no_test_fails"),
        ("discovery", failing(*IDS[:4]), Reason.NONE_GOOD, "too_few_failing_tests"),
        ("discovery", failing(*(f"t::{n}" for n in range(41))), Reason.NONE_GOOD, "too_many_failing_tests"),
        ("discovery", failing(*IDS[:6], assertion=False), Reason.NONE_GOOD, "few_fail_by_assertion"),
        (
            "discovery",
            failing(*IDS[:6], through_target=True),
            Reason.NONE_GOOD,
            "tracebacks_show_the_function",
        ),
        ("discovery", ProbeReport(RunStatus.TIMED_OUT), Reason.NONE_GOOD, "hangs_or_exhausts_memory"),
        ("discovery", ProbeReport(RunStatus.CRASHED), Reason.NONE_GOOD, "run_gave_no_result"),
    ],
)
def test_what_the_probe_shows_drops_a_candidate(
    tmp_path: Path, mode: str, report: ProbeReport, reason: Reason, fate: str | None
) -> None:
    shop = Shop(tmp_path, FakeBench(wish=lambda targets: report))
    verdict = verdict_of(shop, mode, "shop.py::price")
    assert (verdict.reason, verdict.kept) == (reason, None)
    if fate is not None:
        assert verdict.fates[fate] > 0


def _fails(names: object) -> None:
    raise AssertionError


def test_corruption_on_which_probe_and_suite_differ_is_dropped(tmp_path: Path) -> None:
    shop = Shop(tmp_path, FakeBench(wish=lambda targets: failing(*IDS[:4])))
    shop.library()
    shop.bench.checks = {IDS[0]: CHECKS[IDS[0]], **dict.fromkeys(IDS[1:], _fails)}
    verdict = verdict_of(shop, "discovery", "shop.py::price", min_failing=1)
    assert verdict.reason is Reason.SUITE_DIFFERS
    assert verdict.fates["suite_differs_from_probe"] > 0


def test_probe_that_could_not_be_made_stops_the_campaign(tmp_path: Path) -> None:
    shop = Shop(tmp_path, FakeBench(wish=lambda targets: ProbeReport(RunStatus.INFRASTRUCTURE)))
    with pytest.raises(InfrastructureError):
        shop.campaign("remove")
    shop.bench.wish = lambda targets: None
    assert shop.campaign("remove")[0].kept == 3


def test_body_that_can_not_be_removed(tmp_path: Path) -> None:
    assert verdict_of(Shop(tmp_path), "remove", "shop.py::gone").reason is Reason.NOT_REMOVABLE


def test_function_that_no_operator_fits(tmp_path: Path) -> None:
    source = SHOP + "\n\ndef empty(x):\n    pass\n"
    assert (
        verdict_of(Shop(tmp_path, source=source), "discovery", "shop.py::empty").reason
        is Reason.NO_CORRUPTION
    )


def test_whole_suite_has_the_last_word(tmp_path: Path) -> None:
    """The probe reports five failing tests where the suite has none, hangs or does not run."""
    shop = Shop(tmp_path, FakeBench(wish=lambda targets: failing(*IDS[:5])))
    few = verdict_of(shop, "remove", "shop.py::price", min_failing=5)
    assert few.reason is Reason.KEPT
    shop.bench.checks = {id: lambda names: None for id in CHECKS}
    assert verdict_of(shop, "remove", "shop.py::price").reason is Reason.TOO_FEW_FAILING
    for status, reason in (
        (RunStatus.TIMED_OUT, Reason.HANGS),
        (RunStatus.CRASHED, Reason.NO_RESULT),
        (RunStatus.INVALID, Reason.NO_RESULT),
    ):
        shop.bench.status = status
        verdict = verdict_of(shop, "remove", "shop.py::price")
        assert (verdict.reason, verdict.cost.confirmations) == (reason, 1)


def test_suite_that_could_not_be_run_stops_the_campaign(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.library()
    shop.bench.status = RunStatus.INFRASTRUCTURE
    with pytest.raises(InfrastructureError):
        verdict_of(shop, "remove", "shop.py::price")


def test_original_that_lies_elsewhere_is_a_leak(tmp_path: Path) -> None:
    copied = (
        SHOP
        + "\n\ndef copy(orders):\n"
        + SHOP.partition("def stock(orders):\n")[2].partition("\n\n")[0]
        + "\n"
    )
    verdict = verdict_of(Shop(tmp_path, source=copied), "remove", "shop.py::stock")
    assert (verdict.reason, verdict.cost.probes, verdict.cost.confirmations) == (Reason.LEAKS, (), 0)


def test_group_without_partner(tmp_path: Path) -> None:
    assert verdict_of(Shop(tmp_path), "multi", "shop.py::price").reason is Reason.NO_PARTNER


def test_group_whose_parts_break_the_same_tests(tmp_path: Path) -> None:
    shop = Shop(tmp_path, FakeBench(wish=lambda targets: failing(*IDS[:6])))
    assert verdict_of(shop, "multi", "shop.py::price", ("shop.py::bill",)).reason is Reason.NO_PARTNER


def test_group_in_which_one_hides_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function alone breaks different tests, but with one of the three repaired nothing fails."""
    monkeypatch.setattr("gistpoint.core.generation.trials.groups.SUBTLE", 0.0)  # so none of them is left out
    own: dict[str, list[str]] = {
        "shop.py::price": IDS[:6],
        "shop.py::stock": IDS[7:13],
        "shop.py::bill": IDS[13:],
    }

    def wish(targets: tuple[Target, ...]) -> ProbeReport:
        first, *others = targets
        return failing() if others else failing(*own[first.name])

    verdict = verdict_of(Shop(tmp_path, FakeBench(wish=wish)), "multi", "shop.py::price", tuple(own)[1:])
    assert verdict.reason is Reason.MASKED


def test_group_that_breaks_no_more_than_a_part(tmp_path: Path) -> None:
    """The probes' claims exceed the suite's failures: together, the parts break no more than one of them."""
    own = {"shop.py::price": [*IDS, "t::1"], "shop.py::stock": [IDS[0], "t::2"]}
    shop = Shop(tmp_path, FakeBench(wish=lambda targets: failing(*own[targets[0].name])))
    verdict = verdict_of(shop, "multi", "shop.py::price", ("shop.py::stock",))
    assert verdict.reason is Reason.UNION_NOT_LARGER


def test_group_that_shares_functions_with_a_kept_one_is_dropped(shop: Shop) -> None:
    counts, kept = shop.campaign("multi", min_failing=2)
    groups = [set(verdict.names) for verdict in kept]
    assert all(len(one & two) <= 1 for n, one in enumerate(groups) for two in groups[:n])
    assert Reason.OVERLAPS.value in counts.reasons


def test_control_compares_the_failing_tests_of_probe_and_suite(shop: Shop) -> None:
    counts, _ = shop.campaign("discovery", min_failing=2)
    place = shop.place(CampaignSettings(CampaignMode.DISCOVERY, min_failing=2))
    specimens = [verdict.specimen for verdict in counts.verdicts]
    assert len(specimens) == 3
    try:
        for specimen in specimens:
            assert specimen is not None
            assert control(place, specimen)["agrees"]
            for false in ((), (*specimen.failed, "t::more")):
                comparison = control(place, replace(specimen, failed=false))
                assert comparison["agrees"] is (set(false) == set(specimen.failed))
            hung = control(place, replace(specimen, status="timed_out"))
            assert not hung["agrees"]
    finally:
        close_contexts()


def test_specimen_that_was_cut_short_must_fail_in_the_suite_as_far_as_it_went(shop: Shop) -> None:
    counts, _ = shop.campaign("remove")
    whole = next(v.specimen for v in counts.verdicts if v.names == ("shop.py::price",))
    assert whole is not None
    specimen = replace(whole, failed=whole.failed[:2], cut_short=True)
    place = shop.place(CampaignSettings(CampaignMode.REMOVE))
    try:
        assert control(place, specimen)["agrees"]
        assert not control(place, replace(specimen, failed=("t::other",)))["agrees"]
        tree = corrupted_tree(shop.library().intake.repository.tree, specimen.targets)
        assert b"pass" in tree.read("shop.py")
    finally:
        close_contexts()
