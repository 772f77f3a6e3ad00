from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gistpoint.core.running import NEVER
from gistpoint.sandbox.backends import process as backend_process
from gistpoint.sandbox.backends.base import Stop
from gistpoint.sandbox.backends.process import ResultLines, Tail, follow, result_pipe
from gistpoint.sandbox.backends.resources import DiskWatch, descendants, memory_of_tree, waiting_of_tree
from gistpoint.sandbox.limits import RunLimits, suite_timeout


def test_tail_keeps_the_end_and_says_what_is_lost():
    tail = Tail(10)
    for chunk in (b"0123456789", b"abc", b"", b"def"):
        if chunk:
            tail.add(chunk)
    assert tail.text() == "[6 bytes before this are not kept]\n6789abcdef"


def test_tail_that_fits_is_whole():
    tail = Tail(10)
    tail.add("äö".encode())
    assert tail.text() == "äö"


def test_tail_replaces_what_is_no_text():
    tail = Tail(10)
    tail.add(b"a\xffb")
    assert tail.text() == "a\ufffdb"


def test_lines_come_whole_and_only_after_the_ready_line():
    seen: list[bytes] = []
    lines = ResultLines(RunLimits(), seen.append)
    for chunk in (b"noise\n", b'{"e":"rea', b'dy"}\n{"a"', b":1}\n{}\n{", b"}"):
        lines.add(chunk)
    assert seen == [b'{"a":1}', b"{}"]
    assert lines.ready


def test_lines_stop_at_their_limits():
    long, many = ResultLines(RunLimits(result_line=100), print), ResultLines(RunLimits(results=100), print)
    long.add(b"x" * 101)
    many.add(b"x\n" * 51)
    assert long.too_many
    assert many.too_many


@pytest.mark.parametrize(("size", "stop"), [(2 << 20, Stop.TOO_MUCH_DISK), (1 << 10, Stop.EXITED)])
def test_what_a_command_leaves_on_the_disk_counts_however_fast_it_came(tmp_path, size, stop):
    code = f"""
import os, sys
os.write(int(sys.argv[1]), b'{{"e":"ready"}}\\n')
open('left', 'wb').write(os.urandom({size}))
"""
    with result_pipe() as pipe:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(pipe.writing)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            pass_fds=(pipe.writing,),
        )
        watch = DiskWatch(tmp_path, process.pid, 1 << 20)
        watch._next = math.inf  # no check comes in time
        pipe.close_writing()
        with process:
            ended = follow(
                process,
                pipe.reading,
                timeout_s=60,
                limits=RunLimits(),
                on_line=print,
                cancel=NEVER,
                kill=process.kill,
                watch=watch,
            )
    assert (ended.stop, ended.exit_code) == (stop, 0 if stop is Stop.EXITED else None)


@pytest.mark.parametrize(
    ("waits", "patience", "stop"),
    [
        (True, 10.0, Stop.EXITED),
        (True, 1.0, Stop.TIMED_OUT),
        (True, 1.5, Stop.TIMED_OUT),
        (False, 10.0, Stop.TIMED_OUT),
    ],
)
def test_the_limit_of_a_run_moves_by_the_time_it_waits_for_a_processor(monkeypatch, waits, patience, stop):
    began = time.monotonic()
    monkeypatch.setattr(backend_process, "_WAITING_TICK_S", 0.05)
    monkeypatch.setattr(
        backend_process, "waiting_of_tree", lambda pid: time.monotonic() - began if waits else 0.0
    )
    code = """
import os, sys, time
os.write(int(sys.argv[1]), b'{"e":"ready"}\\n')
time.sleep(1.5)
"""
    with result_pipe() as pipe:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(pipe.writing)], stdout=subprocess.PIPE, pass_fds=(pipe.writing,)
        )
        pipe.close_writing()
        with process:
            ended = follow(
                process,
                pipe.reading,
                timeout_s=0.5,
                limits=RunLimits(),
                on_line=print,
                cancel=NEVER,
                kill=process.kill,
                patience=patience,
            )
    assert ended.stop is stop
    assert (ended.waited > 0) == (waits and patience > 1)
    assert ended.waited <= ended.seconds


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not report it")
def test_a_process_without_a_processor_waits_and_one_that_sleeps_does_not():
    """Two processes on one processor wait for each other; the time depends on the machine's load."""
    alone = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})"
    compute = f"{alone}; print('.', flush=True)\nwhile True: pass"
    sleep = "import time; print('.', flush=True); time.sleep(60)"
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        for code in (compute, compute, sleep)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"."
        first, second, asleep = (waiting_of_tree(process.pid) for process in started)
        time.sleep(2)
        gained = [waiting_of_tree(process.pid) for process in started]
        assert gained[0] - first + gained[1] - second > 0.5
        assert gained[2] - asleep < 0.2
    finally:
        for process in started:
            process.kill()
            process.communicate()
    assert waiting_of_tree(started[0].pid) == 0.0


def test_suite_timeout_has_a_floor():
    assert (suite_timeout(0.5), suite_timeout(20)) == (10.0, 100.0)


def test_memory_of_a_tree_sees_grandchildren():
    child = "import time; held = bytearray(b'x') * 80_000_000; print('.', flush=True); time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"."
            assert len(descendants(process.pid)) == 2
            assert 80_000_000 < memory_of_tree(process.pid, enough=0) < 200_000_000
        finally:
            for pid in reversed(descendants(process.pid)):
                subprocess.run(["kill", "-9", str(pid)], check=False)
    deadline = time.monotonic() + 120
    while memory_of_tree(process.pid, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert memory_of_tree(process.pid, enough=0) == 0
