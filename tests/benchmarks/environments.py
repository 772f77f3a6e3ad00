"""Times pinning, building and finding environments of real libraries, with uv's cache empty and full.

usage: python tests/benchmarks/environments.py [NAME==VERSION[,EXTRA...]]...
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gistpoint.core.pins import EnvironmentPins
from gistpoint.sandbox.cache import remove_frozen
from gistpoint.sandbox.environments.resolver import UvResolver
from gistpoint.sandbox.environments.sources import Fetcher
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose

LIBRARIES = (
    "toolz==1.2.0",
    "boltons==26.2.0",
    "jinja2==3.1.6,trio",
    "click==8.5.1",
    "tabulate==0.10.0,wcwidth",
)
T = TypeVar("T")


def timed(action: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    value = action()
    return value, time.perf_counter() - started


def measured(source: str, extra: tuple[str, ...], scratch: Path) -> tuple[float, float, float, int]:
    os.environ["UV_CACHE_DIR"] = str(scratch / "uv")
    _, folder = Fetcher().fetch(source, scratch / "source")
    backend = choose(None, consented=False)
    cold_store, warm_store = EnvironmentStore(scratch / "cold"), EnvironmentStore(scratch / "warm")

    def pinned() -> EnvironmentPins:
        return UvResolver(cold_store, backend).resolve(
            folder, extra_requirements=extra, exclude_newer=None, pytest_args=()
        )

    pins, cold = timed(pinned)
    _, warm = timed(lambda: warm_store.get(pins, backend))
    _, again = timed(lambda: warm_store.get(pins, backend))
    for made in scratch.glob("*/environments/*"):
        if made.is_dir():
            remove_frozen(made)
    return cold, warm, again, len(pins.lock)


def main(libraries: tuple[str, ...]) -> None:
    print("library | pins and builds, cold s | build, uv's cache warm s | found again s | packages")
    for library in libraries:
        source, *extra = library.split(",")
        with tempfile.TemporaryDirectory() as name:
            cold, warm, again, packages = measured(source, tuple(extra), Path(name))
        print(f"{source} | {cold:.2f} | {warm:.2f} | {again:.4f} | {packages}")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or LIBRARIES)
