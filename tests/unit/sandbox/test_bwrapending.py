"""Waits for the end of a process namespace: with a handle on its first process, on old kernels by polling."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from gistpoint.sandbox.backends.bubblewrap import BubblewrapCall, namespace_end

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap works only on Linux")


@pytest.mark.parametrize("handles", [True, False])
def test_leaves_only_when_the_first_process_has_ended(handles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not handles:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        plan, killed = BubblewrapCall(None), threading.Event()

        def kill() -> None:
            killed.set()
            process.kill()

        with namespace_end(plan):
            assert plan.arguments == ["--info-fd", str(plan.descriptors[0])]
            os.write(plan.descriptors[0], json.dumps({"child-pid": process.pid}).encode())
            plan.close()
            threading.Timer(0.3, kill).start()
        assert killed.is_set()


@pytest.mark.parametrize("told", [b"", b"{", b"[]", b'{"child-pid": "x"}', b'{"child-pid": 4194304}'])
def test_a_namespace_that_came_to_nothing_is_no_error(told: bytes) -> None:
    plan = BubblewrapCall(None)
    with namespace_end(plan):
        os.write(plan.descriptors[0], told)
        plan.close()
    assert plan.arguments == ["--info-fd", str(plan.descriptors[0])]
