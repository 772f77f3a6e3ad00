"""Converts the token counts of a provider to `Tokens`, whose prompt includes the tokens of a cache.

Providers count the tokens that were read from a cache, or written to it, in one of two ways: within the
prompt (OpenAI, Google, LiteLLM), or separately (Anthropic, and programs that count like it). See
decision 184. The tokens of a reply's thoughts are counted in two ways too: within the completion, or
separately (Google, opencode); a recorded sum of all tokens shows which.
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

    `whole` is the number of all tokens, if it is recorded. Counts that can't be within the prompt are added,
    which is the case if only the sum with them is the whole, or if they exceed the prompt. The `reasoning`
    tokens are added to the completion if only the sum with them is the whole.
    """
    cache = total([read, written])
    spoken = _with_thoughts(completion, reasoning, prompt, whole)
    if prompt is None or not cache:
        return Tokens(prompt, spoken, read, reasoning)
    spoken_apart = _with_thoughts(completion, reasoning, prompt + cache, whole)
    if whole is not None and whole == prompt + cache + (spoken_apart or 0):
        return Tokens(prompt + cache, spoken_apart, read, reasoning)
    outside = cache if (read or 0) > prompt else (written or 0) if cache > prompt else 0
    return Tokens(prompt + outside, spoken, read, reasoning)


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

    If the counts add up to the `whole` only without those of the cache, the cached tokens are within the
    fresh ones. The `reasoning` tokens are added to the completion if only the sum with them is the whole.
    """
    cache = total([read, written])
    spoken = _with_thoughts(completion, reasoning, fresh, whole)
    if cache and whole is not None and fresh is not None and whole == fresh + (spoken or 0):
        return Tokens(fresh, spoken, read, reasoning)
    prompt = total([fresh, cache])
    return Tokens(prompt, _with_thoughts(completion, reasoning, prompt, whole), read, reasoning)


def _with_thoughts(
    completion: int | None, reasoning: int | None, prompt: int | None, whole: int | None
) -> int | None:
    """Return the completion tokens.

    They include the reasoning tokens if the recorded total can be reached only with them.
    """
    if not reasoning or prompt is None or whole is None:
        return completion
    spoken = (completion or 0) + reasoning
    return spoken if whole == prompt + spoken else completion
