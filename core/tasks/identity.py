"""A task's id, made only from its content: the same corruption of the same tree has the same content
everywhere.

It never depends on times, texts, metrics, budgets or baselines, nor on a hash of an original function. The id
is the hash of the content, unless that would confirm a guess at the corrupted function: then a salt, which
only the answer has, is hashed with it (decision 124).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
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
    """Return the sha256, in hexadecimal, of the task's content; `of_kind` is the part that its kind adds.

    It is the id of a task without a salt, and the `content_sha256` of one with a salt. The digest of an image
    takes the place of the lock. `version` is that of the task without its salt, by default as `version_of`
    says.
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
    """Return one hash for a set of test ids."""
    return sha256_of_json(sorted(ids))


# Salted ids. A secret belongs to a campaign, or to one task made on its own; no task contains it


def new_secret() -> bytes:
    """Return a random secret, from which salts are made."""
    return secrets.token_bytes(SECRET_BYTES)


def seal(secret: bytes, content_sha256: str, source: Source) -> Seal:
    """Return the part that the answer of a task keeps; equal secrets and contents give equal salts."""
    return Seal(_keyed(secret, "salt", content_sha256), content_sha256, source.revision)


def public_source(secret: bytes, source: Source) -> Source:
    """Return a source as the public part names it, without its location.

    The revision of a folder is the hash of the original tree, which would confirm a guess at the original. A
    keyed hash replaces it, the same in all tasks of a campaign.
    """
    hidden = source.kind == "folder"
    revision = _keyed(secret, "revision", source.revision) if hidden else source.revision
    return replace(source, location="", revision=revision)


def salted_id(sealed: Seal, source: Source) -> str:
    """Return the id of a task with a salt; `source` is the one in its public part."""
    return sha256_of_json(
        {
            "version": SALTED,
            "content": sealed.content_sha256,
            "salt": sealed.salt,
            "source": [source.kind, source.name, source.revision],
        }
    )


def commitment(salt: str) -> str:
    """Return the commitment to a salt in the public part: its sha256, in hexadecimal."""
    return hashlib.sha256(bytes.fromhex(salt)).hexdigest()


def _keyed(secret: bytes, purpose: str, text: str) -> str:
    return hmac.new(secret, f"{purpose}\0{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
