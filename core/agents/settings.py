"""The settings of a model's work: everything besides model and task that affects its results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.chat import LONGEST_REPLY, ChatApi, Sampling, Usage
from gistpoint.core.estimates import Estimate
from gistpoint.core.kinds.registry import all_kinds
from gistpoint.core.tasks.rules import Face, rules_text

LOOP_VERSION = 2
"""The version of the loop, which increases when the same replies have different effects.

Version 1 counted reasoning that is not sent back as part of the context.
"""
OUTPUT_RESERVE = 4_096
"""The number of tokens of the context reserved for a reply without a length limit."""
NO_CALL = "no-call"
CUT_OFF = "cut-off"
AGAIN = "again"
HANDOVER = "handover"
_REPLIES = (NO_CALL, CUT_OFF, AGAIN, HANDOVER)
"""The names, without a version, of the messages that answer a model's reply."""
TEXT_SYSTEM = "agent-text"
TEXT_CALLS = "text-calls"
TEXT_ANSWER = "text-answer"
TEXT_FIRST_ANSWER = "text-first-answer"
TEXT_TOOLS = "text-tools"
TEXT_NO_CALL = "text-no-call"
_TEXTS = (TEXT_CALLS, TEXT_ANSWER, TEXT_FIRST_ANSWER, TEXT_TOOLS, TEXT_NO_CALL, CUT_OFF, AGAIN, HANDOVER)
"""The names, without a version, of the messages for a model that writes its calls as text."""
CallForm = Literal["native", "text"]
"""The form of a model's calls: native to the endpoint, or text in the reply (decision 151)."""
SystemPrompt = Literal["agent-2", "agent-1", "none"]
SYSTEM_PROMPTS: tuple[SystemPrompt, ...] = get_args(SystemPrompt)
"""The possible system prompts, newest first."""
TEXT_VERSION = 2
"""The version of the messages in new runs (decision 130)."""


@cache
def prompt_text(name: str) -> str:
    """Return the text of a prompt, with the rules filled in.

    A prompt never changes: a new text gets a new name.
    """
    text = files("gistpoint.core.agents").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
    face = Face.MODEL_IN_TEXT if name.startswith(f"{TEXT_SYSTEM}-") else Face.MODEL
    return text.strip().replace("{{rules}}", rules_text(face, "rules-2"))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a prompt with its fields filled in; fields within the values are ignored.

    Raises `KeyError` for a field without a value.
    """
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found.group(1)], text)


def prompt_hashes(version: int = TEXT_VERSION, *, as_text: bool = False) -> dict[str, str]:
    """Return the hashes of a version's messages, by their names; those of the task kinds come last.

    Version 1 keeps exactly its original messages, so that the digest of its settings does not change.
    `as_text` is true if the calls are written as text.
    """
    stems = (TEXT_SYSTEM, *_TEXTS) if as_text else ("agent", *_REPLIES)
    names = [f"{stem}-{version}" for stem in stems]
    texts = {name: prompt_text(name) for name in names}
    for kind in all_kinds():
        texts |= {name: text for name, text in kind.prompts.items() if version > 1 or name.endswith("-1")}
    return {name: sha256_of_text(text) for name, text in texts.items()}


class TokenPrice(msgspec.Struct, frozen=True):
    """The price of tokens, in US dollars per million."""

    input: float
    output: float
    cached: float | None = None
    """The price of cached input tokens; None if it equals the price of other input."""
    written: float | UnsetType = UNSET
    """The price of input tokens that are written to a cache; unset if it equals the price of other input."""

    def cost(self, usage: Usage) -> float:
        """Return the cost of `usage` in US dollars; reasoning counts as output."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is UNSET else self.written
        fresh = usage.prompt_tokens - usage.cached_tokens - usage.written_tokens
        sent = fresh * self.input + usage.cached_tokens * cached + usage.written_tokens * written
        return (sent + usage.completion_tokens * self.output) / 1e6

    def highest(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the highest possible cost of a request, as if the whole prompt were written to a cache."""
        usages = (Usage(prompt_tokens, completion_tokens, written_tokens=n) for n in (0, prompt_tokens))
        return max(map(self.cost, usages))


def limited(sampling: Sampling, context_tokens: int) -> Sampling:
    """Return the sampling with a limit on the length of a reply, without which no cost can be limited.

    The default limit is 32,000 tokens or a quarter of the context, whichever is less (decision 197).
    """
    limit = sampling.reply_limit(max(1, min(LONGEST_REPLY, context_tokens // 4)))
    return replace(sampling, max_output_tokens=limit)


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a model's work."""

    setting: Literal["tools", "static"] = "tools"
    """`static`: one request with all files of a gist's command, no tools, and one hand-in (Gistify, 4.3)."""
    system: SystemPrompt = "agent-2"
    """The name of the system prompt."""
    context_tokens: int = 128_000
    """The maximum number of tokens in a conversation and its reply. History is never shortened."""
    attempt_tokens: int | None = None
    """The maximum number of tokens in an attempt, sent and received; None for no limit."""
    sampling: Sampling = Sampling()
    price: TokenPrice | None = None
    """The price of tokens; None to use the cost reported by the endpoint."""
    prompts: dict[str, str] = {}
    """The hashes of the prompts by name; by default those of the version of the system prompt."""
    loop_version: int = LOOP_VERSION
    """The version of the loop; 1 with the first system prompt, so that its runs can be continued."""
    api: ChatApi | UnsetType = UNSET
    """The endpoint's API; unset for OpenAI's, to keep the digest of older settings."""
    calls: Literal["text"] | UnsetType = UNSET
    """The form of the model's calls; unset for native ones, to keep the digest of their settings."""

    def __post_init__(self) -> None:
        """Set the hashes of the prompts and the loop's version, unless hashes are given, as in a stored run.

        An `api` of `openai` becomes unset. Raises `ValueError` for settings that can't be combined with calls
        as text.
        """
        if self.calls_as_text and (self.system == "agent-1" or self.setting == "static"):
            raise ValueError("calls as text need tools and a prompt newer than agent-1")
        if self.api == "openai":
            msgspec.structs.force_setattr(self, "api", UNSET)
        if not self.prompts:
            version = 1 if self.system == "agent-1" else TEXT_VERSION
            hashes = prompt_hashes(version, as_text=self.calls_as_text)
            msgspec.structs.force_setattr(self, "prompts", hashes)
            msgspec.structs.force_setattr(self, "loop_version", min(version, self.loop_version))

    @property
    def calls_as_text(self) -> bool:
        """Whether the model writes its calls as text."""
        return self.calls == "text"

    def reply_text(self, stem: str) -> str:
        """Return the message `stem` that answers a model's reply, in the version with which the run began."""
        version = 1 if f"{stem}-1" in self.prompts else TEXT_VERSION
        return prompt_text(f"{stem}-{version}")

    def digest(self) -> str:
        """Return the hash of the settings, which identifies a condition."""
        return sha256_of_json(msgspec.to_builtins(self))

    @property
    def chat_api(self) -> ChatApi:
        """The endpoint's API."""
        return "openai" if self.api is UNSET else self.api

    @property
    def output_reserve(self) -> int:
        """The number of tokens of the context reserved for a reply."""
        most = self.sampling.max_output_tokens
        return OUTPUT_RESERVE if most is None else most

    @property
    def sent_limit(self) -> int | None:
        """The limit on a reply's tokens that requests contain; None if requests contain no limit."""
        return (
            self.sampling.reply_limit() if self.chat_api == "anthropic" else self.sampling.max_output_tokens
        )

    def estimate(self, prompt_tokens: int) -> Estimate:
        """Return the tokens and the cost reserved for a request with this prompt size."""
        return self.estimate_with(prompt_tokens, self.sent_limit)

    def estimate_with(self, prompt_tokens: int, limit: int | None, replies: int = 1) -> Estimate:
        """Return the tokens and the cost reserved for a request with this limit on its reply's tokens.

        The cost covers the requested number of replies, each of the maximum length. Without a limit, that
        length is the rest of the context, or 32,000 tokens if that is more (decision 197). The cost is None
        if there is no price.
        """
        longest = max(LONGEST_REPLY, self.context_tokens - prompt_tokens) if limit is None else limit
        highest = None if self.price is None else self.price.highest(prompt_tokens, longest * replies)
        return Estimate(prompt_tokens, self.output_reserve, highest)

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of `usage` in US dollars, by the price or else as reported; None if unknown."""
        if self.price is None:
            return usage.cost_usd
        return self.price.cost(usage)
