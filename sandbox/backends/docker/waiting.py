"""The next container, started while nobody waits for it: used once, then there is another."""

from __future__ import annotations

import threading

from gistpoint.sandbox.backends.docker.containers import Container, Settings, start
from gistpoint.sandbox.backends.docker.engine import Engine, EngineError, engine_errors


class WaitingContainer:
    """Holds at most one started container; what is removed or prepared in the background is waited for by `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: tuple[Settings, Container] | None = None
        self._preparing = False
        self._closed = False
        self._workers: set[threading.Thread] = set()

    def take(self, engine: Engine, settings: Settings) -> Container | None:
        """Return the container that waits, if it was made for `settings` on `engine`."""
        with self._lock:
            held, self._ready = self._ready, None
        if held is None:
            return None
        if held[0] == settings and held[1].engine is engine:
            return held[1]
        held[1].discard()
        return None

    def replace(self, used: Container, settings: Settings, *, next_one: bool) -> None:
        """Remove a used container and prepare the next one, in the background."""
        worker = threading.Thread(target=self._replace, args=(used, settings, next_one), name="container-next")
        with self._lock:
            self._workers = {known for known in self._workers if known.is_alive()} | {worker}
        worker.start()

    def close(self) -> None:
        """Remove what waits, and wait until everything is removed. More can be taken and replaced afterwards."""
        with self._lock:
            self._closed = True
            workers = set(self._workers)
        for worker in workers:
            if worker is not threading.current_thread() and worker.ident is not None:
                worker.join()
        with self._lock:
            held, self._ready, self._closed = self._ready, None, False
        if held is not None:
            held[1].discard()

    def _replace(self, used: Container, settings: Settings, next_one: bool) -> None:
        used.discard()
        with self._lock:
            if not next_one or self._ready is not None or self._preparing or self._closed:
                return
            self._preparing = True
        made: Container | None = None
        try:
            with engine_errors(used.engine.address):
                made = start(used.engine, settings)
        except EngineError:
            return  # the next run says so, if it is still true by then
        finally:
            with self._lock:
                self._preparing = False
                if made is not None and self._ready is None and not self._closed:
                    self._ready, made = (settings, made), None
            if made is not None:
                made.discard()
