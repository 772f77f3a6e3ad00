"""Makes declared types known to msgspec before several threads convert values to them.

At the first use of a type, msgspec (0.22) collects information about the type and the types of its members.
If two threads do so at the same time, the process crashes, so only one does it at a time.
"""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import msgspec

Kind = TypeVar("Kind")
_LOCK = Lock()
_KNOWN: set[object] = set()


def decodable(kind: Kind) -> Kind:
    """Return a type after msgspec has collected the necessary information about it.

    Every type that is given to msgspec passes through here.
    """
    if kind not in _KNOWN:
        with _LOCK:
            msgspec.json.Decoder(kind)
            _KNOWN.add(kind)
    return kind
