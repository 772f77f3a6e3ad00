"""A set that stays empty reports why, and ends with a command that would keep something."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace

import pytest

from gistpoint.core.corruption.rounds import LoopSettings
from gistpoint.core.generation.by_model import CorruptingModelOfSet
from gistpoint.core.generation.empty_sets import Retry, retry_of_empty_set
from gistpoint.core.generation.requests import BlindReader, GenerateTasks
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings, FaultSource
from gistpoint.core.generation.verdicts import Reason

DISCOVERY = CampaignSettings(mode=CampaignMode.DISCOVERY)
CALLED = ["task", "generate", "shop==1", "--mode", "discovery", "--count", "6", "--max-glance=0.3"]


@pytest.mark.parametrize(
    ("reason", "settings", "options"),
    [
        (Reason.AT_A_GLANCE, DISCOVERY, "--max-glance 0.5"),
        (Reason.AT_A_GLANCE, replace(DISCOVERY, max_glance=0.5), "--max-glance 1"),
        (Reason.AT_A_GLANCE, replace(DISCOVERY, max_glance=1.0), "--from history"),
        (Reason.NONE_GOOD, DISCOVERY, "--from history"),
        (Reason.NO_CORRUPTION, DISCOVERY, "--from history"),
        (Reason.NO_EARLIER_BODY, replace(DISCOVERY, source=FaultSource.HISTORY), "--mode remove"),
        (Reason.MISSING_FEATURE, replace(DISCOVERY, source=FaultSource.HISTORY), "--missing-features"),
        (Reason.TOO_FEW_FAILING, replace(DISCOVERY, min_failing=5), "--min-failing 1"),
        (Reason.NO_PARTNER, replace(DISCOVERY, mode=CampaignMode.MULTI), "--mode discovery"),
        (Reason.HANGS, replace(DISCOVERY, source=FaultSource.HISTORY), "--mode remove"),
    ],
)
def test_the_most_frequent_reason_decides_which_option_would_help(
    reason: Reason, settings: CampaignSettings, options: str
) -> None:
    found = retry_of_empty_set({reason.value: 7, "leaks": 2}, settings, has_history=True)
    assert found is not None
    assert found.why.startswith("7 of 9 functions: ")
    assert found.command(CALLED).endswith(f" {options}")


@pytest.mark.parametrize("mode", [CampaignMode.REMOVE, CampaignMode.DISCOVERY, CampaignMode.MULTI])
@pytest.mark.parametrize("reason", [None, *(reason for reason in Reason if reason is not Reason.KEPT)])
def test_each_command_differs_from_the_one_before_until_nothing_is_left(
    reason: Reason | None, mode: CampaignMode
) -> None:
    """Whoever follows the advice again and again is never sent in a circle."""
    settings = CampaignSettings(mode=mode, min_failing=1)
    reasons = {} if reason is None else {reason.value: 3}
    seen: set[str] = set()
    called = [*CALLED[:3], "--mode", mode.value]
    if reason is Reason.NOT_CONFIRMABLE:
        called.append("--confirmable")
    for _ in range(6):
        retry = retry_of_empty_set(reasons, settings, has_history=True)
        if retry is None:
            break
        line = retry.command(called)
        assert line not in seen
        assert line.split()[1:] != called
        seen.add(line)
        if retry.drop and not retry.add:
            break  # the reason itself is gone
        settings, called = _settings_after(settings, retry), shlex.split(line)[1:]
        if "--missing-features" in retry.add or retry.add[:2] == ("--mode", "discovery"):
            break
    else:
        pytest.fail(f"the advice goes on and on: {seen}")


def _settings_after(settings: CampaignSettings, retry: Retry) -> CampaignSettings:
    given = dict(zip(retry.add[::2], retry.add[1::2], strict=False))
    if "--mode" in given:
        return CampaignSettings(mode=CampaignMode(given["--mode"]), min_failing=settings.min_failing)
    changes = {
        "max_glance": float(given["--max-glance"]) if "--max-glance" in given else None,
        "source": FaultSource(given.get("--from", settings.source.value)),
    }
    return replace(settings, **changes)  # type: ignore[arg-type]


def test_the_command_keeps_everything_else() -> None:
    retry = Retry("", ("--mode", "remove"), ("--max-glance", "--from"))
    called = [*CALLED, "--from", "history", "--with", "a b", "--hard"]
    assert shlex.split(retry.command(called)) == [
        "gistpoint", "task", "generate", "shop==1", "--count", "6", "--with", "a b", "--hard", "--mode", "remove"
    ]  # fmt: skip
    flags = Retry("", (), ("--confirmable",))
    assert (
        flags.command(["task", "generate", "--confirmable", "shop==1"]) == "gistpoint task generate shop==1"
    )


def test_without_a_history_bodies_are_removed() -> None:
    found = retry_of_empty_set({Reason.NONE_GOOD.value: 1}, DISCOVERY, has_history=False)
    assert found is not None
    assert found.add == ("--mode", "remove")


def _options(*requests: type) -> set[str]:
    names = {field.name for request in requests for field in fields(request)}
    return {f"--{name.replace('_', '-')}" for name in names}


@pytest.mark.parametrize(
    ("reason", "settings"),
    [
        (Reason.NONE_GOOD, replace(DISCOVERY, model="m", loop=LoopSettings())),
        (Reason.NONE_GOOD, replace(DISCOVERY, model="m", loop=LoopSettings(), rewrite=True, pool=9)),
        (Reason.NO_EARLIER_BODY, replace(DISCOVERY, source=FaultSource.HISTORY, reader="r", pool=9)),
    ],
)
def test_advice_to_remove_bodies_leaves_every_option_of_models_out(
    reason: Reason, settings: CampaignSettings
) -> None:
    options = _options(CorruptingModelOfSet, BlindReader)
    values = [word for option in sorted(options) for word in (option, *(["1"] * (option != "--rewrite")))]
    found = retry_of_empty_set({reason.value: 7}, replace(settings, min_failing=1), has_history=True)
    assert found is not None
    words = shlex.split(found.command([*CALLED, *values, "--seed", "4"]))
    assert options.isdisjoint(words)
    assert words == [
        "gistpoint",
        "task",
        "generate",
        "shop==1",
        "--count",
        "6",
        "--seed",
        "4",
        "--mode",
        "remove",
    ]


def test_advice_for_fewer_failing_tests_leaves_the_preset_out() -> None:
    settings = replace(DISCOVERY, preset="paper")
    found = retry_of_empty_set({Reason.TOO_FEW_FAILING.value: 7}, settings, has_history=True)
    assert found is not None
    words = shlex.split(found.command([*CALLED[:3], "--preset", "paper", "--seed", "4"]))
    assert words == ["gistpoint", *CALLED[:3], "--seed", "4", "--min-failing", "1"]
    GenerateTasks(sources=("shop==1",), min_failing=1).planned(lambda *_: pytest.fail("no model"))
