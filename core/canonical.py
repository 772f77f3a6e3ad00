"""The canonical form of JSON values, so that equal values have equal hashes everywhere."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Return `value` as JSON with sorted keys, no spaces and non-ASCII text escaped.

    Raises `ValueError` for NaN and infinite numbers.
    """
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256_of_text(text: str) -> str:
    """Return the hexadecimal sha256 of `text` in UTF-8, with lone surrogates kept."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sha256_of_json(value: Any) -> str:
    """Return the hexadecimal sha256 of `canonical_json(value)`; raises `ValueError` as that does."""
    return sha256_of_text(canonical_json(value))
