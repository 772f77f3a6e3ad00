"""Verdicts on a run that one key gives: those of the program, or a user's own from `review.toml`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from gistpoint.core.errors import SettingsError
from gistpoint.sessions.annotations.reviews import ExcludeReason, RunVerdict

FILE = "review.toml"
_MEND = "Correct it, or move it away."


class VerdictWord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict in a reviewer's words, and the character that gives it."""

    key: Annotated[str, Meta(min_length=1, max_length=1)]
    words: Annotated[str, Meta(min_length=1, max_length=60)]
    means: RunVerdict
    reasons: tuple[ExcludeReason, ...] = ()


DEFAULT = (
    VerdictWord("Y", "accept", RunVerdict.ACCEPT),
    VerdictWord("W", "wrong way: met without a repair", RunVerdict.EXCLUDE, (ExcludeReason.SHORTCUT,)),
    VerdictWord("K", "knew the answer", RunVerdict.EXCLUDE, (ExcludeReason.EXPOSURE,)),
    VerdictWord("H", "had help that is not allowed", RunVerdict.EXCLUDE, (ExcludeReason.AID,)),
    VerdictWord("J", "junk: the environment failed", RunVerdict.EXCLUDE, (ExcludeReason.ENVIRONMENT,)),
    VerdictWord("I", "idle: not tried in earnest", RunVerdict.EXCLUDE, (ExcludeReason.NOT_SERIOUS,)),
    VerdictWord("Q", "question: needs a second reviewer", RunVerdict.NEEDS_SECOND_REVIEWER),
)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verdict: tuple[VerdictWord, ...] = DEFAULT


def read_verdict_words(config: Path, taken: Collection[str]) -> tuple[VerdictWord, ...]:
    """Return the verdicts of `review.toml` in a folder, or the default ones if there is no such file.

    The file holds `[[verdict]]` tables with `key`, `words`, `means` (a name of `RunVerdict`) and, for exclusions,
    `reasons`. `taken` are characters that mean something else. Raises `SettingsError` for anything else.
    """
    path = config / FILE
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=_File).verdict
    except FileNotFoundError:
        return DEFAULT
    except (OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise SettingsError(f"{path} can't be used: {error}.", hint=_MEND) from error
    keys: set[str] = set()
    for word in found:
        if word.key in keys or word.key in taken or not word.key.isprintable() or word.key.isspace():
            raise SettingsError(f"{path}: the key {word.key!r} of {word.words!r} is taken.", hint="Choose another one.")
        keys.add(word.key)
        if word.means is RunVerdict.ACCEPT_CORRECTED_TIME:
            raise SettingsError(f"{path}: {word.words!r} needs a time, which no key gives.", hint="V asks for it.")
        if (word.means is RunVerdict.EXCLUDE) != bool(word.reasons):
            raise SettingsError(f"{path}: {word.words!r}: exclusions, and they alone, have reasons.", hint=_MEND)
    return found
