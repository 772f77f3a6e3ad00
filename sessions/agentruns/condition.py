"""The condition of a run in words: the settings that affect its results, besides the model and the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from gistpoint.core.agents.settings import SYSTEM_PROMPTS
from gistpoint.core.attempts.identity import Role
from gistpoint.core.text import plural
from gistpoint.sessions.agentruns.store import RunSettings

_SHOWN = 200
"""The maximum number of characters in a setting."""

_HANDLED = frozenset(
    ("setting", "system", "context_tokens", "attempt_tokens", "sampling", "price", "prompts", "loop_version")
)
"""The members of the agent's settings that are worded individually, or that the system prompt implies."""


def _is_chosen(value: object) -> bool:
    """Return whether a setting was chosen; 0 is a choice, such as a temperature."""
    return value is not None and value is not False and value not in ("", {}, [])


def condition_facts(settings: RunSettings) -> Mapping[str, str]:
    """Return the chosen settings of a run, each as a name and a value in words.

    Settings without special words have their names in `run.toml`, with spaces in place of underscores.
    """
    agent = settings.agent
    facts = {"setting": _setting(agent.setting), "budgets": _budgets(settings)}
    facts["system prompt"] = agent.system
    facts["context"] = plural(agent.context_tokens, "token")
    if agent.attempt_tokens is not None:
        facts["tokens in an attempt"] = f"at most {agent.attempt_tokens:,}"
    sampling: Mapping[str, Any] = msgspec.to_builtins(agent.sampling)
    others: Mapping[str, Any] = msgspec.to_builtins(agent)
    chosen = {**sampling, **{name: value for name, value in others.items() if name not in _HANDLED}}
    facts |= {name.replace("_", " "): str(value) for name, value in chosen.items() if _is_chosen(value)}
    facts |= {f"gist {name}".replace("_", " "): str(value) for name, value in (settings.gist or {}).items()}
    if agent.price is not None:
        price = agent.price
        cached = "" if price.cached is None else f", {price.cached:g} cached"
        written = "" if price.written is UNSET else f", {price.written:g} written to a cache"
        facts["US dollars per million tokens"] = (
            f"{price.input:g} sent, {price.output:g} received{cached}{written}"
        )
    if settings.role != Role.BASELINE:
        facts["role"] = f"{settings.role}: no baseline"
    return {name: value[:_SHOWN] for name, value in facts.items() if value}


def condition_parts(settings: RunSettings) -> list[str]:
    """Return the parts of the condition in words, without the context, the price and the default prompt."""
    facts = dict(condition_facts(settings))
    for name in ("context", "US dollars per million tokens"):
        facts.pop(name, None)
    if settings.agent.system == SYSTEM_PROMPTS[0]:
        del facts["system prompt"]
    own = ("setting", "budgets")
    return [words if name in own else f"{name} {words}" for name, words in facts.items()]


def _setting(name: str) -> str:
    return {"tools": "", "static": "static: one reply without tools"}.get(name, name)


def _budgets(settings: RunSettings) -> str:
    if settings.tool_uses is None:
        return "each task's own budgets"
    uses = plural(settings.tool_uses, "tool use")
    return uses if settings.submissions is None else f"{uses}, {plural(settings.submissions, 'submission')}"
