"""A campaign with functions that a model rewrote: no mention of faults, and only real faults are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_benches import CHECKS, SHOP, FakeBench, Shop
from scripted_endpoint import reply

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.corruption.model import MOST_EMPTY_REPLIES
from gistpoint.core.corruption.prompt import REWRITE_TEMPLATE, template_sha256
from gistpoint.core.errors import EndpointError, UserError
from gistpoint.core.generation.by_model import CorruptingModelOfSet, ModelTerms, replay_model_record
from gistpoint.core.generation.requests import GenerateTasks
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.spending import SetSpending, SetStoppedError
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, Reason
from gistpoint.core.running import NEVER, CancelToken

WRONG = """def price(amount, rate):
    total = amount * rate
    if total >= 100:
        total -= total // 10
    return total"""
RIGHT = """def price(amount, rate):
    result = amount * rate
    if result > 100:
        result -= result // 10
    return result"""
SAME = SHOP.partition("\n\n\n")[0].replace("total", "result")
WORDS = re.compile(r"fault|bug|corrupt|break|mistake|wrong|test|subtle|hid", re.IGNORECASE)
"""Words that would reveal to the model the purpose of its code."""


def block(code: str) -> str:
    return f"Here it is:\n\n```python\n{code}\n```\n"


@dataclass
class Writer:
    """A chat model that rewrites one function by a script, and gives no usable version of the others."""

    name: str
    script: Sequence[ChatReply | ChatFailure]
    asked: list[Sequence[ChatMessage]] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        self.asked.append(list(messages))
        self.offered.append(len(tools))
        said = sum(message.role == "assistant" for message in messages)
        return self.script[min(said, len(self.script) - 1)]


@dataclass(eq=False)
class WriterBench(FakeBench):
    script: Sequence[ChatReply | ChatFailure] = ()
    writers: list[Writer] = field(default_factory=list)

    def model(self, name: str) -> Writer:
        self.writers.append(Writer(name, self.script))
        return self.writers[-1]

    @property
    def asked(self) -> list[Sequence[ChatMessage]]:
        return [messages for writer in self.writers for messages in writer.asked]


def shop(tmp_path: Path, *script: ChatReply | ChatFailure | str) -> Shop:
    replies = [reply(content=step) if isinstance(step, str) else step for step in script]
    return Shop(tmp_path, WriterBench(script=replies))


def campaign(made: Shop, **options: Any) -> tuple[Counts, list[CandidateVerdict]]:
    options = {"min_failing": 1, "model": "m", "rewrite": True, **options}
    return made.campaign("discovery", **options)


def verdict_of(counts: Counts, name: str = "price") -> CandidateVerdict:
    return next(item for item in counts.verdicts if item.names == (f"shop.py::{name}",))


def bench_of(made: Shop) -> WriterBench:
    assert isinstance(made.bench, WriterBench)
    return made.bench


def test_a_rewrite_that_fails_tests_is_kept_whole(tmp_path: Path) -> None:
    made = shop(tmp_path, block(WRONG))
    counts, kept = campaign(made)
    (verdict,) = kept
    assert verdict.kept is not None
    (target,), (part,) = verdict.kept.targets, verdict.kept.provenance["parts"]
    assert target.corrupted == WRONG
    assert [failure.id.rpartition("::")[2] for failure in verdict.kept.failing] == [
        "test_price_limit[10]", "test_price_limit[20]", "test_price_limit[50]",
    ]  # fmt: skip
    assert (part["record"]["kind"], part["families"]) == ("rewrite", ["rewrite"])
    assert part["record"]["loop"]["template_sha256"] == template_sha256(REWRITE_TEMPLATE)
    assert isinstance(part["signs"], list)
    tree = made.library().intake.repository.tree
    assert replay_model_record(part["record"], tree) == target
    assert counts.fates["rewrite: accepted"] == 1


def test_the_model_sees_the_file_without_the_body_and_no_word_of_faults(tmp_path: Path) -> None:
    made = shop(tmp_path, "I can't.", block("def price(amount, rate):\n    return ("), block(WRONG))
    made.source = SHOP.replace(
        "def price(amount, rate):\n", 'def price(amount, rate):\n    """Return what is to pay."""\n'
    )
    campaign(made)
    asked = bench_of(made).asked
    about_price = [messages for messages in asked if "body of price is missing" in messages[0].content]
    prompt = about_price[0][0].content
    assert '    """Return what is to pay."""\n    pass\n' in prompt
    assert "total += rate" not in prompt
    assert "left[name] = left.get(name, 0) + count" in prompt
    assert len(about_price[-1]) == 5
    said = [message.content for messages in asked for message in messages if message.role != "assistant"]
    assert not [found for text in said if (found := WORDS.search(text))]
    assert not any(number for writer in bench_of(made).writers for number in writer.offered)


def test_a_rewrite_with_the_same_meaning_needs_no_probe(tmp_path: Path) -> None:
    counts, kept = campaign(shop(tmp_path, block(SAME)))
    assert not kept
    verdict = verdict_of(counts)
    assert verdict.fates == {"rewrite: unchanged": 1}
    assert not verdict.cost.probes


def test_a_right_rewrite_is_probed_and_dropped(tmp_path: Path) -> None:
    counts, kept = campaign(shop(tmp_path, block(RIGHT)))
    verdict = verdict_of(counts)
    assert not kept
    assert verdict.reason is Reason.NONE_GOOD
    assert verdict.fates == {"rewrite: too_few_failing": 1}
    assert len(verdict.cost.probes) == 1
    assert verdict.record is not None
    assert verdict.record["loop"]["rounds"][0]["code"] == RIGHT


@pytest.mark.parametrize(
    ("code", "fate", "probes"),
    [
        (WRONG.replace("amount * rate", "cost_of(amount, rate)"), "rewrite: unusable", 0),
        (WRONG.replace("total // 10", "total.tenth"), "rewrite: uses what is not there", 1),
        (WRONG.replace("amount * rate", "1 / 0"), "too_many", 1),
    ],
)
def test_a_rewrite_that_is_no_fault_to_be_found_is_dropped(
    tmp_path: Path, code: str, fate: str, probes: int
) -> None:
    counts, kept = campaign(shop(tmp_path, block(code)))
    verdict = verdict_of(counts)
    assert not kept
    assert len(verdict.cost.probes) == probes
    assert fate in verdict.fates or fate == "too_many"


def test_header_and_docstring_stay_the_current_ones(tmp_path: Path) -> None:
    other = WRONG.replace("(amount, rate):", '(amount: int, rate: int = 3) -> int:\n    """Do it."""')
    indented = "\n".join(f"    {line}" for line in other.splitlines())
    for number, code in enumerate((other, f"class Shop:\n{indented}", indented)):
        folder = tmp_path / str(number)
        folder.mkdir()
        _, kept = campaign(shop(folder, block(code)))
        assert kept[0].kept is not None
        assert kept[0].kept.targets[0].corrupted == WRONG


@pytest.mark.parametrize(
    ("above", "options", "is_kept"),
    [
        ("", {}, False),
        ('WORD = "tenth"\n\n\n', {}, True),
        ('\ufeffWORD = "tenth"\n\n\n', {}, True),
        ("", {"missing_features": True}, True),
    ],
)
def test_what_only_the_tests_know_is_no_fault_of_the_writer(
    tmp_path: Path, above: str, options: dict[str, bool], is_kept: bool
) -> None:
    made = shop(tmp_path, block(WRONG))
    made.source = above + SHOP.replace("total // 10", 'total // {"tenth": 10}["tenth"]')
    made.tests = 'def test_price_limit():\n    assert "tenth"\n'
    counts, kept = campaign(made, **options)
    assert bool(kept) is is_kept
    assert is_kept or verdict_of(counts).reason is Reason.MISSING_FEATURE


@pytest.mark.parametrize(
    ("step", "requests", "end"),
    [
        (reply(content="It would be wonderful."), MOST_EMPTY_REPLIES, "no definition"),
        (
            reply(content="```python\ndef price(amount", finish="length"),
            MOST_EMPTY_REPLIES,
            "truncated replies",
        ),
        (reply(("submit_attempt", {"func_code": WRONG})), MOST_EMPTY_REPLIES, "no definition"),
        (reply(refusal="I will not."), 2, "refused"),
        (reply(content=block("def other():\n    return 1")), MOST_EMPTY_REPLIES, "no definition"),
    ],
    ids=["talkative", "cut off", "calling", "refusing", "another function"],
)
def test_a_writer_of_no_use_stops_the_set_after_five_functions(
    tmp_path: Path, step: ChatReply, requests: int, end: str
) -> None:
    made = shop(tmp_path, step)
    crowded(made)
    spending = SetSpending(tmp_path / "spent.jsonl")
    spending.begin()
    with pytest.raises(SetStoppedError, match=f"5 functions in a row.*{end}"):
        campaign(made, terms=ModelTerms(spending=spending))
    assert spending.spent().requests == 5 * requests


def crowded(made: Shop) -> None:
    body = SHOP.partition("\n\n\n")[0].partition("\n")[2]
    many = "\n\n".join(f"def f{n}(amount, rate):\n{body}" for n in range(9))
    made.source = f"{SHOP}\n\n{many}"
    made.bench.entered = {**made.bench.entered, **{f"shop.py::f{n}": list(CHECKS) for n in range(9)}}


def test_a_writer_that_repeats_the_original_is_of_use(tmp_path: Path) -> None:
    made = shop(tmp_path, "")
    crowded(made)
    bodies = {
        name: code for code in made.source.split("\n\n") if (name := code.strip()[4:].partition("(")[0])
    }
    spending = SetSpending(tmp_path / "spent.jsonl")

    @dataclass
    class Repeating(Writer):
        def complete(self, messages: Any, tools: Any, *, cancel: CancelToken = NEVER) -> ChatReply:
            name = re.findall(r"body of (\w+) is", messages[0].content)[0]
            return reply(content=block(bodies[name].strip()))

    bench_of(made).model = lambda name: Repeating(name, ())  # type: ignore[method-assign]
    counts, _ = campaign(made, terms=ModelTerms(spending=spending))
    assert len(counts.verdicts) == 12
    assert counts.fates == {"rewrite: unchanged": 12}


def test_an_endpoint_that_is_gone_stops_the_set_and_a_long_file_does_not(tmp_path: Path) -> None:
    made = shop(tmp_path, ChatFailure(ChatProblem.SERVER_ERROR, "It is gone."))
    with pytest.raises(EndpointError, match=r"It is gone\."):
        campaign(made)
    (tmp_path / "long").mkdir()
    counts, kept = campaign(shop(tmp_path / "long", ChatFailure(ChatProblem.CONTEXT_FULL, "Too long.")))
    assert not kept
    assert len(counts.verdicts) == 3


def test_a_cap_stops_the_set_and_a_larger_one_goes_on_without_asking_twice(tmp_path: Path) -> None:
    made = shop(tmp_path, block(WRONG))
    spending = SetSpending(tmp_path / "spent.jsonl", max_tokens=500)
    with pytest.raises(SetStoppedError, match="of at most 500 tokens"):
        campaign(made, terms=ModelTerms(spending=spending))
    before = spending.spent().requests
    more = SetSpending(spending.path, max_tokens=100_000)
    more.begin()
    counts, kept = campaign(made, terms=ModelTerms(spending=more))
    assert (len(counts.verdicts), len(kept)) == (3, 1)
    functions = [messages[0].content.split("The body of ")[1].split()[0] for messages in bench_of(made).asked]
    first_of_each = [messages for messages in bench_of(made).asked if len(messages) == 1]
    assert before >= 1
    assert len(first_of_each) == len(set(functions)) == 3


def test_a_set_of_rewrites_is_asked_for_with_a_model_and_its_own_limits() -> None:
    def planned(**options: Any) -> CampaignSettings:
        wanted = GenerateTasks(sources=("shop==1",), count=2, model=CorruptingModelOfSet(**options))
        return wanted.planned(lambda asked, least: (Writer("m", ()), asked.loop(least, None, None)))[1]

    settings = planned(model="m", rewrite=True)
    assert (settings.min_failing, settings.pool, settings.band) == (1, 6, (1, 40))
    assert settings.loop is not None
    assert settings.loop.feedback_rounds == 0
    assert settings.to_json()["rewrite"] is True
    assert "rewrite" not in planned(model="m").to_json()
    with pytest.raises(UserError, match="--rewrite needs a model"):
        planned(rewrite=True)
    with pytest.raises(UserError, match="--rounds is for a model that corrupts"):
        planned(model="m", rewrite=True, rounds=2)
    with pytest.raises(UserError, match="--rewrite makes discovery tasks"):
        CampaignSettings(CampaignMode.MULTI, model="m", rewrite=True)
