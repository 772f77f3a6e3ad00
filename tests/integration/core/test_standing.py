"""A running campaign's tasks are available at once; better ones replace them, except those being solved."""

from __future__ import annotations

import pickle
import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_benches import HeldSet, Shop

from gistpoint.core.generation import progress
from gistpoint.core.generation.campaign import CandidateVerdicts, Workers, run_campaign
from gistpoint.core.generation.candidates import plan
from gistpoint.core.generation.context import Context, close_contexts
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.making import WrittenSet
from gistpoint.core.generation.progress import CampaignMeter, CampaignProgress, TrialBoard, TrialProgress
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, Reason, StateFile
from gistpoint.core.kinds.folder import content_sha256, read_task

SETTINGS = CampaignSettings(CampaignMode.DISCOVERY, min_failing=2)


class Bench:
    """The library with its verdicts, and sets of its tasks in one folder."""

    def __init__(self, folder: Path) -> None:
        self.shop = Shop(folder)
        self.verdicts = self.shop.campaign("discovery", min_failing=2)[1]
        self.library: SourceLibrary = self.shop.library()
        self.folder = folder / "tasks"
        self.state = folder / "tasks.jsonl"
        self.notes: list[str] = []
        self.used: set[str] = set()

    def set(self, state: StateFile) -> WrittenSet:
        return WrittenSet(
            self.library, SETTINGS, self.folder, state, self.notes.append, self.used.__contains__
        )

    def there(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def ids(tasks: WrittenSet) -> list[str]:
    return [task.id for task in tasks.present.values()]


def test_a_task_that_gave_way_is_gone(bench: Bench) -> None:
    first, second, third = bench.verdicts
    with StateFile(bench.state, {}) as state:
        tasks = bench.set(state)
        tasks.become([first, second])
        (_, other) = before = ids(tasks)
        assert bench.there() == sorted(before)
        tasks.become([first, third])
        assert bench.there() == sorted(ids(tasks))
        assert tasks.present[third.key].replaces == other
        assert f"instead of {other[:12]}" in bench.notes[-1]


def test_a_task_that_is_worked_on_stays_without_being_one_of_the_set(bench: Bench) -> None:
    first, second, _ = bench.verdicts
    with StateFile(bench.state, {}) as state:
        tasks = bench.set(state)
        tasks.become([first])
        bench.used.update(ids(tasks))
        tasks.become([second])
        assert bench.there() == sorted({*ids(tasks), *bench.used})
        assert "is kept because" in bench.notes[-1]
        told = len(bench.notes)
        tasks.become([second])
        assert len(bench.notes) == told


def test_what_a_killed_run_left_goes_with_the_next_one(bench: Bench) -> None:
    first, second, _ = bench.verdicts
    with StateFile(bench.state, {}) as state:
        bench.set(state).become([first])
    with StateFile(bench.state, {}) as state:
        tasks = bench.set(state)
        tasks.become([second])
        assert bench.there() == ids(tasks)


def test_tasks_of_a_finished_run_and_of_others_are_never_removed(bench: Bench) -> None:
    first, second, third = bench.verdicts
    with StateFile(bench.state, {}) as state:
        tasks = bench.set(state)
        tasks.become([first])
        tasks.settle()
    with StateFile(bench.folder / "other.jsonl", {}) as other, StateFile(bench.state, {}) as state:
        bench.set(other).become([first])
        bench.set(other).become([])
        tasks = bench.set(state)
        tasks.become([second, third])
        tasks.become([second])
        assert [len(name) == 64 for name in bench.there()].count(True) == 2


class Backwards:
    """An executor whose first candidate is decided last."""

    def __init__(self, pool: ThreadPoolExecutor, others: int) -> None:
        self.pool = pool
        self.others = threading.Semaphore(0)
        self.count = others
        self.first: Future[Any] | None = None

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        if self.first is None:
            self.first = self.pool.submit(self._late, fn, *args)
            return self.first
        future = self.pool.submit(fn, *args)
        future.add_done_callback(lambda _: self.others.release())
        return future

    def _late(self, fn: Any, *args: Any) -> Any:
        for _ in range(self.count):
            assert self.others.acquire(timeout=120)
        return fn(*args)


class Watched(HeldSet):
    """A set that records each of its states."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[list[str]] = []

    def become(self, kept: Sequence[CandidateVerdict]) -> None:
        super().become(kept)
        self.states.append([verdict.key for verdict in kept])


def test_what_is_proven_stands_before_its_turn_and_the_end_is_the_same(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    library = shop.library()
    candidates = plan(library, SETTINGS).candidates
    ends = []
    for late in (False, True):
        tasks = Watched()
        try:
            with ThreadPoolExecutor(2) as pool, StateFile(tmp_path / f"{late}.jsonl", {}) as state:
                executor = Backwards(pool, len(candidates) - 1) if late else pool
                run_campaign(shop.place(SETTINGS), candidates, 2, Workers(executor, 2), state, tasks)
        finally:
            close_contexts()
        assert tasks.settled
        ends.append(tasks.states[-1])
        if late:
            assert any(state and candidates[0].key not in state for state in tasks.states)
    assert ends[0] == ends[1]


def test_reports_tell_what_is_tried_and_what_became_of_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    library = shop.library()
    candidates = plan(library, SETTINGS).candidates
    reports: list[CampaignProgress] = []
    place = shop.place(SETTINGS)
    try:
        with ThreadPoolExecutor(1) as pool, StateFile(tmp_path / "state.jsonl", {}) as state:
            meter = CampaignMeter("shop", 9, len(candidates), state)

            def on_progress(found: Any, keys: Any) -> None:
                report = meter.report(found.verdicts, len(found.accepted), {}, place.board.trials(keys))
                if report is not None:
                    reports.append(report)

            run_campaign(place, candidates, 9, Workers(pool, 1), state, HeldSet(), on_progress=on_progress)
    finally:
        close_contexts()
    last = reports[-1]
    assert (last.tried, last.candidates, last.wanted) == (3, 3, 9)
    assert sum(last.corruptions.values()) > 0
    assert last.remaining == 0
    assert not list(place.folder.glob("trials/*"))


def test_a_current_task_is_not_shown_as_dropped(bench: Bench) -> None:
    first, second, *_ = bench.verdicts
    selection = CandidateVerdicts(5, pool=15)
    with StateFile(bench.state, {}) as state:
        meter, tasks = CampaignMeter("shop", 5, 3, state), bench.set(state)
        selection.take(first)
        selection.take(second)
        tasks.become(selection.as_if_last())
        report = meter.report(selection.verdicts, 0, tasks.present, ())
        assert report is not None
        assert (report.tried, len(report.kept), dict(report.dropped)) == (2, 2, {})
        tasks.become(selection.as_if_last()[:1])
        report = meter.report(selection.verdicts, 0, tasks.present, ())
        assert report is not None
        assert (report.tried, len(report.kept), dict(report.dropped)) == (2, 1, {Reason.IN_POOL.value: 1})


def test_of_a_candidate_the_newest_line_counts_and_of_others_none(tmp_path: Path) -> None:
    board = TrialBoard(tmp_path / "trials" / "one")
    board.post("a", TrialProgress("", "m.py::f"))
    assert board.trials({"a"}) == ()
    board.open()
    board.post("a", TrialProgress("", "m.py::f", 1))
    thread = threading.Thread(target=board.post, args=("a", TrialProgress("", "m.py::f", 2)))
    thread.start()
    thread.join()
    (board.folder / "torn.json").write_text("{")
    assert board.trials({"b"}) == ()
    assert board.trials({"a"}) == (TrialProgress("1", "m.py::f", 2),)
    board.close()
    assert board.trials({"a"}) == ()


def contents(tasks: WrittenSet, folder: Path) -> list[str]:
    return [content_sha256(read_task(folder / id)) for id in ids(tasks)]


def test_a_campaign_that_goes_on_names_its_tasks_as_before(bench: Bench) -> None:
    first, second, _ = bench.verdicts
    with StateFile(bench.state, {}) as state:
        secret, tasks = state.secret, bench.set(state)
        tasks.become([first, second])
        before = ids(tasks)
    shutil.rmtree(bench.folder)
    with StateFile(bench.state, {}) as state:
        assert state.secret == secret
        tasks = bench.set(state)
        tasks.become([first, second])
        assert ids(tasks) == before


def test_another_campaign_makes_the_same_content_under_another_id(bench: Bench) -> None:
    with StateFile(bench.state, {}) as state:
        one = bench.set(state)
        one.become(bench.verdicts[:2])
        first = contents(one, bench.folder)
    mine, bench.folder = bench.folder, bench.folder.with_name("elsewhere")
    with StateFile(bench.state.with_name("other.jsonl"), {}) as state:
        other = bench.set(state)
        other.become(bench.verdicts[:2])
        assert contents(other, bench.folder) == first
        assert not set(ids(one)) & set(ids(other))
    bench.folder = mine
    with StateFile(bench.state.with_name("third.jsonl"), {}) as state:
        third = bench.set(state)
        third.become(bench.verdicts[:2])
        assert ids(third) == ids(one), "what is here is kept"
        assert not state.provisional


def test_a_campaign_from_before_gets_a_secret_once(bench: Bench) -> None:
    bench.state.write_text('{"format":"gistpoint.campaign","version":1}\n')
    with StateFile(bench.state, {}) as state:
        secret = state.secret
    with StateFile(bench.state, {}) as state:
        assert state.secret == secret
    assert len(secret) == 32


class Recording:
    """An executor that records the arguments it passes to workers."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.pool = pool
        self.given: list[Any] = []

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        """Record the arguments and submit the call."""
        self.given += args
        return self.pool.submit(fn, *args)


def test_what_workers_get_holds_no_secret(bench: Bench) -> None:
    with StateFile(bench.state, {}) as state, ThreadPoolExecutor(1) as pool:
        workers = Recording(pool)
        candidates = plan(bench.library, SETTINGS).candidates
        context = bench.shop.place(SETTINGS)
        try:
            run_campaign(context, candidates, 2, Workers(workers, 1), state, bench.set(state))
        finally:
            close_contexts()
        assert any(isinstance(given, Context) for given in workers.given)
        harness: Any = None  # each worker creates its own harness
        plain = [
            replace(given, harness=harness) if isinstance(given, Context) else given
            for given in workers.given
        ]
        sent = pickle.dumps(plain)
        assert state.secret not in sent
        assert state.secret.hex().encode() not in sent


def test_verdicts_on_other_candidates_do_not_shorten_the_remaining_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state keeps verdicts of earlier versions, which decide no candidate any more."""
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    kinds = [replace(bench.verdicts[0], key=str(n), kept=None) for n in range(20)]
    with StateFile(bench.state, {}) as state:
        for verdict in kinds[:10]:
            state.add(verdict)
        # Of 40 candidates, 4 were decided before; the other 6 verdicts are on none of them.
        meter = CampaignMeter("shop", 9, 40, state, known=4)
        for verdict in kinds[10:16]:
            state.add(verdict)
        now += 60
        report = meter.report(kinds[10:16], 0, {}, ())
    assert report is not None
    assert report.remaining == pytest.approx(10 * 30)


def test_a_stopped_campaign_counts_its_tasks_as_kept(bench: Bench) -> None:
    first, second, third, *_ = bench.verdicts
    selection = CandidateVerdicts(2, pool=15)
    with StateFile(bench.state, {}) as state:
        for verdict in (first, second, third):
            state.add(verdict)
        selection.take(first)
        selection.take(second)
        tasks = bench.set(state)
        tasks.become([first, third])
        counts = Counts(selection.verdicts).with_tasks(tasks.present, state.verdicts)
    # The third has not had its turn, and the second waits in the pool.
    assert (counts.tried, counts.kept) == (3, 2)
    assert counts.reasons == {Reason.IN_POOL.value: 1}
    assert sum(counts.failing.values()) == 2
    assert [verdict.key for verdict in counts.verdicts] == [first.key, second.key, third.key]
