"""A task's id, derived from its content alone. Equal corruptions of equal trees have equal content.

It never depends on times, briefs, metrics, budgets or baselines, or on a hash of an original function. The id
is the hash of the content, unless that would confirm a guess at the corrupted function: then it also covers a
salt, which only the answer has (decision 124).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.pins import ImagePins
from gistpoint.core.tasks.model import SALTED, Seal, Source, Target, version_of

SECRET_BYTES = 32


def task_id(
    *,
    mode: str,
    source_name: str,
    source_revision: str,
    tree_sha256: str,
    targets: Iterable[Target],
    lock: Iterable[str],
    ids_sha256: str,
    build_steps: Iterable[str] = (),
    of_kind: Mapping[str, Any] | None = None,
    image: ImagePins | None = None,
    version: int | None = None,
) -> str:
    """Return the hexadecimal sha256 of the task's content; `of_kind` is the part specific to its kind.

    The hash is the id of a task without a salt, and the `content_sha256` of a task with a salt. The digest of
    an image replaces the lock. `version` is the version of the task without its salt, by default from
    `version_of`.
    """
    content: dict[str, Any] = {
        "version": version_of(image) if version is None else version,
        "mode": str(mode),
        "source": [source_name, source_revision],
        "tree": tree_sha256,
        "targets": sorted([target.name, sha256_of_text(target.corrupted)] for target in targets),
        **({"lock": sorted(lock)} if image is None else {"image": image.digest}),
        "tests": ids_sha256,
    }
    if steps := list(build_steps):
        content["build"] = steps
    return sha256_of_json({**content, **(of_kind or {})})


def hash_of_ids(ids: Iterable[str]) -> str:
    """Return the hash of several test ids."""
    return sha256_of_json(sorted(ids))


# Salted ids. A secret belongs to a campaign, or to a single task; no task contains it


def new_secret() -> bytes:
    """Return a random secret for deriving salts.

    Anyone who knows it can use an id to confirm a guess (decision 124).
    """
    import secrets  # not needed before the first paint (decision 37)

    return secrets.token_bytes(SECRET_BYTES)


def seal(secret: bytes, content_sha256: str, source: Source) -> Seal:
    """Return the seal for a task's answer; equal secrets and contents give equal salts."""
    return Seal(_keyed(secret, "salt", content_sha256), content_sha256, source.revision)


def public_source(secret: bytes, source: Source) -> Source:
    """Return the public form of a source, without its location.

    A folder's revision is the hash of the original tree, which would confirm a guess at the original. A keyed
    hash replaces it, equal in all tasks of a campaign.
    """
    hidden = source.kind == "folder"
    revision = _keyed(secret, "revision", source.revision) if hidden else source.revision
    return replace(source, location="", revision=revision)


def salted_id(sealed: Seal, source: Source) -> str:
    """Return the id of a task with a salt; `source` is the public source."""
    return sha256_of_json(
        {
            "version": SALTED,
            "content": sealed.content_sha256,
            "salt": sealed.salt,
            "source": [source.kind, source.name, source.revision],
        }
    )


def commitment(salt: str) -> str:
    """Return the public commitment to a salt: its hexadecimal sha256."""
    return hashlib.sha256(bytes.fromhex(salt)).hexdigest()


def _keyed(secret: bytes, purpose: str, text: str) -> str:
    return hmac.new(secret, f"{purpose}\0{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
