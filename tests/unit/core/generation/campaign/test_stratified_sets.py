"""A campaign of a stratified set fills its shares in the seed's order, with any number of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_benches import FakeBench, HeldSet

from gistpoint.core.generation.campaign import Workers, run_campaign
from gistpoint.core.generation.candidates import CorruptionCandidate, Strata, round_robin
from gistpoint.core.generation.context import Context
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.verdicts import CandidateVerdict, ProvenCorruption, Reason, StateFile

NAMES = ("low", "middle", "high")


@dataclass
class Deciding:
    """An executor with one thread, which decides by the key alone whether to keep a candidate."""

    pool: ThreadPoolExecutor
    good: Collection[str]
    weak: Collection[str] = ()
    tried: list[str] = field(default_factory=list)

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        _, candidate = args
        self.tried.append(candidate.key)
        return self.pool.submit(self.verdict, candidate.key)

    def verdict(self, key: str) -> CandidateVerdict:
        if key not in self.good:
            return CandidateVerdict(key, (key,), Reason.NONE_GOOD)
        part = {"evidence": {"rank": 9}, "subtlety": {"value": 0.5 if key in self.weak else 0.9}}
        kept = ProvenCorruption((), (), (), False, {"parts": [part]})
        return CandidateVerdict(key, (key,), Reason.KEPT, kept=kept)


def candidates(each: int = 10) -> tuple[CorruptionCandidate, ...]:
    return tuple(
        round_robin(
            [
                [CorruptionCandidate(f"{name}{n}", f"{name}{n}", stratum=name) for n in range(each)]
                for name in NAMES
            ]
        )
    )


@dataclass
class Made:
    """The kept candidates of one campaign in order, and the tried ones."""

    folder: Path
    good: Collection[str]
    weak: Collection[str] = ()

    def keys(self, count: int, workers: int = 1, strata: Strata | None = None, file: str = "") -> list[str]:
        strata = Strata(NAMES) if strata is None else strata
        context = Context(self.folder, FakeBench(), CampaignSettings(CampaignMode.DISCOVERY))
        tasks = HeldSet()
        path = self.folder / f"{file or f'{count} {workers}'}.jsonl"
        with ThreadPoolExecutor(workers) as pool, StateFile(path, {}) as state:
            self.executor = Deciding(pool, self.good, self.weak)
            run_campaign(
                context, candidates(), count, Workers(self.executor, workers), state, tasks, strata=strata
            )
        return [verdict.key for verdict in tasks.kept]


def by_stratum(keys: list[str]) -> dict[str, int]:
    return dict(Counter(key.rstrip("0123456789") for key in keys))


def odd(*names: str) -> set[str]:
    return {f"{name}{n}" for name in names for n in range(1, 10, 2)}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_each_stratum_gets_its_share_whatever_the_number_of_workers(tmp_path: Path, workers: int) -> None:
    keys = Made(tmp_path, odd(*NAMES)).keys(7, workers)
    assert keys == ["low1", "middle1", "high1", "low3", "middle3", "high3", "low5"]


def test_a_full_stratum_is_passed_over_and_has_its_turn_when_others_run_out(tmp_path: Path) -> None:
    made = Made(tmp_path, {f"low{n}" for n in range(10)} | {"high9"})
    keys = made.keys(6)
    assert by_stratum(keys) == {"low": 5, "high": 1}
    assert keys[:2] == ["low0", "low1"]
    assert {f"middle{n}" for n in range(10)} <= set(made.executor.tried)
    assert "low9" not in made.executor.tried


def test_equal_shares_stay_short_and_fixed_ones_are_kept_to(tmp_path: Path) -> None:
    made = Made(tmp_path, {"middle4", *odd("low", "high")})
    assert by_stratum(made.keys(6, strata=Strata(NAMES, equal=True))) == {"low": 2, "middle": 1, "high": 2}
    fixed = Strata(NAMES, fixed={"low": 1, "middle": 0, "high": 4})
    assert by_stratum(made.keys(5, strata=fixed, file="fixed")) == {"low": 1, "high": 4}
    assert not [key for key in made.executor.tried if key.startswith("middle")]


def test_what_waits_is_taken_before_its_place_goes_to_another_stratum(tmp_path: Path) -> None:
    weak = {"middle2", "middle6"}
    keys = Made(tmp_path, {*odd("low", "high"), *weak}, weak).keys(9)
    assert by_stratum(keys) == {"low": 4, "middle": 2, "high": 3}


def test_more_tasks_are_made_by_the_same_command_from_what_is_known(tmp_path: Path) -> None:
    made = Made(tmp_path, odd(*NAMES))
    few = made.keys(3, file="same")
    first = list(made.executor.tried)
    more = made.keys(9, file="same")
    assert more[:3] == few
    assert more == made.keys(9, file="fresh")
    again = made.keys(9, file="same")
    assert (again, made.executor.tried) == (more, [])
    assert first


def test_without_strata_the_order_alone_decides(tmp_path: Path) -> None:
    good = {"middle0", *odd("low", "high")}
    assert Made(tmp_path, good).keys(3, strata=Strata()) == ["middle0", "low1", "high1"]
