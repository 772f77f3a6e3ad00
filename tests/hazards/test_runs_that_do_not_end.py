"""A run that reaches its time limit is a result like any other, and leaves nothing behind."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from tiny_tasks import Maker, Submit

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.tasks.model import Task

FILES = {
    "calc.py": "def double(x):\n    return x * 2\n",
    "tests/test_double.py": "from calc import double\n\n\n"
    + "".join(f"def test_{n}():\n    assert double({n}) == {2 * n}\n\n\n" for n in range(1, 4)),
}
LIMIT_S = 4.0


def limited(maker: Maker, task: Task) -> Attempt:
    """Start an attempt with a short time limit, which normal runs keep even on a busy machine."""
    return maker.attempt(task, timeout_s=max(LIMIT_S, 8 * task.suite.seconds))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_time_limit_in_discovery_is_answered_and_the_attempt_goes_on(maker: Maker) -> None:
    task = maker.task(FILES, "calc.py::double", "def double(x):\n    return x * 2 + 1\n")
    attempt = limited(maker, task)
    arguments = {"func_name": "double", "file_path": "calc.py"}
    text = attempt.call(
        "replace_function", {"func_code": "def double(x):\n    while True: pass", **arguments}
    ).text
    assert text.startswith("The tests were stopped at their time limit")
    assert text.count("time limit") == 1
    assert "Score 0." in text
    last = attempt.state.last
    assert last is not None
    assert (last.status, last.score, last.failing) == ("timed_out", 0.0, ())
    attempt.call("replace_function", {"func_code": "def double(x):\n    return x + x", **arguments})
    assert attempt.state.solved


@pytest.mark.parametrize(
    "start", ["subprocess.Popen({command})", "subprocess.Popen({command}, start_new_session=True)"]
)
def test_children_are_ended_with_the_run(plain: Maker, submit: Submit, tmp_path: Path, start: str) -> None:
    told = tmp_path / "pids"
    command = "['sleep', '300']"
    code = f"""def double(x):
    import subprocess, time
    child = {start.format(command=command)}
    with open({str(told)!r}, "a") as file:
        file.write(f"{{child.pid}}\\n")
    time.sleep(300)
"""
    attempt = limited(plain, plain.task(FILES, "calc.py::double"))
    assert "time limit" in submit(attempt, code)
    pids = [int(line) for line in told.read_text().split()]
    assert pids
    for pid in pids:
        for _ in range(50):
            if not alive(pid):
                break
            time.sleep(0.1)
        assert not alive(pid)


def test_run_after_a_stopped_one_starts_afresh(maker: Maker, submit: Submit) -> None:
    attempt = limited(maker, maker.task(FILES, "calc.py::double"))
    stop = "def double(x):\n    if x == 3:\n        import time; time.sleep(300)\n    return 2 * x\n"
    submit(attempt, stop)
    assert not attempt.state.solved
    assert "0 of 3 tests pass" in submit(attempt, "def double(x):\n    return None\n")
    submit(attempt, "def double(x):\n    return 2 * x\n")
    assert attempt.state.solved


def test_stopped_run_leaves_no_file(
    plain: Maker, submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = limited(plain, plain.task(FILES, "calc.py::double"))
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    submit(attempt, "def double(x):\n    import time; time.sleep(300)\n")
    assert not list(place.iterdir())
