"""Requests of `task new` and `task generate` become settings and sources without a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import ScriptedModel

from gistpoint.core.corruption.rounds import LoopSettings
from gistpoint.core.errors import UserError
from gistpoint.core.generation.by_model import CorruptingModel, CorruptingModelOfSet
from gistpoint.core.generation.choice import ChooseFunctions, GroupFunctions
from gistpoint.core.generation.requests import GenerateTasks, NewTask
from gistpoint.core.generation.settings import CampaignMode, FaultSource, SourceSpec, SuiteNeeds
from gistpoint.core.ports import ChatModel
from gistpoint.core.requests import for_worker

SHOP = "shop==1"


def scripted(asked: CorruptingModel, min_failing: int) -> tuple[ChatModel, LoopSettings]:
    """Return a model and its settings; its endpoint allows 900 tokens and half a dollar per function."""
    return ScriptedModel([]), asked.loop(min_failing, 900, 0.5)


def test_a_function_is_removed_without_a_model_and_corrupted_with_one() -> None:
    assert NewTask(source=SHOP, seed=3).settings(scripted)[1] is None
    with pytest.raises(UserError, match="--function"):
        NewTask(source=SHOP, mode="discovery").settings(scripted)
    with pytest.raises(UserError, match="removing a body needs no model"):
        NewTask(source=SHOP, model=CorruptingModel(model="m")).settings(scripted)
    settings, model = NewTask(source=SHOP, mode="discovery", function="a.py::f").settings(scripted)
    assert model is not None
    assert (settings.mode, settings.model) == (CampaignMode.DISCOVERY, model.name)


def test_limits_that_are_given_overrule_those_of_the_endpoint() -> None:
    _, alone = scripted(CorruptingModel(max_tokens=70), 5)
    assert (alone.max_tokens, alone.max_cost_usd) == (70, 0.5)
    _, of_set = scripted(CorruptingModelOfSet(max_tokens=70, max_cost_per_function=2.0), 5)
    assert (of_set.max_tokens, of_set.max_cost_usd) == (900, 2.0)


def test_sources_get_the_needs_of_the_suite_and_are_taken_once() -> None:
    suite = SuiteNeeds(pytest_args="-k 'a b'", extra=("numpy",))
    batch, settings, count = GenerateTasks(sources=(SHOP, SHOP), suite=suite).planned(scripted)
    assert batch.taken == (SourceSpec(SHOP, ("-k", "a b"), ("numpy",)),)
    assert (settings.mode, settings.model, count) == (CampaignMode.DISCOVERY, "", 20)
    with pytest.raises(UserError, match="can't be split"):
        GenerateTasks(sources=(SHOP,), suite=SuiteNeeds(pytest_args="'")).planned(scripted)


def test_a_batch_brings_the_needs_of_its_sources(tmp_path: Path) -> None:
    (tmp_path / "set.toml").write_text(f'min_stars = 5\n[[source]]\nsource = "{SHOP}"\nstars = 4\n')
    asked = GenerateTasks(
        batch=str(tmp_path / "set.toml"), groups=GroupFunctions(size="2:3"), mode=CampaignMode.MULTI
    )
    batch, _, count = asked.planned(scripted)
    assert (batch.taken, [spec.source for spec in batch.left_out], count) == ((), [SHOP], 3)
    with pytest.raises(UserError, match="arguments of each source are in the file"):
        GenerateTasks(batch="set.toml", suite=SuiteNeeds(extra=("numpy",))).planned(scripted)
    with pytest.raises(UserError, match="or a batch file, not both"):
        GenerateTasks(batch="set.toml", sources=(SHOP,)).planned(scripted)


def test_a_list_of_functions_is_of_one_source(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("a.py::f\n")
    choice = ChooseFunctions(functions=str(tmp_path / "mine.txt"))
    assert GenerateTasks(sources=(SHOP,), choice=choice).planned(scripted)[1].choice.functions == {
        "a.py::f": 1
    }
    with pytest.raises(UserError, match="applies to a single source"):
        GenerateTasks(sources=(SHOP, "cart==2"), choice=choice).planned(scripted)


def test_files_of_this_machine_do_not_travel() -> None:
    asked = GenerateTasks(batch="set.toml", seed=4, choice=ChooseFunctions(functions="mine.txt", hard=True))
    assert for_worker(asked) == GenerateTasks(seed=4, choice=ChooseFunctions(hard=True))


def test_one_failing_test_is_enough_unless_the_papers_preset_is_chosen() -> None:
    _, settings, _ = GenerateTasks(sources=(SHOP,)).planned(scripted)
    assert (settings.min_failing, settings.band, settings.preset) == (1, (1, 40), "")
    assert NewTask(source=SHOP).settings(scripted)[0].min_failing == 1
    _, paper, _ = GenerateTasks(sources=(SHOP,), preset="paper", mode=CampaignMode.REMOVE).planned(scripted)
    assert (paper.min_failing, paper.classes) == (5, True)
    recorded = paper.to_json()
    assert (recorded["preset"], recorded["min_failing"], recorded["max_suite_seconds"]) == ("paper", 5, 60.0)
    assert "preset" not in settings.to_json()
    assert NewTask(source=SHOP, preset="paper").settings(scripted)[0].min_failing == 5
    assert not GenerateTasks(sources=(SHOP,), preset="paper").planned(scripted)[1].classes


def test_a_preset_is_not_mixed_with_what_it_decides(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--min-failing is 2"):
        GenerateTasks(sources=(SHOP,), preset="paper", min_failing=2).planned(scripted)
    slow = SuiteNeeds(max_suite_seconds=90)
    for wanted in (
        lambda: NewTask(source=SHOP, preset="paper", suite=slow).settings(scripted),
        lambda: GenerateTasks(sources=(SHOP,), preset="paper", suite=slow).planned(scripted),
    ):
        with pytest.raises(UserError, match="at most 60 s"):
            wanted()
    with pytest.raises(UserError, match="--classes is for --mode remove"):
        GenerateTasks(sources=(SHOP,), classes=True).planned(scripted)


def test_a_model_breaks_two_tests_at_least_as_in_the_paper() -> None:
    loop = LoopSettings.for_tasks(1)
    assert (loop.min_failing, loop.most_failing) == (2, 40)


@pytest.mark.parametrize(
    "choice", [ChooseFunctions(spread="code_lines,degree"), ChooseFunctions(quadrants=True)]
)
@pytest.mark.parametrize(
    "asked",
    [
        {"faults": FaultSource.HISTORY},
        {"faults": FaultSource.ATTEMPTS},
        {"model": CorruptingModelOfSet(model="m", rewrite=True)},
    ],
)
def test_a_set_that_is_spread_over_metrics_has_no_pool(
    choice: ChooseFunctions, asked: dict[str, Any]
) -> None:
    _, settings, _ = GenerateTasks(sources=(SHOP,), choice=choice, count=16, **asked).planned(scripted)
    assert (settings.pool, settings.is_unplanted) == (0, True)
    assert GenerateTasks(sources=(SHOP,), count=16, **asked).planned(scripted)[1].pool == 48
    with pytest.raises(UserError, match="--pool is for"):
        GenerateTasks(sources=(SHOP,), choice=choice, count=16, pool=20, **asked).planned(scripted)
