"""Runs the process that answers with the submitted functions, and contains no test (decision 113)."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import select
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.confirmation.differences import FunctionName
from gistpoint.core.confirmation.model import Unconfirmable
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import CancelToken
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Environment, Invocation, Stop
from gistpoint.sandbox.layout import (
    MountPaths,
    after_build_steps,
    fill_control,
    lay_out,
    reporting_environment,
    roots_in,
    run_folder,
)
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.sealing import packed
from gistpoint.sandbox.testruns import tools_of

CALL_LIMIT_S = 2.0
"""The time limit of one answer on an idle machine."""
_MOST_SLOWDOWN = 10.0
_SLOWDOWN_SAMPLE_S = 0.03
"""The processor time over which the machine's slowdown is measured."""
_BEGIN_S = 30.0
"""The time limit for starting the process, and for importing a function's module."""
_LIFE_S = 86_400.0
_RESULTS = 1 << 31
_TICK_S = 0.05
_MOST_UNREAD = 100
"""The maximum number of lines that wait to be read; an honest process writes one for each request."""
_ENDING_S = 30.0
_SERVER = "submission_server.py"
FILES = {
    _SERVER: _SERVER,
    "gistpoint_plain.py": "plain_data.py",
    "gistpoint_parts.py": "plain_parts.py",
    "gistpoint_sides.py": "plain_sides.py",
    "gistpoint_functions.py": "raw_functions.py",
    "gistpoint_library.py": "library_state.py",
    "gistpoint_state.py": "process_state.py",
    "gistpoint_surroundings.py": "surroundings.py",
}


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The place where processes run: a backend, an environment on it, its pins, and the limits of runs."""

    backend: Backend
    environment: Environment
    pins: EnvironmentPins
    limits: RunLimits


class SubmissionProcess:
    """A process that answers requests with the functions of one tree; this object is not thread-safe."""

    def __init__(
        self, place: RunPlace, tree: SourceTree, functions: Sequence[FunctionName], *, hash_seed: int = 0
    ) -> None:
        self._place = place
        self._tree = tree
        self._functions = functions
        self._hash_seed = hash_seed
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._cancel = CancelToken()
        self._reading, self._writing = os.pipe()
        # A submission may stop reading; a blocking write would then hang this process too.
        os.set_blocking(self._writing, False)
        self._thread = threading.Thread(target=self._serve, name="submission", daemon=True)
        self._answered = 0
        self._loaded: set[object] = set()
        self.ended: Ended | None = None
        self.is_late = False
        """Whether an answer did not come in time, although the process had not ended."""
        self._thread.start()

    def answer(self, line: bytes, limit_s: float = CALL_LIMIT_S) -> bytes | None:
        """Return the line that answers a request; None if none came in time, or if the process has ended.

        After None, all later answers are None: a late line would otherwise answer the next request.
        """
        if self.is_late:
            return None
        found = self._answer_of(line, limit_s)
        self.is_late = found is None and self.ended is None
        return found

    def _answer_of(self, line: bytes, limit_s: float) -> bytes | None:
        if not self._answered and self._received(_BEGIN_S) is None:
            return None
        self._answered += 1
        deadline = time.monotonic() + limit_s
        return self._received(limit_s) if self._send(line + b"\n", deadline) else None

    def answer_call(self, request: Mapping[str, object]) -> bytes | None:
        """Return the answer to a request, after loading the function's module; None as for `answer`."""
        function = request.get("function") if request["do"] == "call" else None
        if function is not None and function not in self._loaded:
            self._loaded.add(function)
            # Loaded first, with the time limit of a start, because an import must not count towards the time
            # limit of an answer.
            loading = {"do": "load", "function": function, "module": request["module"]}
            if self.answer(json.dumps(loading).encode(), _BEGIN_S) is None:
                return None
        return self.answer(json.dumps(request).encode())

    def close(self) -> None:
        """End the process with all of its children, and wait for that, up to 30 seconds."""
        self._cancel.cancel()
        self._thread.join(_ENDING_S)
        for descriptor in (self._reading, self._writing):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _received(self, seconds: float) -> bytes | None:
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            pass
        # On a busy machine, an honest answer can be late because its process hardly ran (decision 146).
        try:
            return self._lines.get(timeout=seconds * (slowdown() - 1))
        except queue.Empty:
            return None

    def _send(self, data: bytes, deadline: float) -> bool:
        while data and time.monotonic() < deadline:
            if self.ended is not None:
                return False
            if select.select([], [self._writing], [], _TICK_S)[1]:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(self._writing, data) :]
        return not data

    def _serve(self) -> None:
        place, pins = self._place, self._place.pins
        try:
            with run_folder() as base:
                lay_out(self._tree, base / "tree")
                fill_control(base / "control", pins, FILES)
                self._send(packed(self._order()), time.monotonic() + _BEGIN_S)
                command = Command(
                    tree=base / "tree",
                    environment=place.environment,
                    invocation=self._invocation,
                    timeout_s=_LIFE_S,
                    folders={"control": base / "control"},
                    limits=replace(place.limits, results=_RESULTS),
                    requests=self._reading,
                    shows=tools_of(pins, place.environment),
                )
                self.ended = place.backend.run(command, on_line=self._take, cancel=self._cancel)
        except Exception as error:  # passed on to the thread that waits for an answer
            self.ended = Ended(Stop.NOT_STARTED, None, "", 0.0, reason=str(error))
        finally:
            self._lines.put(None)

    def _take(self, line: bytes) -> None:
        """Keep a line until it is read; end a process that writes more lines than it was asked for."""
        if self._lines.qsize() < _MOST_UNREAD:
            self._lines.put(line)
        else:
            self._cancel.cancel()

    def _order(self) -> dict[str, object]:
        return {"functions": [[function.path, function.qualname] for function in self._functions]}

    def _invocation(self, places: MountPaths) -> Invocation:
        pins = self._place.pins
        arguments = [places.python, f"{places.folders['control']}/{_SERVER}"]
        roots = dict.fromkeys((*roots_in(places.workspace, pins), places.workspace))
        environment = reporting_environment(places, self._hash_seed, roots)
        return Invocation(tuple(after_build_steps(places, pins, arguments)), environment)


def slowdown() -> float:
    """Return how many times longer work takes now than on an idle machine: 1 to 10."""
    begun, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < _SLOWDOWN_SAMPLE_S:
        pass
    return max(1.0, min((time.monotonic() - begun) / _SLOWDOWN_SAMPLE_S, _MOST_SLOWDOWN))


_DEEPEST = 500
"""The deepest nesting of lists in an answer; honest answers are nested far less deeply."""


def parsed(line: bytes | None) -> dict[str, Any] | None:
    """Return an answer as a dictionary; None if the line is missing or invalid.

    The submission can write anything.
    """
    try:
        found = json.loads(line or b"null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and _is_answer(found) else None


def _is_answer(found: Mapping[str, Any]) -> bool:
    """Whether an answer has the form that all of its readers rely on."""
    roots, heap = found.get("roots", []), found.get("heap", {})
    is_message = isinstance(found.get("re"), str) and isinstance(roots, list) and isinstance(heap, dict)
    if not is_message or not all(map(_is_node, heap.values())):
        return False
    needs_value = found["re"] in ("value", "raised", "stop")
    if needs_value and not roots:
        return False
    # `int` also reads `+2` and ` 2`: with these, the tests' process would change an object, and a
    # comparison of the messages as written would not notice.
    if not all(map(_NUMBER.fullmatch, heap)):
        return False
    words, reason = found.get("words", ""), found.get("reason", Unconfirmable.SANDBOX.value)
    is_explained = isinstance(words, str) and isinstance(reason, str) and reason in _REASONS
    # Deep nesting would exhaust the stack of the code that reads the answer.
    return is_explained and _is_shallow(found)


def _is_node(node: object) -> bool:
    """Whether a node has the parts on which its readers rely."""
    if not isinstance(node, list) or len(node) < 2 or not isinstance(node[0], str):
        return False
    parts = _PARTS.get(node[0], ())
    return not parts or (len(node) == len(parts) and all(map(isinstance, node, parts)))


def _is_shallow(found: object) -> bool:
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        level = [
            part
            for value in level
            if isinstance(value, (list, dict))
            for part in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return True
    return False


_REASONS = frozenset(reason.value for reason in Unconfirmable)
_NUMBER = re.compile(r"-?[1-9][0-9]*")
"""An object's number as an honest process writes it."""
_PARTS: Mapping[str, tuple[type, ...]] = {
    "object": (str, str, dict, str, object),
    "exception": (str, str, object, dict, object, str, object),
    **dict.fromkeys(("list", "set", "dict", "ordered", "counter", "namespace"), (str, list)),
    "default": (str, list, object),
    "deque": (str, list, object),
}
"""The types of the parts of a node, by its kind; others have no parts that are read here."""
