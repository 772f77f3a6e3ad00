"""Background jobs of the UI: their order, their ends, and where their results and errors arrive."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from textual import on
from textual.app import App
from textual.message import Message

from gistpoint.core.errors import UserError
from gistpoint.tui.jobs import Job, Jobs


class Said(Message):
    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word


class Owner(App[None]):
    """An app that records its jobs' results and the threads on which they arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.brought: list[object] = []
        self.threads: set[int] = set()
        self.jobs = Jobs(self, "test", failed=self.bring)

    def bring(self, value: object) -> None:
        self.brought.append(value)
        self.threads.add(threading.get_ident())

    @on(Said)
    def said(self, message: Said) -> None:
        self.bring(message.word)

    def on_unmount(self) -> None:
        self.jobs.stop()


async def until(met: Callable[[], object]) -> None:
    for _ in range(1_000):
        if met():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("never came about")


class Gate:
    """A job that blocks its thread until it is released."""

    def __init__(self, jobs: Jobs, *, key: str = "", returns: object = "gate") -> None:
        self._go, self.begun, self._returns = threading.Event(), threading.Event(), returns
        self.job = jobs.do(self._body, self._then(jobs), key=key)
        assert self.begun.wait(5)

    @staticmethod
    def _then(jobs: Jobs) -> Callable[[object], None]:
        owner = jobs._owner
        return owner.bring if isinstance(owner, Owner) else lambda _: None

    def _body(self, job: Job) -> object:
        self.begun.set()
        self._go.wait(5)
        return self._returns

    def let_go(self) -> None:
        self._go.set()


async def test_results_arrive_on_the_ui_thread_in_the_order_asked_for() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        for word in "abc":
            app.jobs.do(lambda _, word=word: word, app.bring)
        await until(lambda: len(app.brought) == 3)
        assert app.brought == ["a", "b", "c"]
        assert app.threads == {threading.get_ident()}


async def test_the_most_urgent_runs_first() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        gate = Gate(app.jobs)
        app.jobs.do(lambda _: "later", app.bring, priority=2)
        app.jobs.do(lambda _: "first", app.bring, priority=-1)
        app.jobs.do(lambda _: "second", app.bring, priority=1)
        gate.let_go()
        await until(lambda: len(app.brought) == 4)
        assert app.brought == ["gate", "first", "second", "later"]


async def test_a_long_job_gives_way_and_goes_on_from_what_it_has_done() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        begun, done = 0, 0

        def long(job: Job) -> str:
            nonlocal begun, done
            begun += 1
            while done < 3:
                done += 1
                if done == 2:
                    app.jobs.do(lambda _: "urgent", app.bring, priority=-1)
                job.give_way()
            return f"{done} done"

        app.jobs.do(long, app.bring)
        await until(lambda: len(app.brought) == 2)
        assert app.brought == ["urgent", "3 done"]
        assert begun == 2


async def test_a_job_may_rest_and_is_cancelled_meanwhile() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        begun = threading.Event()

        def rests(job: Job) -> None:
            if begun.is_set():
                return
            begun.set()
            job.give_way(60)

        job = app.jobs.do(rests, app.bring, key="rest")
        assert begun.wait(5)
        app.jobs.do(rests, app.bring, key="rest")
        await until(lambda: app.brought == [None])
        assert not job.running


async def test_of_progress_only_the_newest_arrives() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        reported = threading.Event()

        def goes_on(job: Job) -> str:
            for number in range(5):
                job.report(app.bring, number)
            reported.set()
            return "done"

        app.jobs.do(goes_on, app.bring)
        assert reported.wait(5)  # the UI thread waits here and handles nothing
        await until(lambda: len(app.brought) == 2)
        assert app.brought == [4, "done"]


async def test_parts_of_a_result_arrive_one_by_one() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)

        def finds(job: Job) -> str:
            for word in "ab":
                job.hand(app.bring, word)
            return "all"

        app.jobs.do(finds, app.bring)
        await until(lambda: len(app.brought) == 3)
        assert app.brought == ["a", "b", "all"]


async def test_the_newest_of_a_key_wins_over_those_that_wait_and_the_one_that_runs() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        gate = Gate(app.jobs, key="step")
        older = app.jobs.do(lambda _: "older", app.bring, key="step")
        app.jobs.do(lambda _: "other", app.bring, key="row")
        app.jobs.do(lambda _: "newest", app.bring, key="step")
        assert gate.job.cancel.cancelled
        assert gate.job.replaced
        assert not older.running
        gate.let_go()
        await until(lambda: len(app.brought) == 2)
        assert app.brought == ["other", "newest"]


async def test_a_result_on_its_way_is_dropped_if_a_newer_job_is_asked_for() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        first = app.jobs.do(lambda _: "stale", app.bring, key="step")
        while first.running:  # no await, so the UI thread can't handle the result in between
            time.sleep(0.001)
        app.jobs.do(lambda _: "fresh", app.bring, key="step")
        await until(lambda: app.brought)
        assert app.brought == ["fresh"]


async def test_errors_are_values_and_the_thread_goes_on() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        error = UserError("Not here.", hint="Look elsewhere.")

        def fails(job: Job) -> None:
            raise error

        app.jobs.do(fails, app.bring)
        own: list[Exception] = []
        app.jobs.do(fails, app.bring, failed=own.append)
        app.jobs.do(lambda _: "goes on", app.bring)
        await until(lambda: len(app.brought) == 2)
        assert app.brought == [error, "goes on"]
        assert own == [error]


async def test_a_job_that_is_stopped_says_nothing_unless_it_returns() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)

        def checks(job: Job) -> None:
            while True:
                job.cancel.sleep(0.005)

        def returns(job: Job) -> str:
            while not job.cancel.cancelled:
                time.sleep(0.001)
            return "Stopped."

        for body in (checks, returns):
            job = app.jobs.do(body, app.bring)
            await asyncio.sleep(0.02)
            job.stop()
        app.jobs.do(lambda _: "after", app.bring)
        await until(lambda: len(app.brought) == 2)
        assert app.brought == ["Stopped.", "after"]


async def test_cancelling_forgets_what_waits_and_takes_new_jobs() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        gate = Gate(app.jobs)
        waiting = app.jobs.do(lambda _: "forgotten", app.bring)
        app.jobs.cancel()
        assert gate.job.cancel.cancelled
        assert not waiting.running
        gate.let_go()
        app.jobs.do(lambda _: "new", app.bring)
        await until(lambda: "new" in app.brought)
        assert "forgotten" not in app.brought
        await until(lambda: not app.jobs.busy)


async def test_a_delayed_job_waits_and_others_pass_it() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        app.jobs.do(lambda _: "delayed", app.bring, priority=-1, delay=0.05)
        app.jobs.do(lambda _: "at once", app.bring)
        await until(lambda: len(app.brought) == 2)
        assert app.brought == ["at once", "delayed"]


async def test_jobs_post_messages_while_they_run_and_end_with_their_owner() -> None:
    app = Owner()
    async with app.run_test():

        def goes_on(job: Job) -> None:
            job.post(Said("begun"))
            while True:
                job.cancel.sleep(0.005)

        job = app.jobs.do(goes_on)
        await until(lambda: app.brought == ["begun"])
    assert job.cancel.cancelled
    assert not app.jobs.do(lambda _: "too late", app.bring).running
    await until(lambda: not app.jobs.busy)


async def test_jobs_end_if_their_owner_is_gone_without_a_word() -> None:
    app = Owner()
    async with app.run_test():
        jobs = Jobs(app, "forgotten")
    waiting = jobs.do(lambda _: None, delay=60)
    jobs.do(lambda _: "nobody takes it", app.bring)
    await until(lambda: not waiting.running)
    assert app.brought == []


def test_finishing_runs_what_waits_in_order_and_forgets_what_is_delayed() -> None:
    jobs = Jobs(None, "writing")
    written: list[int] = []
    for number in range(20):
        jobs.do(lambda _, number=number: written.append(number))
    beat = jobs.do(lambda _: written.append(-1), delay=60)
    assert jobs.finish(5)
    assert written == list(range(20))
    assert not beat.running
    assert not jobs.do(lambda _: written.append(-2)).running


async def test_what_must_be_kept_is_done_before_stop_returns() -> None:
    owner, gate, kept = Owner(), threading.Event(), list[str]()
    async with owner.run_test():
        owner.jobs.do(lambda job: gate.wait(), owner.bring)
        owner.jobs.do(lambda job: kept.append("dropped"))
        owner.jobs.do(lambda job: kept.append("label"), owner.bring, keeps=True)
        threading.Timer(0.1, gate.set).start()
        owner.jobs.stop()
        assert kept == ["label"]
        owner.jobs.do(lambda job: kept.append("too late"), keeps=True)
    assert kept == ["label"]
    assert owner.brought == []


async def test_a_repeated_job_reports_a_failure_once_until_it_succeeds_or_fails_otherwise() -> None:
    async with Owner().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Owner)
        turns = ["away", "away", "", "", "away", "other", "away", "away", "away"]

        def look(_: Job) -> str:
            problem = turns.pop() if turns else "end"
            if problem not in ("", "end"):
                raise UserError(problem)
            return problem

        app.jobs.repeat(0.001, look, app.bring)
        await until(lambda: "end" in map(str, app.brought))
        shown = [str(one) for one in app.brought if one != "end"]
        assert shown == ["away", "other", "away", "", "", "away"]
