"""The key of this machine, by which it recognises documents that it wrote itself (decisions 120 and 158).

It is outside the data folder, in a file that only the user can read. This module finds the file itself: if
callers had to pass the key, one that forgot to would accept unchecked files.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any

from gistpoint.core.canonical import canonical_json
from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations, read_regular
from gistpoint.core.logs import create_file

KEY = "key"
"""The file in `Locations.proofs` that contains the key of this machine."""
_KEY_TEXT = re.compile(r"[0-9a-f]{64}\n?")
_KEY_ID_CHARACTERS = 16
_MADE_HERE = "made_here"
"""The member of a document that contains the key's id and the tag."""


def key_id(key: bytes) -> str:
    """Return an id that identifies a key without revealing it."""
    return hashlib.sha256(b"gistpoint.head key\0" + key).hexdigest()[:_KEY_ID_CHARACTERS]


def own_key() -> bytes | None:
    """Return the key of this machine; None if there is no usable key."""
    with contextlib.suppress(OSError, ValueError):
        text = read_regular(Locations.of_user().proofs / KEY).decode("ascii")
        return bytes.fromhex(text) if _KEY_TEXT.fullmatch(text) else None
    return None


def key_for_writing() -> bytes | None:
    """Return the key of this machine, which is created at its first use; None if it can't be stored.

    Raises `UserError` if the file does not contain a key: with a new key, earlier attempts would count as
    another machine's (decision 120).
    """
    path = Locations.of_user().proofs / KEY
    with contextlib.suppress(OSError):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            create_file(path, secrets.token_hex(32).encode() + b"\n")
    key = own_key()
    if key is None and path.exists():
        raise UserError(
            f"{path} does not contain the key of this machine.",
            hint=("Restore it from a backup. If you delete it, earlier attempts count as another machine's."),
        )
    return key


def with_tag(document: Mapping[str, Any], basis: str | None) -> dict[str, Any]:
    """Return a document with the tag of this machine, or without a tag if no key can be stored.

    `basis` identifies the document's subject, so that the tag is not valid for another task. Without a basis,
    there is no tag. Raises `UserError` as `key_for_writing` does.
    """
    plain = {name: value for name, value in document.items() if name != _MADE_HERE}
    key = None if basis is None else key_for_writing()
    if key is None or basis is None:
        return plain
    return {**plain, _MADE_HERE: {"key": key_id(key), "tag": _tag(key, plain, basis)}}


def is_made_here(document: Mapping[str, Any], basis: str | None) -> bool:
    """Return whether this machine wrote a document about `basis` and nobody has changed it since."""
    key, found = own_key(), document.get(_MADE_HERE)
    if key is None or basis is None or not isinstance(found, Mapping):
        return False
    tag = found.get("tag")
    if not isinstance(tag, str):
        return False
    plain = {name: value for name, value in document.items() if name != _MADE_HERE}
    try:
        expected = _tag(key, plain, basis)
    except (ValueError, TypeError, RecursionError):
        return False  # a document from elsewhere can contain anything, such as NaN
    return hmac.compare_digest(tag.encode("utf-8", "surrogatepass"), expected.encode())


def _tag(key: bytes, plain: Mapping[str, Any], basis: str) -> str:
    text = canonical_json(["gistpoint.made_here", basis, plain])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
