"""Ending a run in a container: the engine is asked to kill only after all readers are gone."""

from __future__ import annotations

import os
import select
import socket
import time
from contextlib import suppress
from typing import Any

from gistpoint.core.running import NEVER
from gistpoint.sandbox.backends.base import Stop
from gistpoint.sandbox.backends.docker import backend as docker_backend
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.backends.docker.conversation import Conversation
from gistpoint.sandbox.limits import RunLimits


class Flooding:
    """A container that writes endlessly; its engine kills it only after its stream is closed."""

    def __init__(self) -> None:
        self.stream, self._inside = socket.socketpair()
        self.closed_before_kill: bool | None = None

    def kill(self) -> None:
        self.closed_before_kill = False
        self._inside.settimeout(0.2)
        with suppress(OSError):
            while self._inside.recv(1 << 16):
                pass
            self.closed_before_kill = True


def test_the_stream_is_closed_before_the_engine_is_asked_to_kill(monkeypatch: Any) -> None:
    container = Flooding()

    def stopped(conversation: Any, course: Any, **_: Any) -> None:
        course.stop = Stop.TOO_MANY_RESULTS

    class Waiting:
        def replace(self, *given: Any, **named: Any) -> None:
            pass

    monkeypatch.setattr(docker_backend, "follow", stopped)
    monkeypatch.setattr(docker_backend, "_work", lambda *given: [])
    monkeypatch.setattr(docker_backend, "_ended", lambda container, course, state, seconds: course.stop)
    backend = DockerBackend.__new__(DockerBackend)
    backend._waiting = Waiting()  # type: ignore[assignment]
    command: Any = type("Command", (), {"limits": RunLimits(), "requests": None, "timeout_s": 5.0})()
    container.engine = None  # type: ignore[attr-defined]
    ended: Any = backend._converse(container, None, command, lambda line: None, NEVER)  # type: ignore[arg-type]
    assert ended is Stop.TOO_MANY_RESULTS
    assert container.closed_before_kill


def test_a_conversation_takes_no_request_from_a_pipe_that_got_its_pipes_number() -> None:
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    conversation = Conversation(ours, [], reading)
    os.write(writing, b"first")
    assert theirs.recv(5) == b"first"
    later, request = os.pipe()
    os.dup2(later, reading)  # as if the pipe had been closed and its number reused by the next one
    os.write(request, b"second")
    time.sleep(0.6)
    assert select.select([reading], [], [], 0)[0], "the request of another conversation was taken"
    conversation.close()
    for number in (reading, writing, later, request):
        os.close(number)
    ours.close()
    theirs.close()
