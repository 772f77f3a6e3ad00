"""The settings under which a model works on a task:
everything that its results depend on besides model and task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

import msgspec

from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.chat import Sampling, Usage
from gistpoint.core.estimates import Estimate
from gistpoint.core.kinds.registry import all_kinds

LOOP_VERSION = 1
"""Raised when the loop does something else with the same replies."""
OUTPUT_RESERVE = 4_096
"""Tokens of the context that are kept free for a reply whose length nobody has limited."""
NO_CALL = "no-call-1"
CUT_OFF = "cut-off-1"
AGAIN = "again-1"
HANDOVER = "handover-1"
SystemPrompt = Literal["agent-1", "none"]
SYSTEM_PROMPTS: tuple[SystemPrompt, ...] = get_args(SystemPrompt)
"""The prompts that may go before the brief."""
_PROMPTS = (*(name for name in SYSTEM_PROMPTS if name != "none"), NO_CALL, CUT_OFF, AGAIN, HANDOVER)


@cache
def prompt_text(name: str) -> str:
    """Return the stored text of a prompt. A text never changes: another one has another name."""
    return (
        files("gistpoint.core.agents").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()
    )


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a prompt with its fields filled in; fields within the values have no meaning."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found.group(1)], text)


def prompt_hashes() -> dict[str, str]:
    """Return the hash of each prompt's text, by name; those of the kinds of task are the last."""
    texts = {name: prompt_text(name) for name in _PROMPTS}
    for kind in all_kinds():
        texts |= kind.prompts
    return {name: sha256_of_text(text) for name, text in texts.items()}


class TokenPrice(msgspec.Struct, frozen=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Of sent tokens that the endpoint had kept; None if they cost as much as others."""

    def cost(self, usage: Usage) -> float:
        """Return what a usage costs in US dollars; reasoning is part of the output."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.prompt_tokens - usage.cached_tokens
        spent = fresh * self.input + usage.cached_tokens * cached + usage.completion_tokens * self.output
        return spent / 1e6


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is let work."""

    setting: Literal["tools", "static"] = "tools"
    """`static`: one request with all files that a gist's command touches, no tools,
    one hand-in (Gistify, 4.3)."""
    system: SystemPrompt = "agent-1"
    """The prompt that goes before the brief."""
    context_tokens: int = 128_000
    """The longest conversation, with room for the reply. History is never shortened."""
    attempt_tokens: int | None = None
    """Most tokens of an attempt, sent and received; None for no limit."""
    sampling: Sampling = Sampling()
    price: TokenPrice | None = None
    """None if the endpoint's own word on the cost is to be believed."""
    prompts: dict[str, str] = msgspec.field(default_factory=prompt_hashes)
    """The hash of each prompt by its name."""
    loop_version: int = LOOP_VERSION

    def digest(self) -> str:
        """Return the hash of the settings, which names a condition."""
        return sha256_of_json(msgspec.to_builtins(self))

    @property
    def output_reserve(self) -> int:
        """Tokens that are kept free for a reply."""
        most = self.sampling.max_output_tokens
        return OUTPUT_RESERVE if most is None else most

    def estimate(self, prompt_tokens: int) -> Estimate:
        """Return the most that a request of so many tokens may cost."""
        usage = Usage(prompt_tokens, self.output_reserve)
        return Estimate(
            prompt_tokens, self.output_reserve, None if self.price is None else self.price.cost(usage)
        )

    def cost(self, usage: Usage) -> float | None:
        """Return what a usage cost in US dollars, else what the endpoint says of it; None if nobody knows."""
        if self.price is None:
            return usage.cost_usd
        return self.price.cost(usage)
