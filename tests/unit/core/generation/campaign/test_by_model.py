"""A campaign with a model's corruptions: tried on the tests that can detect them, then proven or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from fake_benches import CHECKS, SHOP, FakeBench, Shop
from scripted_endpoint import reply

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.corruption.model import MOST_EMPTY_REPLIES
from gistpoint.core.corruption.prompt import template_sha256
from gistpoint.core.corruption.rounds import LoopSettings
from gistpoint.core.errors import EndpointError, UserError
from gistpoint.core.generation.by_model import ModelTerms
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.spending import SetSpending, SetStoppedError
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
    """A chat model that follows its script in each conversation."""

    script: tuple[ChatReply | ChatFailure, ...]
    name: str
    prompts: list[str] = field(default_factory=list)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        said = sum(message.role == "assistant" for message in messages)
        if not said:
            self.prompts.append(messages[0].content)
        return self.script[min(said, len(self.script) - 1)]


@dataclass(eq=False)
class ModelBench(FakeBench):
    """A fake harness with a model."""

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
    assert any(
        "located in shop.py" in prompt and "def price" in prompt for prompt in made.bench.models[0].prompts
    )


def test_what_shows_is_tried_all_the_same_and_the_model_is_told_by_which_rule(tmp_path: Path) -> None:
    shows = PRICE.replace("range(amount)", "range(min(amount, 3))").replace(
        "    total = 0", "    total, n = 0, rate - rate"
    )
    made = shop(tmp_path, submit(shows), reply(content="Done."))
    _, kept = made.campaign("discovery", count=1, min_failing=2, model="m")
    (verdict,) = kept
    assert verdict.kept is not None
    (part,) = verdict.kept.provenance["parts"]
    (only,) = part["record"]["loop"]["rounds"]
    assert only["verdict"] == "accepted"
    assert any("operand repeated" in rule for rule in only["rules"])
    assert only["glance"] == part["glance"]["value"]


def test_the_first_of_several_definitions_is_a_candidate_as_any_other(tmp_path: Path) -> None:
    made = shop(tmp_path, submit(QUIET), reply(content="Done."))
    made.source = (
        f"if True:\n{indent(PRICE, '    ')}\nelse:\n    def price(amount, rate):\n        return 0\n\n{SHOP}"
    )
    made.source = made.source.replace(PRICE + "\n\n\ndef stock", "def stock")
    _, kept = made.campaign("discovery", min_failing=2, model="m")
    assert [verdict.names for verdict in kept] == [("shop.py::price",)]


def test_functions_of_which_a_model_makes_nothing_are_dropped_with_its_reason(tmp_path: Path) -> None:
    counts, kept = shop(tmp_path, reply(content="I would rather not.")).campaign(
        "discovery", min_failing=2, model="m"
    )
    assert kept == []
    assert {item.reason for item in counts.verdicts} == {Reason.NONE_GOOD}
    assert all("no tool call" in item.detail for item in counts.verdicts)


def test_what_a_model_submitted_in_vain_is_in_the_verdict(tmp_path: Path) -> None:
    counts, kept = shop(tmp_path, submit(PRICE), reply(content="Done.")).campaign(
        "discovery", min_failing=2, model="m"
    )
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


def test_an_account_that_became_empty_stops_the_campaign_in_the_middle_of_a_conversation(
    tmp_path: Path,
) -> None:
    browse = reply(("read_file", {"file_path": "shop.py"}))
    made = shop(tmp_path, browse, ChatFailure(ChatProblem.ACCOUNT_EMPTY, "No credit is left."))
    with pytest.raises(EndpointError, match=r"No credit is left\."):
        made.campaign("discovery", min_failing=2, model="m")


def test_a_text_too_long_for_the_model_is_the_function_s_own_end(tmp_path: Path) -> None:
    browse = reply(("read_file", {"file_path": "shop.py"}))
    made = shop(tmp_path, browse, ChatFailure(ChatProblem.REJECTED, "Too long."))
    counts, _ = made.campaign("discovery", min_failing=2, model="m")
    assert "Too long." in counts.verdicts[0].detail


def test_a_model_is_part_of_what_is_asked_for_and_removes_nothing() -> None:
    usual = CampaignSettings(CampaignMode.DISCOVERY)
    assert "model" not in usual.to_json()
    asked = CampaignSettings(CampaignMode.DISCOVERY, model="m", loop=LoopSettings(feedback_rounds=2))
    assert asked.to_json()["loop"]["feedback_rounds"] == 2
    assert "examples" not in asked.to_json()
    with pytest.raises(UserError, match="removing a body needs no model"):
        CampaignSettings(CampaignMode.REMOVE, model="m")


STOCK = """def stock(orders):
    left = {}
    for name, count in orders:
        left[name] = left.get(name, 0) + count
    return left"""
BILL = """def bill(orders, rate):
    lines = []
    for name, count in sorted(stock(orders).items()):
        if count >= 1:
            lines.append((name, price(count, rate)))
    return lines"""
PARTS = {"price": QUIET, "stock": STOCK.replace("0)", "1)"), "bill": BILL.replace(">= 1", ">= 2")}


@dataclass
class OfEach:
    """A chat model that submits one version of each function, and then stops."""

    name: str
    codes: Mapping[str, str]

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        asked = re.search(r"Function to corrupt:\ndef (\w+)", messages[0].content)
        assert asked is not None
        return submit(self.codes[asked.group(1)]) if len(messages) == 1 else reply(content="Done.")


class GroupBench(FakeBench):
    def model(self, name: str) -> OfEach:
        return OfEach(name, PARTS)


def test_a_group_whose_parts_a_model_made_is_proven_together(tmp_path: Path) -> None:
    _, kept = Shop(tmp_path, GroupBench()).campaign("multi", min_failing=2, model="m")
    assert kept
    for verdict in kept:
        assert verdict.kept is not None
        assert len(verdict.names) >= 2
        parts = verdict.kept.provenance["parts"]
        assert [part["record"]["function"] for part in parts] == list(verdict.names)
        for part, target in zip(parts, verdict.kept.targets, strict=True):
            assert part["record"]["kind"] == "model"
            assert part["record"]["loop"]["end"] == "stopped_by_model"
            assert target.corrupted == PARTS[target.qualname]
        assert all(len(verdict.kept.failing) > alone for alone in verdict.kept.provenance["failing_alone"])


def test_a_group_of_which_a_model_makes_nothing_keeps_its_conversations(tmp_path: Path) -> None:
    counts, kept = shop(tmp_path, reply(content="No.")).campaign("multi", min_failing=2, model="m")
    assert kept == []
    assert all(verdict.record is not None for verdict in counts.verdicts)


def test_a_model_that_is_of_no_use_stops_the_set_and_the_next_command_tries_again(tmp_path: Path) -> None:
    many = "\n\n".join(f"def f{n}(amount, rate):\n{PRICE.partition(chr(10))[2]}" for n in range(9))
    made = shop(tmp_path, reply(content="ok"))
    made.source = f"{SHOP}\n\n{many}"
    made.bench.entered = {**made.bench.entered, **{f"shop.py::f{n}": list(CHECKS) for n in range(9)}}
    spending = SetSpending(tmp_path / "spent.jsonl")
    for begun in (1, 2):
        spending.begin()
        with pytest.raises(SetStoppedError, match=r"5 functions in a row.*no tool call"):
            made.campaign("discovery", min_failing=2, model="m", terms=ModelTerms(spending=spending))
        assert spending.spent().requests == begun * 5 * MOST_EMPTY_REPLIES


def test_a_cap_of_the_set_stops_it_between_requests_and_keeps_the_candidate_for_later(tmp_path: Path) -> None:
    made = shop(tmp_path, submit(PRICE), reply(content="Done."))
    spending = SetSpending(tmp_path / "spent.jsonl", max_tokens=250)
    with pytest.raises(SetStoppedError, match="of at most 250 tokens"):
        made.campaign("discovery", min_failing=2, model="m", terms=ModelTerms(spending=spending))
    assert spending.spent().usage.tokens <= 250
    more = replace(spending, max_tokens=100_000)
    more.begin()
    counts, _ = made.campaign("discovery", min_failing=2, model="m", terms=ModelTerms(spending=more))
    assert len(counts.verdicts) == 3


def test_examples_stand_after_the_template_and_their_hash_in_the_record(tmp_path: Path) -> None:
    made = shop(tmp_path, submit(QUIET), reply(content="Done."))
    _, kept = made.campaign(
        "discovery", count=1, min_failing=2, model="m", terms=ModelTerms("Look at these.")
    )
    assert kept[0].kept is not None
    record = kept[0].kept.provenance["parts"][0]["record"]
    assert record["examples_sha256"] == sha256_of_text("Look at these.")
    assert record["loop"]["template_sha256"] == template_sha256()
    assert isinstance(made.bench, ModelBench)
    assert made.bench.models[0].prompts[0].endswith("MODIFIED THE FUNCTION.\n\nLook at these.\n")
