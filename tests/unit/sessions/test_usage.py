"""The prompt's tokens include those of a cache, however the recording program counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gistpoint.sessions.formats import atif, continue_dev, kimi, openhands
from gistpoint.sessions.formats.aider import _spent as of_aider
from gistpoint.sessions.formats.claude._replies import tokens_of as of_claude
from gistpoint.sessions.formats.claude.claude_stream import _spent as of_claude_stream
from gistpoint.sessions.formats.cline.cline_window import _spent as of_cline_window
from gistpoint.sessions.formats.codex._records import tokens_of as of_codex
from gistpoint.sessions.formats.copilot.copilot_cli import _usage as of_copilot_cli
from gistpoint.sessions.formats.gemini.google_parts import google_tokens
from gistpoint.sessions.formats.gemini.qwen_code import _tokens as of_qwen_code
from gistpoint.sessions.formats.inspect_ai.inspect_events import tokens_of_usage
from gistpoint.sessions.formats.opencode.opencode import _tokens as of_opencode
from gistpoint.sessions.formats.pi._entries import spent as of_pi
from gistpoint.sessions.formats.shared.messages import tokens_of
from gistpoint.sessions.formats.traces.langfuse import _tokens as of_langfuse
from gistpoint.sessions.formats.traces.otel import _tokens as of_otel
from gistpoint.sessions.records.model import Tokens
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.usage import counted_apart, counted_within

FRESH, READ, WRITTEN, SPOKEN = 7, 4_000, 500, 60
PROMPT = FRESH + READ + WRITTEN


def of_record(read: Callable[[Record], Any]) -> Callable[[dict[str, Any]], Tokens]:
    """Return a reader's function that takes plain data in place of a record."""

    def tokens(usage: dict[str, Any]) -> Tokens:
        found = read(Record(usage))
        return found if isinstance(found, Tokens) else found[0]

    return tokens


APART: dict[str, tuple[Callable[[dict[str, Any]], Tokens], dict[str, Any]]] = {
    "claude-code": (
        of_record(of_claude),
        {
            "input_tokens": FRESH,
            "cache_read_input_tokens": READ,
            "cache_creation_input_tokens": WRITTEN,
            "output_tokens": SPOKEN,
        },
    ),
    "claude-stream": (
        of_record(of_claude_stream),
        {
            "modelUsage": {
                "a-model": {
                    "inputTokens": FRESH,
                    "cacheReadInputTokens": READ,
                    "cacheCreationInputTokens": WRITTEN,
                    "outputTokens": SPOKEN,
                }
            }
        },
    ),
    "cline-window": (
        of_record(of_cline_window),
        {"tokensIn": FRESH, "cacheReads": READ, "cacheWrites": WRITTEN, "tokensOut": SPOKEN},
    ),
    "copilot-cli, details": (
        of_record(of_copilot_cli),
        {
            "tokenDetails": {
                name: {"tokenCount": count}
                for name, count in {
                    "input": FRESH,
                    "output": SPOKEN,
                    "cache_read": READ,
                    "cache_write": WRITTEN,
                }.items()
            }
        },
    ),
    "inspect": (
        of_record(tokens_of_usage),
        {
            "input_tokens": FRESH,
            "input_tokens_cache_read": READ,
            "input_tokens_cache_write": WRITTEN,
            "output_tokens": SPOKEN,
            "total_tokens": PROMPT + SPOKEN,
        },
    ),
    "kimi": (
        of_record(kimi._tokens),
        {"inputOther": FRESH, "inputCacheRead": READ, "inputCacheCreation": WRITTEN, "output": SPOKEN},
    ),
    "langfuse": (
        of_record(of_langfuse),
        {
            "input": FRESH,
            "input_cached_tokens": READ,
            "input_cache_creation": WRITTEN,
            "output": SPOKEN,
            "total": PROMPT + SPOKEN,
        },
    ),
    "messages of Anthropic": (
        tokens_of,
        {
            "input_tokens": FRESH,
            "cache_read_input_tokens": READ,
            "cache_creation_input_tokens": WRITTEN,
            "output_tokens": SPOKEN,
        },
    ),
    "messages of Bedrock": (
        tokens_of,
        {
            "inputTokens": FRESH,
            "cacheReadInputTokens": READ,
            "cacheWriteInputTokens": WRITTEN,
            "outputTokens": SPOKEN,
        },
    ),
    "opencode": (
        of_record(of_opencode),
        {"tokens": {"input": FRESH, "output": SPOKEN, "cache": {"read": READ, "write": WRITTEN}}},
    ),
    "pi": (
        of_record(of_pi),
        {"usage": {"input": FRESH, "cacheRead": READ, "cacheWrite": WRITTEN, "output": SPOKEN}},
    ),
}
"""Usage as the programs write it that count the tokens of a cache apart."""
WITHIN: dict[str, tuple[Callable[[dict[str, Any]], Tokens], dict[str, Any]]] = {
    "aider": (
        lambda usage: of_aider(usage["notice"])[0],
        {"notice": f"Tokens: {PROMPT:,} sent, {WRITTEN} cache write, {READ:,} cache hit, {SPOKEN} received."},
    ),
    "atif": (
        atif._tokens,
        {
            "prompt_tokens": PROMPT,
            "cached_tokens": READ,
            "completion_tokens": SPOKEN,
            "extra": {"cache_creation_input_tokens": WRITTEN},
        },
    ),
    "codex": (
        of_codex,
        {
            "input_tokens": PROMPT,
            "cached_input_tokens": READ,
            "output_tokens": SPOKEN,
            "total_tokens": PROMPT + SPOKEN,
        },
    ),
    "continue": (
        of_record(continue_dev._spent),
        {
            "usage": {
                "prompt_tokens": PROMPT,
                "completion_tokens": SPOKEN,
                "prompt_tokens_details": {"cached_tokens": READ, "cache_write_tokens": WRITTEN},
            }
        },
    ),
    "copilot-cli": (
        of_record(of_copilot_cli),
        {
            "modelMetrics": {
                "a-model": {
                    "usage": {
                        "inputTokens": PROMPT,
                        "cacheReadTokens": READ,
                        "cacheWriteTokens": WRITTEN,
                        "outputTokens": SPOKEN,
                    }
                }
            }
        },
    ),
    "gemini": (
        google_tokens,
        {"promptTokenCount": PROMPT, "cachedContentTokenCount": READ, "candidatesTokenCount": SPOKEN},
    ),
    "messages of OpenAI": (
        tokens_of,
        {
            "prompt_tokens": PROMPT,
            "prompt_tokens_details": {"cached_tokens": READ},
            "completion_tokens": SPOKEN,
        },
    ),
    "responses of OpenAI": (
        tokens_of,
        {"input_tokens": PROMPT, "input_tokens_details": {"cached_tokens": READ}, "output_tokens": SPOKEN},
    ),
    "messages of LiteLLM": (
        tokens_of,
        {
            "prompt_tokens": PROMPT,
            "cache_read_input_tokens": READ,
            "cache_creation_input_tokens": WRITTEN,
            "completion_tokens": SPOKEN,
            "total_tokens": PROMPT + SPOKEN,
        },
    ),
    "messages of LangChain": (
        tokens_of,
        {
            "input_tokens": PROMPT,
            "input_token_details": {"cache_read": READ, "cache_creation": WRITTEN},
            "output_tokens": SPOKEN,
        },
    ),
    "openhands": (
        of_record(openhands._summed_up),
        {
            "prompt_tokens": PROMPT,
            "cache_read_tokens": READ,
            "cache_write_tokens": WRITTEN,
            "completion_tokens": SPOKEN,
        },
    ),
    "otel": (
        of_record(of_otel),
        {
            "gen_ai": {
                "usage": {
                    "input_tokens": PROMPT,
                    "cache_read": {"input_tokens": READ},
                    "output_tokens": SPOKEN,
                }
            }
        },
    ),
}
"""Usage as the programs write it that count the tokens of a cache within the prompt."""


@pytest.mark.parametrize("name", [*APART, *WITHIN])
def test_the_prompt_of_every_format_includes_the_cache(name: str) -> None:
    read, usage = {**APART, **WITHIN}[name]
    tokens = read(usage)
    assert (tokens.prompt, tokens.completion, tokens.cached) == (PROMPT, SPOKEN, READ)


THOUGHT = 40
WITH_THOUGHTS: dict[str, tuple[Callable[[dict[str, Any]], Tokens], Callable[[int, int], dict[str, Any]]]] = {
    "gemini": (
        google_tokens,
        lambda spoken, whole: {
            "promptTokenCount": PROMPT,
            "candidatesTokenCount": spoken,
            "thoughtsTokenCount": THOUGHT,
            "totalTokenCount": whole,
        },
    ),
    "gemini-cli": (
        google_tokens,
        lambda spoken, whole: {
            "input": PROMPT,
            "output": spoken,
            "thoughts": THOUGHT,
            "tool": 0,
            "total": whole,
        },
    ),
    "qwen-code": (
        of_qwen_code,
        lambda spoken, whole: {
            "promptTokenCount": PROMPT,
            "candidatesTokenCount": spoken,
            "thoughtsTokenCount": THOUGHT,
            "totalTokenCount": whole,
        },
    ),
    "opencode": (
        of_record(of_opencode),
        lambda spoken, whole: {
            "tokens": {
                "total": whole,
                "input": FRESH,
                "output": spoken,
                "reasoning": THOUGHT,
                "cache": {"read": READ, "write": WRITTEN},
            }
        },
    ),
    "langfuse": (
        of_record(of_langfuse),
        lambda spoken, whole: {
            "input": FRESH,
            "input_cached_tokens": READ,
            "input_cache_creation": WRITTEN,
            "output": spoken,
            "output_reasoning_tokens": THOUGHT,
            "total": whole,
        },
    ),
    "inspect": (
        of_record(tokens_of_usage),
        lambda spoken, whole: {
            "input_tokens": FRESH,
            "input_tokens_cache_read": READ,
            "input_tokens_cache_write": WRITTEN,
            "output_tokens": spoken,
            "reasoning_tokens": THOUGHT,
            "total_tokens": whole,
        },
    ),
    "messages of OpenAI": (
        tokens_of,
        lambda spoken, whole: {
            "prompt_tokens": PROMPT,
            "completion_tokens": spoken,
            "completion_tokens_details": {"reasoning_tokens": THOUGHT},
            "total_tokens": whole,
        },
    ),
    "codex": (
        of_codex,
        lambda spoken, whole: {
            "input_tokens": PROMPT,
            "output_tokens": spoken,
            "reasoning_output_tokens": THOUGHT,
            "total_tokens": whole,
        },
    ),
    "otel": (
        of_record(of_otel),
        lambda spoken, whole: {
            "llm": {
                "token_count": {
                    "prompt": PROMPT,
                    "completion": spoken,
                    "completion_details": {"reasoning": THOUGHT},
                    "total": whole,
                }
            }
        },
    ),
}
"""Usage with the tokens of thoughts: functions of those of the completion, and of all tokens."""


@pytest.mark.parametrize("name", WITH_THOUGHTS)
@pytest.mark.parametrize("spoken", [SPOKEN, SPOKEN - THOUGHT], ids=["within", "apart"])
def test_the_completion_includes_thoughts_however_they_are_counted(name: str, spoken: int) -> None:
    read, usage = WITH_THOUGHTS[name]
    tokens = read(usage(spoken, PROMPT + SPOKEN))
    assert (tokens.prompt, tokens.completion, tokens.reasoning) == (PROMPT, SPOKEN, THOUGHT)


def test_without_a_sum_thoughts_are_counted_as_the_program_does() -> None:
    usage = {"promptTokenCount": PROMPT, "candidatesTokenCount": SPOKEN, "thoughtsTokenCount": THOUGHT}
    assert google_tokens(usage).completion == SPOKEN + THOUGHT
    assert of_qwen_code(usage).completion == SPOKEN


def test_the_recorded_sum_decides_where_it_can() -> None:
    whole = PROMPT + SPOKEN
    assert counted_apart(PROMPT, SPOKEN, read=READ, whole=whole).prompt == PROMPT
    assert counted_within(FRESH, SPOKEN, read=READ, written=WRITTEN, whole=whole).prompt == PROMPT


def test_what_a_prompt_has_no_room_for_is_not_in_it() -> None:
    # Some programs count what is read from a cache within the prompt, and what is written apart.
    assert counted_within(FRESH + READ, SPOKEN, read=READ, written=WRITTEN).prompt == PROMPT
    assert counted_within(FRESH, SPOKEN, read=READ, written=WRITTEN).prompt == PROMPT
    assert counted_within(None, None, read=5) == Tokens(None, None, 5)
    assert counted_apart(None, 3) == Tokens(None, 3)
