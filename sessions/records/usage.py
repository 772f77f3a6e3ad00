"""Converts the token counts of a provider to `Tokens`, whose prompt includes the tokens of a cache.

Providers count the tokens that were read from a cache, or written to it, in one of two ways: within the
prompt (OpenAI, Google, LiteLLM), or separately (Anthropic, and programs that count like it). See
decision 184.
"""

from __future__ import annotations

from gistpoint.sessions.records.model import Tokens
from gistpoint.sessions.records.values import total


def counted_within(
    prompt: int | None,
    completion: int | None,
    *,
    read: int | None = None,
    written: int | None = None,
    reasoning: int | None = None,
    whole: int | None = None,
) -> Tokens:
    """Return the tokens of a reply whose prompt includes those `read` from a cache or `written` to it.

    `whole` is the number of all tokens, if it is recorded. Counts that can't be within the prompt are added:
    if only the sum with them is the whole, or if they are greater than what the prompt has room for.
    """
    cache = total([read, written])
    if prompt is None or not cache:
        return Tokens(prompt, completion, read, reasoning)
    if whole is not None and whole == prompt + (completion or 0) + cache:
        return Tokens(prompt + cache, completion, read, reasoning)
    outside = cache if (read or 0) > prompt else (written or 0) if cache > prompt else 0
    return Tokens(prompt + outside, completion, read, reasoning)


def counted_apart(
    fresh: int | None,
    completion: int | None,
    *,
    read: int | None = None,
    written: int | None = None,
    reasoning: int | None = None,
    whole: int | None = None,
) -> Tokens:
    """Return the tokens of a reply whose `fresh` ones are counted without those `read` or `written`.

    If the counts add up to the `whole` only without those of the cache, they are within the fresh ones.
    """
    cache = total([read, written])
    if cache and whole is not None and fresh is not None and whole == fresh + (completion or 0):
        return Tokens(fresh, completion, read, reasoning)
    return Tokens(total([fresh, cache]), completion, read, reasoning)
