"""A campaign whose corruptions are a model's: tried on the tests that can see them, proven, or ended with a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from fake_benches import SHOP, FakeBench, Shop
from scripted_endpoint import reply

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.corruption.model import LoopSettings
from gistpoint.core.errors import EndpointError, UserError
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.running import NEVER, CancelToken

PRICE = """def price(amount, rate):
    total = 0
    for n in range(amount):
        total += rate
    if total > 100:
        total = total - total // 10
    return total"""
QUIET = PRICE.replace("range(amount)", "range(min(amount, 3))")


@dataclass
class PerFunction:
    """A chat model that replies in turn in each conversation."""

    script: tuple[ChatReply | ChatFailure, ...]
    name: str
    prompts: list[str] = field(default_factory=list)

    def complete(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], *, cancel: CancelToken = NEVER
    ) -> ChatReply | ChatFailure:
        said = sum(message.role == "assistant" for message in messages)
        if not said:
            self.prompts.append(messages[0].content)
        return self.script[min(said, len(self.script) - 1)]


@dataclass(eq=False)
class ModelBench(FakeBench):
    """A fake bench with a model."""

    script: tuple[ChatReply | ChatFailure, ...] = ()
    models: list[PerFunction] = field(default_factory=list)

    def model(self, name: str) -> PerFunction:
        self.models.append(PerFunction(self.script, name))
        return self.models[-1]


def submit(code: str) -> ChatReply:
    return reply(("submit_attempt", {"func_code": code}))


def shop(tmp_path: Path, *script: ChatReply | ChatFailure) -> Shop:
    return Shop(tmp_path, ModelBench(script=script))


def test_the_most_subtle_submission_is_proven_and_kept(tmp_path: Path) -> None:
    made = shop(tmp_path, submit(QUIET), submit(PRICE.replace("> 100", "> 1000")), reply(content="Done."))
    counts, kept = made.campaign("discovery", count=1, min_failing=2, model="m")
    (verdict,) = kept
    assert verdict.kept is not None
    assert verdict.names == ("shop.py::price",)
    (part,) = verdict.kept.provenance["parts"]
    assert part["record"]["loop"]["model"] == "m"
    assert part["evidence"]["failing"] == len(verdict.kept.failing)
    assert set(part) == {"record", "families", "subtlety", "glance", "evidence", "good"}
    fates = next(item.fates for item in counts.verdicts if item.kept)
    assert fates["model: accepted"] == 1
    assert fates["model: too_few_failing"] == 1
    assert isinstance(made.bench, ModelBench)
    assert [model.name for model in made.bench.models] == ["m"]
    assert any("located in shop.py" in prompt and "def price" in prompt for prompt in made.bench.models[0].prompts)


def test_the_first_of_several_definitions_is_a_candidate_as_any_other(tmp_path: Path) -> None:
    made = shop(tmp_path, submit(QUIET), reply(content="Done."))
    made.source = f"if True:\n{indent(PRICE, '    ')}\nelse:\n    def price(amount, rate):\n        return 0\n\n{SHOP}"
    made.source = made.source.replace(PRICE + "\n\n\ndef stock", "def stock")
    _, kept = made.campaign("discovery", min_failing=2, model="m")
    assert [verdict.names for verdict in kept] == [("shop.py::price",)]


def test_functions_of_which_a_model_makes_nothing_are_dropped_with_its_reason(tmp_path: Path) -> None:
    counts, kept = shop(tmp_path, reply(content="I would rather not.")).campaign("discovery", min_failing=2, model="m")
    assert kept == []
    assert {item.reason for item in counts.verdicts} == {Reason.NONE_GOOD}
    assert all("no tool call" in item.detail for item in counts.verdicts)


def test_what_a_model_submitted_in_vain_is_in_the_verdict(tmp_path: Path) -> None:
    counts, kept = shop(tmp_path, submit(PRICE), reply(content="Done.")).campaign("discovery", min_failing=2, model="m")
    assert kept == []
    verdict = next(item for item in counts.verdicts if item.names == ("shop.py::price",))
    assert CandidateVerdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict
    assert verdict.record is not None
    first, *_ = verdict.record["loop"]["rounds"]
    assert (first["verdict"], first["code"]) == ("unchanged", PRICE)


@pytest.mark.parametrize("problem", list(ChatProblem))
def test_an_endpoint_that_is_gone_stops_the_campaign_and_burns_no_candidate(
    tmp_path: Path, problem: ChatProblem
) -> None:
    made = shop(tmp_path, ChatFailure(problem, "It is gone."))
    with pytest.raises(EndpointError, match=r"It is gone\."):
        made.campaign("discovery", min_failing=2, model="m")


def test_a_text_too_long_for_the_model_is_the_function_s_own_end(tmp_path: Path) -> None:
    browse = reply(("read_file", {"file_path": "shop.py"}))
    made = shop(tmp_path, browse, ChatFailure(ChatProblem.REJECTED, "Too long."))
    counts, _ = made.campaign("discovery", min_failing=2, model="m")
    assert "Too long." in counts.verdicts[0].detail


def test_a_model_is_part_of_what_is_asked_for_and_corrupts_in_discovery_alone() -> None:
    usual = CampaignSettings(CampaignMode.DISCOVERY)
    assert "model" not in usual.to_json()
    asked = CampaignSettings(CampaignMode.DISCOVERY, model="m", loop=LoopSettings(feedback_rounds=2))
    assert asked.to_json()["loop"]["feedback_rounds"] == 2
    for mode in (CampaignMode.REMOVE, CampaignMode.MULTI):
        with pytest.raises(UserError, match="discovery mode"):
            CampaignSettings(mode, model="m")
