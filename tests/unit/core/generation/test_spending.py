"""The costs of a set, counted by workers that know nothing of each other."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from pickle import dumps, loads
from typing import Any

import pytest

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.chat import Usage
from gistpoint.core.corruption.rounds import LoopSettings
from gistpoint.core.errors import EndpointError
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings, FaultSource, SourceSpec
from gistpoint.core.generation.spending import MOST_ALIKE, SetSpending, SetStoppedError


def spending(tmp_path: Path, max_tokens: int | None = None, max_cost_usd: float | None = None) -> SetSpending:
    return SetSpending(tmp_path / "campaigns" / "spent.jsonl", max_tokens, max_cost_usd)


def test_workers_share_the_count_and_what_is_under_way_counts_as_estimated(tmp_path: Path) -> None:
    mine = spending(tmp_path, max_tokens=1000)
    one, other = mine.conversation(), loads(dumps(mine)).conversation()
    assert one.before(Usage(500, 0)) == ""
    assert "500 of at most 1000 tokens" in other.before(Usage(501, 0))
    one.after(Usage(90, 10))
    assert mine.spent().usage.tokens == 100
    assert other.before(Usage(1, 0)) == ""
    assert mine.spent().usage.tokens == 200, "as large as the last one of the set"


def test_no_request_is_lost_or_counted_twice_by_many_at_once(tmp_path: Path) -> None:
    mine = spending(tmp_path, max_tokens=10_000)

    def talk(_: int) -> None:
        meter = mine.conversation()
        while not meter.before(Usage(100, 0)):
            meter.after(Usage(90, 10))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(talk, range(4)))
    assert mine.spent().usage.tokens == 10_000
    assert mine.spent().requests == 100


def test_a_cap_on_the_cost_needs_a_price_and_survives_resuming(tmp_path: Path) -> None:
    mine = spending(tmp_path, max_cost_usd=0.5)
    meter = mine.conversation()
    assert meter.before(Usage(10, 0)) == ""
    meter.after(Usage(10, 10, cost_usd=0.3))
    mine.begin()
    assert "0.3000 of at most 0.5 US dollars" in spending(tmp_path, max_cost_usd=0.5).conversation().before(
        Usage(1, 0)
    )
    more = replace(mine, max_cost_usd=9.0).conversation()
    assert more.before(Usage(1, 0)) == ""
    more.after(Usage(10, 10))
    assert "neither the endpoint nor the settings give a price" in more.before(Usage(1, 0))


def test_a_failed_request_without_tokens_is_no_request_without_a_price(tmp_path: Path) -> None:
    meter = spending(tmp_path, max_cost_usd=1.0).conversation()
    assert meter.before(Usage(10, 0)) == ""
    meter.after(Usage())
    assert meter.before(Usage(10, 0)) == ""


def test_functions_in_a_row_that_ended_alike_stop_the_set(tmp_path: Path) -> None:
    mine = spending(tmp_path)
    for n in range(MOST_ALIKE - 1):
        mine.ended(f"a.py::f{n}", "refused", "I will not.")
    mine.check()
    mine.ended("a.py::g", "no tool call")
    for n in range(MOST_ALIKE - 1):
        mine.ended(f"a.py::h{n}", "refused")
    mine.check()
    mine.ended("a.py::i", "")
    for n in range(MOST_ALIKE):
        mine.check()
        mine.ended(f"a.py::j{n}", "refused", "I will not.")
    with pytest.raises(SetStoppedError, match=r"5 functions in a row.*refused. I will not.") as stop:
        mine.check()
    assert loads(dumps(stop.value)).hint == stop.value.hint != ""
    mine.begin()
    mine.check()


def test_a_worker_that_stopped_stops_the_others_until_a_command_begins(tmp_path: Path) -> None:
    mine = spending(tmp_path)
    mine.stop(EndpointError("It is gone.", hint="Wait."))
    with pytest.raises(SetStoppedError, match=r"It is gone\. Wait\."):
        mine.check()
    mine.begin()
    mine.check()


def test_a_line_cut_short_is_dropped_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    mine = spending(tmp_path)
    meter = mine.conversation()
    meter.before(Usage(5, 0))
    with mine.path.open("ab") as file:
        file.write(b'{"type":"requ')
    meter.after(Usage(7, 0))
    assert mine.spent().usage.tokens == 7
    mine.path.write_bytes(b"nonsense\n")
    with pytest.raises(EndpointError, match=r"spent.jsonl among the campaigns can't be read"):
        mine.spent()


@pytest.mark.parametrize(
    "settings",
    [
        CampaignSettings(CampaignMode.DISCOVERY, source=FaultSource.HISTORY),
        CampaignSettings(CampaignMode.DISCOVERY, model="m", loop=LoopSettings(), rewrite=True),
        CampaignSettings(CampaignMode.DISCOVERY, reader="r"),
    ],
)
def test_a_larger_pool_continues_a_set_and_its_spending(settings: CampaignSettings, tmp_path: Path) -> None:
    """With a larger --count, the default pool grows too, and nothing is paid for twice."""

    def place(pool: int, settings: CampaignSettings = settings) -> Path:
        def of(values: Mapping[str, Any]) -> Path:
            return tmp_path / sha256_of_json(values)

        return replace(settings, pool=pool).file_of_campaign(of)

    assert place(30) == place(60) == place(0)
    assert place(30) != place(30, replace(settings, seed=1))
    sources = [SourceSpec("shop==1")]
    spent = [
        SetSpending.of(tmp_path, replace(settings, pool=pool), sources, None, 2.0).path for pool in (30, 60)
    ]
    assert spent[0] == spent[1]
    # A file that an earlier version named by the pool is continued with this pool.
    earlier = tmp_path / sha256_of_json(replace(settings, pool=30).to_json())
    earlier.touch()
    assert place(30) == earlier
    place(60).touch()
    assert place(30) == place(60) != earlier
