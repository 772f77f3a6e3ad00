"""Lists and removes what gistpoint caches, such as environments and images, and what dead programs left."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.unfinished import leftovers_below, remove_whole, scratch_leftovers
from gistpoint.sandbox.cache import last_used, remove_frozen
from gistpoint.sandbox.layout import leftovers, remove_leftovers

if TYPE_CHECKING:
    from gistpoint.sandbox.backends.docker.engine import Engine

_FROZEN = {"environment": "environments", "wheel": "wheels", "runtime": "runtimes"}
_PLAIN = {"library": "libraries", "task of a cluster": "cluster-tasks", "task of a study": "study-tasks"}


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One item in the caches, or one folder that a dead program left behind."""

    kind: str
    """The kind of item: `environment`, `wheel` (built here), `runtime`, `library`, `image`, `leftover`, or a
    task that was unpacked for a cluster or a study.
    """
    name: str
    size: int
    """The number of bytes on disk; for an image, the engine's figure."""
    place: str


def kept(cache: Path, homes: Sequence[Path] = (), unused_s: float = 0.0) -> tuple[StoredItem, ...]:
    """Return the items that `clean` would remove; an engine that does not answer is skipped.

    The cache's locks and lists and leftover containers, which `clean` also removes, are not listed. `homes`
    are folders in which killed processes may have left unfinished files. If `unused_s` is positive, an item
    of the caches is returned only if it was not used for that many seconds, and no images are returned,
    because their last use is not known. Leftovers are always returned.
    """
    found = [
        StoredItem(kind, folder.name, _size(folder), str(folder))
        for kind, place in (_FROZEN | _PLAIN).items()
        for folder in sorted((cache / place).glob("*"))
        if folder.is_dir() and _is_unused(folder, unused_s)
    ]
    found += [
        StoredItem("leftover", folder.name, _size(folder), str(folder))
        for folder in (*leftovers(), *scratch_leftovers(), *leftovers_below(homes))
    ]
    engine = None if unused_s else _engine()
    if engine is not None:
        found += _images(engine)
    return tuple(found)


def clean(cache: Path, homes: Sequence[Path] = (), unused_s: float = 0.0) -> tuple[StoredItem, ...]:
    """Remove the items that `kept` lists, as far as possible, and return those removed.

    This must not be called while a run is under way, unless `unused_s` is longer than any run.
    """
    before = kept(cache, homes, unused_s)
    _remove_folders(cache, unused_s)
    remove_leftovers()
    for left in (*scratch_leftovers(), *leftovers_below(homes)):
        remove_whole(left)
    engine = None if unused_s else _engine()
    if engine is not None:
        from gistpoint.sandbox.backends.docker.containers import remove_leftovers as remove_containers
        from gistpoint.sandbox.backends.docker.images import remove_images

        remove_containers(engine)
        remove_images(engine)
    # Only what is really gone is reported, because every removal above ignores errors.
    after = {(item.kind, item.place) for item in kept(cache, homes, unused_s)}
    return tuple(item for item in before if (item.kind, item.place) not in after)


def _remove_folders(cache: Path, unused_s: float) -> None:
    """Remove what was not used for `unused_s` seconds; if that is 0, also the cache's locks and lists."""
    for entry in _entries(cache, _FROZEN):
        if entry.is_dir() and _is_unused(entry, unused_s):
            remove_frozen(entry)  # the folders are read-only, so rmtree alone would fail
        elif not entry.is_dir() and not unused_s:
            entry.unlink(missing_ok=True)
    for entry in _entries(cache, _PLAIN):
        if entry.is_dir() and _is_unused(entry, unused_s):
            shutil.rmtree(entry, ignore_errors=True)


def _entries(cache: Path, places: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files and folders in some folders of the cache; `places` has their names."""
    return chain.from_iterable((cache / place).glob("*") for place in places.values())


def _is_unused(folder: Path, seconds: float) -> bool:
    return time.time() - last_used(folder) >= seconds


def _engine() -> Engine | None:
    from gistpoint.sandbox.backends.docker.engine import EngineError, connect

    try:
        return connect()
    except EngineError:
        return None


def _images(engine: Engine) -> list[StoredItem]:
    from gistpoint.sandbox.backends.docker.images import KIND

    return [
        StoredItem(
            "image", str((image.tags or [image.short_id])[0]), int(image.attrs.get("Size", 0)), str(image.id)
        )
        for image in engine.client.images.list(filters={"label": KIND})
    ]


def _size(folder: Path) -> int:
    # Blocks, not lengths, because removing a sparse or tiny file frees its blocks.
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += Path(place, name).lstat().st_blocks * 512
    if folder.is_file():
        total = folder.lstat().st_blocks * 512
    return total
