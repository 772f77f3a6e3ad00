"""A process that has collected the suite, kept in isolation, and the conversation with it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import select
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError
from gistpoint.core.ports import EnvironmentPins
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Environment, Invocation, Places, Stop
from gistpoint.sandbox.limits import Limits
from gistpoint.sandbox.runfolders import run_folder
from gistpoint.sandbox.sealing import NOTHING_SECRET, packed
from gistpoint.sandbox.testruns import fill_control, invoke_pytest, tools_of
from gistpoint.sandbox.workspaces import lay_out

if TYPE_CHECKING:
    from gistpoint.sandbox.candidates.orders import Order

_FILES = {
    "gistpoint_warm.py": "warm_plugin.py",
    "gistpoint_results.py": "results_plugin.py",
    "gistpoint_code_swap.py": "code_swap.py",
    "gistpoint_pristine.py": "pristine.py",
}
_LIFE_S = 7 * 86400.0
_RESULTS = 1 << 40
_TICK_S = 0.05
_GRACE_S = 10.0
_ENDING_S = 30.0


class ServerGoneError(Exception):
    """The process is no longer there, or of no use; `ended` says how it went, None where that is not known."""

    def __init__(self, ended: Ended | None, message: str = "The warm process does not answer.") -> None:
        gone = "" if ended is None else f"The warm process is gone: {ended.stop}. {ended.reason}".strip()
        super().__init__(gone or message)
        self.ended = ended


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one candidate may use: seconds, and bytes beyond those of the process itself."""

    wall: float
    memory: int


class WarmSuite:
    """The collected suite of one tree. Not for several threads at once."""

    def __init__(
        self, backend: Backend, environment: Environment, tree: SourceTree, pins: EnvironmentPins, limits: Limits
    ) -> None:
        self._backend = backend
        self._environment = environment
        self._tree = tree
        self._pins = pins
        self._limits = replace(limits, results=_RESULTS)
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._records: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._cancel = CancelToken()
        self._ended: Ended | None = None
        self._thread = threading.Thread(target=self._serve, name="warm-suite", daemon=True)
        self.ids: list[str] = []

    def start(self, timeout_s: float, cancel: CancelToken | None) -> None:
        """Start, and wait until the suite is collected; raises `ServerGoneError` or `CancelledError` where it isn't."""
        self._thread.start()
        for record in self._received(time.monotonic() + timeout_s, cancel):
            if record["e"] == "items":
                self.ids += record["ids"]
            elif record["e"] == "unfit":
                raise ServerGoneError(None, record["text"])
            elif record["e"] == "warm":
                return

    def ask(
        self,
        order: Order | None,
        tests: Collection[str],
        bounds: Bounds,
        *,
        stop_after: int | None = None,
        backwards: bool = False,
        cancel: CancelToken | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the records of `tests` on `order`, on the original where there is none; `end` is the last.

        Raises `ServerGoneError` and `CancelledError`; after either, the process is of no more use.
        """
        wanted = frozenset(tests)
        numbers = [number for number, id in enumerate(self.ids) if id in wanted]
        request = {
            "files": {path: base64.b64encode(data).decode() for path, data in order.files.items()} if order else {},
            "swaps": [[swap.path, swap.line, swap.name, swap.source] for swap in order.swaps] if order else [],
            "moves": [[move.path, move.below, move.lines] for move in order.moves] if order else [],
            "select": numbers[::-1] if backwards else numbers,
            "stop_after": stop_after or len(self.ids) + 1,
            "wall": bounds.wall,
            "memory": bounds.memory,
        }
        self._send(json.dumps(request).encode() + b"\n")
        for record in self._received(time.monotonic() + bounds.wall + _GRACE_S, cancel):
            yield record
            if record["e"] == "end":
                return

    def close(self) -> None:
        """End it at once, and wait until nothing of it is left."""
        self._cancel.cancel()
        if self._thread.ident is not None:
            self._thread.join(_ENDING_S)
        for descriptor in (self._reading, self._writing):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._reading = self._writing = -1

    def _send(self, data: bytes) -> None:
        while data:
            if self._ended is not None:
                raise ServerGoneError(self._ended)
            if select.select([], [self._writing], [], _TICK_S)[1]:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(self._writing, data) :]

    def _received(self, deadline: float, cancel: CancelToken | None) -> Iterator[dict[str, Any]]:
        while True:
            try:
                record = self._records.get(timeout=_TICK_S)
            except queue.Empty:
                if time.monotonic() > deadline:
                    raise ServerGoneError(None) from None
            else:
                if record is None:
                    raise ServerGoneError(self._ended)
                yield record
            if cancel is not None and cancel.cancelled:
                raise CancelledError("Stopped at your request.")

    def _serve(self) -> None:
        try:
            with run_folder() as base:
                lay_out(self._tree, base / "tree")
                program = fill_control(base / "control", self._pins, _FILES)
                self._send(packed(NOTHING_SECRET.order()))

                def invocation(places: Places) -> Invocation:
                    return invoke_pytest(places, self._pins, program, "gistpoint_warm.py")

                command = Command(
                    tree=base / "tree",
                    environment=self._environment,
                    invocation=invocation,
                    timeout_s=_LIFE_S,
                    folders={"control": base / "control"},
                    limits=self._limits,
                    requests=self._reading,
                    shows=tools_of(self._pins, self._environment),
                )
                self._ended = self._backend.run(command, on_line=self._take, cancel=self._cancel)
        except Exception as error:  # whoever waits for an answer is told, in the other thread
            self._ended = Ended(Stop.NOT_STARTED, None, "", 0.0, reason=str(error))
        finally:
            self._records.put(None)

    def _take(self, line: bytes) -> None:
        self._records.put(json.loads(line))
