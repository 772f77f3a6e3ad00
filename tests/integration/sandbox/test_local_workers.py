"""The processes of a campaign end with it, whatever they are doing."""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from gistpoint.sandbox import pools


@pytest.mark.slow
def test_a_job_that_does_not_listen_holds_nothing_up() -> None:
    with pools.local_workers(1) as workers:
        first: Future[float] = workers.executor.submit(time.monotonic)
        first.result()
        busy: Future[None] = workers.executor.submit(time.sleep, 600)
        while not busy.running():
            time.sleep(0.01)
        time.sleep(0.5)
    assert isinstance(busy.exception(), BrokenProcessPool)
