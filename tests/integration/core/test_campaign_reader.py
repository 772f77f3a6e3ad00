"""A blind reader in a campaign: faults that it misses are chosen first, and no reading is repeated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_benches import SHOP, FakeBench, Shop
from scripted_endpoint import reply

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.corruption.blind import packet_prompt
from gistpoint.core.errors import CancelledError, EndpointError, UserError
from gistpoint.core.generation.by_model import CorruptingModelOfSet, ModelTerms
from gistpoint.core.generation.earlier import EarlierFile, write_earlier_files
from gistpoint.core.generation.making import WrittenSet, write_kept
from gistpoint.core.generation.readings import MOST_USELESS, Packets
from gistpoint.core.generation.requests import BlindReader, GenerateTasks
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings, FaultSource
from gistpoint.core.generation.spending import SetSpending, SetStoppedError
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, Reason, StateFile
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.running import NEVER, CancelToken

EARLIER = (
    SHOP.replace("total // 10", "total // 5"),
    SHOP.replace("left.get(name, 0)", "left.get(name, 1)"),
    SHOP.replace("count >= 1", "count >= 2"),
)
FAULTS = {"price": "total // 5", "stock": "left.get(name, 1)", "bill": "count >= 2"}
Say = Callable[[str], "ChatReply | ChatFailure"]


def line_with(text: str, packet: str) -> int:
    """Return the printed number of the line with a string; 0 if the packet does not contain it."""
    found = re.search(rf"^ *(\d+) \| .*{re.escape(text)}", packet, re.MULTILINE)
    return int(found[1]) if found else 0


def names(*functions: str, **basis: str) -> Say:
    """Return a reader that names the faults of these functions, on the given basis, and misses all others."""

    def say(packet: str) -> ChatReply:
        found = ((name, line_with(FAULTS[name], packet)) for name in functions)
        name, line = next((item for item in found if item[1]), ("", 0))
        answer = {"answer": "fault" if line else "nothing", "line": line, "words": "so it seems"}
        if name in basis:
            answer["basis"] = basis[name]
        return reply(content=f"Let me see.\n{json.dumps(answer)}\nThat is all.")

    return say


@dataclass
class Reader:
    name: str
    say: Say
    packets: list[str] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        cancel.check()
        assert not tools
        system, user = messages
        self.systems.append(system.content)
        self.packets.append(user.content)
        return self.say(user.content)


@dataclass(eq=False)
class ReadBench(FakeBench):
    say: Say = field(default=names())
    readers: list[Reader] = field(default_factory=list)

    def reader(self, name: str) -> Reader:
        self.readers.append(Reader(name, lambda packet: self.say(packet)))
        return self.readers[-1]

    @property
    def packets(self) -> list[str]:
        return [packet for reader in self.readers for packet in reader.packets]


def read_shop(folder: Path, say: Say) -> tuple[Shop, ReadBench]:
    folder.mkdir(exist_ok=True)
    bench = ReadBench(say=say)
    shop = Shop(folder, bench)
    shop.library()
    files = tuple(EarlierFile(f"{n}" * 40, "2024-01-01", text) for n, text in enumerate(EARLIER, 1))
    write_earlier_files(folder / "library", {"shop.py": files})
    return shop, bench


def campaign(shop: Shop, count: int = 1, **options: Any) -> tuple[Counts, list[CandidateVerdict]]:
    options = {"min_failing": 1, "pool": 3, "reader": "r", **options}
    return shop.campaign("discovery", count=count, source=FaultSource.HISTORY, **options)


def record_of(verdict: CandidateVerdict) -> dict[str, Any]:
    assert verdict.kept is not None
    return dict(verdict.kept.provenance["reader"])


@pytest.mark.parametrize("missed", list(FAULTS))
def test_what_the_reader_misses_is_chosen_first(tmp_path: Path, missed: str) -> None:
    shop, bench = read_shop(tmp_path, names(*(set(FAULTS) - {missed})))
    counts, kept = campaign(shop)
    assert [verdict.names for verdict in kept] == [(f"shop.py::{missed}",)]
    assert counts.reasons == {Reason.IN_POOL: 2}
    record = record_of(kept[0])
    assert (record["model"], record["asked"], record["read"], record["named"]) == ("r", 3, 3, 0)
    assert len(bench.packets) == 3 * 3
    _, all_kept = campaign(shop, count=3)
    rates = {verdict.names[0]: record_of(verdict)["named"] for verdict in all_kept}
    assert rates == {f"shop.py::{name}": 3 * (name != missed) for name in FAULTS}
    assert len(bench.packets) == 3 * 3, "no reading is made twice"


@pytest.mark.parametrize("remembered", list(FAULTS))
@pytest.mark.parametrize("others", ["text", "no such basis"])
def test_what_the_reader_names_from_memory_is_chosen_before_what_the_text_shows(
    tmp_path: Path, remembered: str, others: str
) -> None:
    basis = {name: "memory" if name == remembered else others for name in FAULTS}
    shop, _ = read_shop(tmp_path, names(*FAULTS, **basis))
    _, kept = campaign(shop)
    assert [verdict.names for verdict in kept] == [(f"shop.py::{remembered}",)]
    record = record_of(kept[0])
    assert (record["read"], record["named"], record["from_text"]) == (3, 3, 0)
    _, all_kept = campaign(shop, count=3)
    shares = {verdict.names[0]: record_of(verdict)["from_text"] for verdict in all_kept}
    assert shares == {f"shop.py::{name}": 3 * (name != remembered) for name in FAULTS}


def test_a_packet_shows_one_corruption_among_untouched_functions_that_explain_nothing(tmp_path: Path) -> None:
    shop, bench = read_shop(tmp_path, names())
    shop.source = SHOP + "\n\ndef price_of(x):\n    y = x\n    z = y\n    return z\n"
    (tmp_path / "library").rename(tmp_path / "old")
    shop.library()
    files = tuple(EarlierFile(f"{n}" * 40, "2024-01-01", text) for n, text in enumerate(EARLIER, 1))
    write_earlier_files(tmp_path / "library", {"shop.py": files})
    _, kept = campaign(shop, count=3)
    packets = Packets(shop.library(), 0)
    for verdict in kept:
        for number in range(3):
            (system, user) = packets.packet(verdict, number).messages
            assert system.content == packet_prompt()
            found = [name for name, fault in FAULTS.items() if fault in user.content]
            assert [f"shop.py::{name}" for name in found] == [*verdict.names]
            assert "shop.py" not in user.content
            assert user.content in bench.packets
    price = next(verdict for verdict in kept if verdict.names == ("shop.py::price",))
    shown = packets.packet(price, 0).messages[1].content
    assert "def bill" not in shown, "a caller shows what the function is for"
    assert "def price_of" in shown
    assert "def unseen" in shown


def test_the_rate_stands_in_the_answer_of_the_task(tmp_path: Path) -> None:
    shop, _ = read_shop(tmp_path, names("price"))
    _, kept = campaign(shop, count=3)
    settings = CampaignSettings(CampaignMode.DISCOVERY, source=FaultSource.HISTORY, reader="r", pool=3)
    for verdict in kept:
        assert verdict.kept is not None
        task = write_kept(shop.library(), settings, verdict.kept, tmp_path / "tasks")
        assert read_answer(task).provenance["reader"] == verdict.kept.provenance["reader"]
        assert "reader" not in (task.folder / "task.toml").read_text()


def test_a_task_that_was_written_before_it_was_read_gets_its_rate(tmp_path: Path) -> None:
    shop, _ = read_shop(tmp_path, names("price"))
    _, kept = campaign(shop, count=3)
    settings = CampaignSettings(CampaignMode.DISCOVERY, source=FaultSource.HISTORY, reader="r", pool=3)
    (verdict,) = [item for item in kept if item.names == ("shop.py::price",)]
    with StateFile(tmp_path / "state.jsonl", {}) as state:
        known = state_of(tmp_path).verdicts[verdict.key]
        written = WrittenSet(shop.library(), settings, tmp_path / "tasks", state, lambda text: None)
        written.become([known])
        (first,) = written.present.values()
        assert not written.read
        written.become([verdict])
        (task,) = written.present.values()
        assert task.id == first.id
        assert written.read[task.id]["named"] == 3
    from gistpoint.core.kinds.folder import read_task

    assert read_answer(read_task(tmp_path / "tasks" / task.id)).provenance["reader"]["named"] == 3


def state_of(folder: Path) -> StateFile:
    (file,) = folder.glob("discovery-*.jsonl")
    with StateFile(file, {}) as state:
        return state


def test_replies_that_are_refused_or_no_answer_do_not_count(tmp_path: Path) -> None:
    def say(packet: str) -> ChatReply | ChatFailure:
        if line_with(FAULTS["stock"], packet):
            return reply(refusal="I will not.")
        if line_with(FAULTS["bill"], packet):
            return ChatFailure(ChatProblem.CONTEXT_FULL, "Too long.")
        return names("price")(packet)

    shop, bench = read_shop(tmp_path, say)
    _, kept = campaign(shop, count=3)
    records = {verdict.names[0].partition("::")[2]: record_of(verdict) for verdict in kept}
    assert (records["price"]["read"], records["price"]["named"]) == (3, 3)
    for name in ("stock", "bill"):
        assert (records[name]["asked"], records[name]["read"], records[name]["named"]) == (3, 0, 0)
    assert "I will not." in records["stock"]["readings"][0]["words"]
    assert kept[-1].names == ("shop.py::price",), "what is named comes after what nobody read"
    asked = len(bench.packets)
    campaign(shop, count=3)
    assert len(bench.packets) == asked


@pytest.mark.parametrize(
    "answer",
    [reply(content="Well, that depends."), reply(refusal="No."), reply(content="{broken"), reply(content="")],
    ids=["talkative", "refusing", "malformed", "empty"],
)
def test_a_reader_of_no_use_stops_the_set_and_is_asked_again(tmp_path: Path, answer: ChatReply) -> None:
    shop, bench = read_shop(tmp_path, lambda packet: answer)
    with pytest.raises(SetStoppedError, match="r gave no usable answer to 5 packets in a row"):
        campaign(shop)
    assert MOST_USELESS <= len(bench.packets) <= MOST_USELESS + 2
    assert not state_of(tmp_path).readings
    bench.say = names("price")
    _, kept = campaign(shop)
    assert record_of(kept[0])["read"] == 3


@pytest.mark.parametrize("problem", [ChatProblem.NO_CONNECTION, ChatProblem.ACCOUNT_EMPTY])
def test_an_endpoint_that_is_gone_stops_the_set_and_what_was_read_is_kept(
    tmp_path: Path, problem: ChatProblem
) -> None:
    answers = [names()] * 4 + [lambda packet: ChatFailure(problem, "It is gone.")]
    shop, bench = read_shop(
        tmp_path, lambda packet: answers.pop(0)(packet) if len(answers) > 1 else answers[0](packet)
    )
    with pytest.raises(EndpointError, match=r"The reader no longer answers: It is gone\."):
        campaign(shop)
    assert sum(map(len, state_of(tmp_path).readings.values())) == 4
    before = len(bench.packets)
    bench.say = names()
    campaign(shop)
    assert len(bench.packets) == before + 9 - 4


def test_a_set_is_the_same_wherever_it_was_stopped(tmp_path: Path) -> None:
    say = names("stock", "bill")
    shop, whole = read_shop(tmp_path / "whole", say)
    _, expected = campaign(shop)
    for after in (0, 1, 5):
        stopped, bench = read_shop(tmp_path / str(after), say)
        left = after

        def until(packet: str) -> ChatReply:
            nonlocal left
            if not left:
                raise CancelledError("Stopped.")
            left -= 1
            return names("stock", "bill")(packet)

        bench.say = until
        with pytest.raises(CancelledError):
            campaign(stopped)
        asked = len(bench.packets)
        bench.say = say
        _, kept = campaign(stopped)
        assert [item.kept for item in kept] == [item.kept for item in expected]
        assert after + 9 - after <= len(bench.packets) <= asked + 9 - after
    assert len(whole.packets) == 9


def test_the_reader_and_the_maker_share_the_cap_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    def priced(packet: str) -> ChatReply:
        answer = names()(packet)
        assert isinstance(answer, ChatReply)
        return reply(content=answer.message.content, usage=Usage(100, 10, cost_usd=0.02))

    shop, bench = read_shop(tmp_path, priced)
    spending = SetSpending(tmp_path / "spent.jsonl", max_cost_usd=0.09)
    with pytest.raises(SetStoppedError, match=r"0.0800 of at most 0.09 US dollars"):
        campaign(shop, terms=ModelTerms(spending=spending))
    assert len(bench.packets) == 4
    more = SetSpending(spending.path, max_cost_usd=1.0)
    more.begin()
    campaign(shop, terms=ModelTerms(spending=more))
    assert len(bench.packets) == 9
    assert more.spent().usage.cost_usd == pytest.approx(0.18)


def test_many_workers_read_the_same(tmp_path: Path) -> None:
    say = names("stock", "bill")
    _, one = campaign(read_shop(tmp_path / "one", say)[0], count=3)
    _, many = campaign(read_shop(tmp_path / "many", say)[0], count=3, workers=4)
    assert [item.kept for item in many] == [item.kept for item in one]


def test_a_reader_is_asked_for_with_another_name_than_the_maker() -> None:
    def planned(model: str = "", rewrite: bool = False, **options: Any) -> CampaignSettings:
        maker = CorruptingModelOfSet(
            model=model or None, rewrite=rewrite, max_cost=options.pop("max_cost", None)
        )
        wanted = GenerateTasks(sources=("shop==1",), count=2, model=maker, blind=BlindReader(**options))
        opened: list[str] = []
        found = wanted.planned(
            lambda asked, least: (Reader("m", names()), asked.loop(least, None, None)),
            lambda name: opened.append(name) or Reader(name, names()),  # type: ignore[func-returns-value]
        )[1]
        assert opened == ([found.reader] if found.reader else [])
        return found

    settings = planned(reader="r", max_cost=2.0)
    assert (settings.reader, settings.readings, settings.pool) == ("r", 3, 6)
    assert (settings.to_json()["reader"], settings.to_json()["readings"]) == ("r", 3)
    assert not settings.deciding().keys() & {"reader", "readings", "pool"}
    assert not planned().to_json().keys() & {"reader", "readings"}
    assert planned("m", reader="r").pool == planned("m", rewrite=True, reader="r").pool == 6
    for maker, reader in (("gpt-9", "gpt-9"), ("openai/GPT-9", "gpt-9")):
        with pytest.raises(UserError, match="can't be their blind reader"):
            planned(maker, reader=reader)
    assert planned("qwen:7b", reader="qwen:1b").reader == "qwen:1b"
    with pytest.raises(UserError, match="--readings needs a model that reads"):
        planned(readings=5)
    with pytest.raises(UserError, match="--max-cost applies only"):
        planned(max_cost=1.0)
    for mode in (CampaignMode.REMOVE, CampaignMode.MULTI):
        with pytest.raises(UserError, match="--reader is for discovery tasks"):
            CampaignSettings(mode, reader="r")
