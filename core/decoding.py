"""Makes declared types known to msgspec before values are converted to them in several threads.

At the first use of a type, msgspec (0.22) collects what it has to know about it and its members' types. Two
threads that do so at the same time crash the process, so one does it at a time.
"""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import msgspec

Kind = TypeVar("Kind")
_LOCK = Lock()
_KNOWN: set[object] = set()


def decodable(kind: Kind) -> Kind:
    """Return a type after msgspec has collected what it has to know about it.

    Every type that is given to msgspec passes through here.
    """
    if kind not in _KNOWN:
        with _LOCK:
            msgspec.json.Decoder(kind)
            _KNOWN.add(kind)
    return kind
