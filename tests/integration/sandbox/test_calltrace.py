"""The tracer, run as in a target: by a separate interpreter, as a plugin of pytest."""

import os
import subprocess
import sys
from pathlib import Path

import gistpoint.sandbox
from gistpoint.core.callgraph import build_call_graph, read_calls, resolve_calls

LIBRARY = """\
import threading
from dataclasses import dataclass

@dataclass
class Point:
    x: int

    def __post_init__(self):
        check(self.x)

def check(x):
    return x

def numbers():
    yield check(1)
    yield check(2)

def run():
    Point(1)
    list(map(lambda n: check(n), numbers()))
    for _ in numbers():
        pass
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()

def in_thread():
    check(3)
"""


def test_a_run_is_recorded_call_by_call(tmp_path: Path) -> None:
    package, record = tmp_path / "pkg", tmp_path / "calls.jsonl"
    package.mkdir()
    (package / "library.py").write_text(LIBRARY)
    (tmp_path / "test_it.py").write_text("from pkg.library import run\n\ndef test():\n    run()\n")
    tracer = Path(gistpoint.sandbox.__file__).parent / "payload"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tracer), str(tmp_path)]),
        "GISTPOINT_CALLS_ROOT": str(package),
        "GISTPOINT_CALLS_OUT": str(record),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "calltrace",
        "-p",
        "no:cacheprovider",
        "test_it.py",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    graph = build_call_graph({"library.py": LIBRARY.encode()})
    calls = resolve_calls(graph, read_calls(record.read_text().splitlines()))
    counted = {
        (a.partition("::")[2], b.partition("::")[2]): count for a, b, count in calls if "<module>" not in a
    }
    assert counted == {
        ("run", "Point.__post_init__"): 1,
        ("Point.__post_init__", "check"): 1,
        ("run", "numbers"): 2,
        ("numbers", "check"): 4,
        ("run", "check"): 2,
        ("in_thread", "check"): 1,
    }
