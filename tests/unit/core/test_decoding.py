"""Threads may use a declared type for the first time at the same moment."""

from __future__ import annotations

import subprocess
import sys

from gistpoint.core.decoding import decodable

RACE = """
import sys, threading
from dataclasses import dataclass
import msgspec
from gistpoint.core.decoding import decodable

def kinds():
    @dataclass(frozen=True)
    class Usage:
        tokens: int = 0
        cost: float | None = None

    class Call(msgspec.Struct, frozen=True):
        name: str = ""

    class Turn(msgspec.Struct, frozen=True):
        usage: Usage
        calls: tuple[Call, ...] = ()

    return Turn, Call

sys.setswitchinterval(1e-6)
for _ in range(300):
    turn, call = kinds()
    barrier = threading.Barrier(4)

    def work(number):
        barrier.wait()
        kind, value = (turn, {"usage": {"tokens": 1}, "calls": [{"name": "a"}]}) if number else (call, {"name": "a"})
        assert msgspec.convert(value, decodable(kind)) is not None

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("done")
"""


def test_types_are_collected_by_one_thread_at_a_time() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RACE], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_any_type_is_returned_as_it_is() -> None:
    for kind in (int, list[int], int | str, dict[str, tuple[int, ...]]):
        assert decodable(kind) is kind
