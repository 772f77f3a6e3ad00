"""One failing test is enough under certain conditions, in every mode, and classes can be removed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from confirmers import CONTROLLED, ScriptedConfirmer
from fake_benches import CHECKS, ENTERED, SHOP, FakeBench, Shop
from fakes import FakeRunner

from gistpoint.core.confirmation.model import Controls, Unconfirmable
from gistpoint.core.generation.candidates import plan
from gistpoint.core.generation.choice import Choice
from gistpoint.core.generation.intake import RUNS_OF_ONE, NoTaskError, prove, require_proof_by_one
from gistpoint.core.generation.making import write_kept
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, Reason
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.outcomes import RunStatus, SuiteReport
from gistpoint.core.ports import ProbeFailure, ProbeReport, RunRequest
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Target

REBATE, STOCK, BILL = (f"tests/test_shop.py::test_{name}" for name in ("rebate", "stock[1]", "bill[1]"))
FEW = {id: CHECKS[id] for id in (REBATE, STOCK, BILL)}
CAN_NOT = Controls(False, Unconfirmable.NOT_PLAIN_DATA, "It was given a generator.")


def bench(controls: Controls = CONTROLLED, **changed: object) -> FakeBench:
    """Return a harness on which removing `bill` makes one test fail, and removing `price` two."""
    entered = {name: [id for id in tests if id in FEW] for name, tests in ENTERED.items()}
    given = {"checks": FEW, "entered": entered, "confirming": ScriptedConfirmer(controls=controls), **changed}
    return FakeBench(**given)  # type: ignore[arg-type]


def by_name(found: tuple[Counts, list[CandidateVerdict]]) -> dict[str, Reason]:
    return {verdict.names[0].partition("::")[2]: verdict.reason for verdict in found[0].verdicts}


def test_one_failing_test_is_enough_if_passes_can_be_confirmed(tmp_path: Path) -> None:
    for name, controls, reason in (
        ("can", CONTROLLED, Reason.KEPT),
        ("not", CAN_NOT, Reason.NOT_CONFIRMABLE),
    ):
        (tmp_path / name).mkdir()
        found = by_name(Shop(tmp_path / name, bench(controls)).campaign("remove", min_failing=1))
        assert found == {"bill": reason, "price": Reason.KEPT, "stock": Reason.KEPT}


def test_it_has_to_fail_in_each_of_five_runs(tmp_path: Path) -> None:
    probes: list[tuple[Target, ...]] = []

    def last_passes(targets: tuple[Target, ...]) -> ProbeReport | None:
        probes.extend([targets] if targets[0].qualname == "bill" else [])
        passes = len(probes) == RUNS_OF_ONE and targets[0].qualname == "bill"
        return ProbeReport(RunStatus.FINISHED, {}, 1, 0.001) if passes else None

    counts = Shop(tmp_path, bench(wish=last_passes)).campaign("remove", min_failing=1)
    assert by_name(counts)["bill"] is Reason.SUITE_DIFFERS
    assert len(probes) == RUNS_OF_ONE


def test_it_has_to_be_about_the_function(tmp_path: Path) -> None:
    def another_fails(targets: tuple[Target, ...]) -> ProbeReport | None:
        failed = {BILL: ProbeFailure("E", assertion=True)}
        return ProbeReport(RunStatus.FINISHED, failed, 1, 0.001) if targets[0].qualname == "bill" else None

    entered = {**ENTERED, "shop.py::bill": [STOCK]}
    found = Shop(tmp_path, bench(wish=another_fails, entered=entered)).campaign("remove", min_failing=1)
    assert by_name(found)["bill"] is Reason.NOT_ABOUT_IT


class _Flaky(FakeRunner):
    """A runner in which all checks pass in the run with the number `passing`, counted from 1."""

    passing = 0

    def run(self, request: RunRequest, *, run: RunContext = UNATTENDED) -> SuiteReport:
        checks, self.checks = self.checks, {} if self.runs + 1 == self.passing else self.checks
        try:
            report = super().run(request, run=run)
        finally:
            self.checks = checks
        return report


@pytest.mark.parametrize(("passing", "words"), [(0, ""), (3, "not in each of 5 runs")])
def test_a_single_task_is_held_to_the_same(tmp_path: Path, passing: int, words: str) -> None:
    library = Shop(tmp_path, bench()).library()
    intake, runner = library.mapped_intake, _Flaky(FEW)
    target = removal_target(intake.repository.tree, "bill")
    proof = prove(intake, (target,), FakeRunner(FEW), min_failing=1)
    assert proof.failing == {BILL}
    runner.passing = passing
    if words:
        with pytest.raises(NoTaskError, match=words):
            require_proof_by_one(intake, proof, runner)
    else:
        require_proof_by_one(intake, proof, runner)
        assert runner.runs == RUNS_OF_ONE - 1


TILL = (
    SHOP
    + '''

class Till:
    """Where money goes."""

    coins = (1, 2, 5)

    def __init__(self):
        self.money = 0

    def pay(self, coin):
        """Take a coin."""
        if coin in self.coins:
            self.money += coin
        return self.money
'''
)


def _pays(names: Mapping[str, object]) -> None:
    till = names["Till"]()  # type: ignore[operator]
    assert till.pay(5) == 5
    assert till.pay(3) == 5


def with_till(controls: Controls = CONTROLLED) -> FakeBench:
    pays = {f"tests/test_till.py::test_pay[{n}]": _pays for n in range(2)}
    entered = {"shop.py::Till.__init__": list(pays), "shop.py::Till.pay": list(pays)}
    return bench(controls, checks={**FEW, **pays}, entered=entered)


def test_a_class_is_a_candidate_if_asked_for_or_named(tmp_path: Path) -> None:
    library = Shop(tmp_path, with_till(), source=TILL).library()
    removing = CampaignSettings(CampaignMode.REMOVE, 0, 1)
    named = CampaignSettings(CampaignMode.REMOVE, 0, 1, choice=Choice({"shop.py::Till": 1}))
    every = CampaignSettings(CampaignMode.REMOVE, 0, 1, classes=True)
    names = [{c.name for c in plan(library, settings).candidates} for settings in (removing, named, every)]
    assert "shop.py::Till" not in names[0]
    assert names[1] == {"shop.py::Till"}
    assert names[2] == names[0] | {"shop.py::Till"}


def test_a_class_without_its_bodies_becomes_a_task_that_says_so(tmp_path: Path) -> None:
    shop = Shop(tmp_path, with_till(CAN_NOT), source=TILL)
    chosen = Choice({"shop.py::Till": 1})
    counts, (verdict,) = shop.campaign("remove", min_failing=1, choice=chosen)
    assert counts.tried == 1
    assert verdict.kept is not None
    assert verdict.kept.provenance["corruption"] == "remove_methods"
    assert verdict.kept.provenance["entering"] == 2
    task = write_kept(
        shop.library(), CampaignSettings(CampaignMode.REMOVE, 0, 1), verdict.kept, tmp_path / "t"
    )
    assert task.brief.template == "repair-remove-class-2"
    assert task.brief.signature == "class Till:"
    assert "Write the class again" in render_brief(task)
    assert "coins = (1, 2, 5)" in verdict.kept.targets[0].corrupted
    assert "self.money" not in verdict.kept.targets[0].corrupted
