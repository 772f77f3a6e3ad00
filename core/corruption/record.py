"""A corruption's record: enough to make it again from the tree that it was made in, and from no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.corruption.corruptions import Corruption
from gistpoint.core.corruption.edits import Edit, apply
from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree

SCHEMA = 1


class ReplayError(UserError):
    """A record of a corruption can't be replayed on a tree."""


def record_of(corruption: Corruption) -> dict[str, Any]:
    """Return a corruption as a JSON object; `edits` are `[start, end, text]` on the function at the left margin."""
    target = corruption.target
    return {
        "schema": SCHEMA,
        "function": target.name,
        "families": list(corruption.families),
        "edits": [[edit.start, edit.end, edit.text] for edit in corruption.edits],
        "original_sha256": sha256_of_text(target.original),
        "corrupted_sha256": sha256_of_text(target.corrupted),
    }


def replay(record: Mapping[str, Any], tree: SourceTree) -> Target:
    """Return the target that a record describes, made again from `tree`.

    Raises `ReplayError` where the record is damaged or was made in a tree whose function is another one.
    """
    try:
        ref = FunctionRef.parse(record["function"])
        edits = tuple(Edit(int(start), int(end), str(text)) for start, end, text in record["edits"])
        hashes = record["original_sha256"], record["corrupted_sha256"]
        known = record["schema"] == SCHEMA
    except (CodeError, KeyError, TypeError, ValueError) as error:
        raise ReplayError(f"The record of the corruption is damaged: {error!r}.") from error
    if not known:
        raise ReplayError(f"The record has the schema {record['schema']!r}; {SCHEMA} is the one that is known.")
    try:
        original = index_source(ref.path, tree.read(ref.path)).get(ref.qualname).dedented
    except (CodeError, FileNotFoundError) as error:
        raise ReplayError(f"The tree does not hold {ref}.", hint="Replay the record on its own source.") from error
    if sha256_of_text(original) != hashes[0]:
        raise ReplayError(f"{ref} is not the function of the record.", hint="Replay the record on its own source.")
    try:
        corrupted = apply(edits, original)
    except ValueError as error:
        raise ReplayError(f"The edits of {ref} do not fit: {error}.") from error
    if sha256_of_text(corrupted) != hashes[1]:
        raise ReplayError(f"The edits of {ref} do not give the text of the record.")
    return Target(ref.path, ref.qualname, original, corrupted)
