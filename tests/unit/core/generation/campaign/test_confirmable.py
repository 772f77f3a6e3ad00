"""Each task of a set has its controls; a set can require that its tasks' passes can be confirmed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confirmers import CONTROLLED
from fake_benches import Shop

from gistpoint.core.confirmation.controls import read_controls
from gistpoint.core.confirmation.model import Controls, Unconfirmable
from gistpoint.core.generation.campaign import Workers, run_campaign
from gistpoint.core.generation.candidates import plan
from gistpoint.core.generation.context import close_contexts
from gistpoint.core.generation.making import WrittenSet
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, Reason, StateFile

HIDDEN = Controls(False, Unconfirmable.NOT_PLAIN_DATA, "price is given a generator.")


def set_of(
    folder: Path, mode: str, controls: Controls, *, confirmable: bool = False
) -> tuple[Counts, list[Path]]:
    shop = Shop(folder)
    shop.bench.confirming.controls = controls
    settings = CampaignSettings(CampaignMode(mode), min_failing=2, confirmable=confirmable)
    library, context = shop.library(), shop.place(settings)
    with ThreadPoolExecutor(2) as pool, StateFile(folder / "set.jsonl", {}) as state:
        tasks = WrittenSet(library, settings, folder / "tasks", state, lambda text: None)
        try:
            counts = run_campaign(
                context, plan(library, settings).candidates, 2, Workers(pool, 2), state, tasks
            )
        finally:
            close_contexts()
    made = folder / "tasks"
    return counts, sorted(made.iterdir()) if made.is_dir() else []


@pytest.mark.parametrize("mode", ["remove", "discovery"])
@pytest.mark.parametrize("controls", [CONTROLLED, HIDDEN])
def test_each_task_of_a_set_has_its_controls(tmp_path: Path, mode: str, controls: Controls) -> None:
    counts, made = set_of(tmp_path, mode, controls)
    assert made
    assert [read_controls(folder) for folder in made] == [controls] * len(made)
    assert counts.confirmable == {"yes" if controls.confirmable else "not_plain_data": len(made)}


@pytest.mark.parametrize("mode", ["remove", "discovery"])
def test_a_set_that_requires_it_has_no_task_without_and_counts_why(tmp_path: Path, mode: str) -> None:
    counts, made = set_of(tmp_path, mode, HIDDEN, confirmable=True)
    assert not made
    assert counts.kept == 0
    assert counts.reasons[Reason.NOT_CONFIRMABLE] == counts.confirmable["not_plain_data"] > 0
    dropped = next(verdict for verdict in counts.verdicts if verdict.reason is Reason.NOT_CONFIRMABLE)
    assert dropped.detail == HIDDEN.detail
    assert CandidateVerdict.from_json(dropped.to_json()) == dropped


def test_a_set_that_requires_it_keeps_what_can_be_confirmed(tmp_path: Path) -> None:
    counts, made = set_of(tmp_path, "remove", CONTROLLED, confirmable=True)
    assert len(made) == counts.kept == 2


def test_the_requirement_alone_makes_other_verdicts() -> None:
    plain = CampaignSettings(CampaignMode.REMOVE)
    assert "confirmable" not in plain.deciding()
    assert CampaignSettings(CampaignMode.REMOVE, confirmable=True).deciding() != plain.deciding()


def test_verdicts_from_before_have_no_controls(tmp_path: Path) -> None:
    counts, _ = set_of(tmp_path, "remove", CONTROLLED)
    values = counts.verdicts[0].to_json()
    del values["controls"], values["cost"]["controlling"]
    assert Counts([CandidateVerdict.from_json(values)]).confirmable == {"not_known": 1}
