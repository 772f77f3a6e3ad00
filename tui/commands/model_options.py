"""The options of a model that corrupts functions, its limits and examples, and what it has cost."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.corruption.rounds import Keep, LoopSettings
from gistpoint.core.errors import UserError
from gistpoint.core.generation.by_model import ModelTerms
from gistpoint.core.generation.examples import examples_text, read_judged
from gistpoint.core.generation.settings import CampaignSettings, SourceSpec
from gistpoint.core.generation.spending import SetSpending
from gistpoint.core.locations import Locations
from gistpoint.core.ports import ChatModel
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.endpoints.settings import EndpointSettings, endpoint_settings
from gistpoint.tui.commands.arguments import counted, natural, positive
from gistpoint.tui.commands.output import print_text


def add_model_options(parser: argparse.ArgumentParser, *, of_set: bool) -> None:
    """Add `--model` and what limits it: one function, or a set with limits for each function and for all together."""
    group = parser.add_argument_group(
        "corruption by a model",
        "The endpoint is OpenAI-compatible: OPENAI_BASE_URL and OPENAI_API_KEY, or the table [llm] of config.toml.",
    )
    group.add_argument("--model", metavar="NAME", help="corrupt by this model, with the paper's prompt and feedback")
    group.add_argument(
        "--keep",
        choices=[keep.value for keep in Keep],
        default=Keep.BEST.value,
        help="the best hidden or the last (paper)",
    )
    group.add_argument("--rounds", type=natural, default=5, metavar="N", help="of test feedback (default: 5)")
    group.add_argument("--max-tool-calls", type=counted, default=30, metavar="N", help="per function (default: 30)")
    group.add_argument(
        "--examples", metavar="FILE", help="show it corruptions that readers have judged (JSON lines, see the guide)"
    )
    whole = "for the whole set" if of_set else "at most"
    group.add_argument("--max-tokens", type=counted, metavar="N", help=f"{whole}, sent and received")
    group.add_argument("--max-cost", type=positive, metavar="USD", help=f"{whole}; needs a price, see the guide")
    if of_set:
        group.add_argument("--max-tokens-per-function", type=counted, metavar="N", help="default: 500000")
        group.add_argument("--max-cost-per-function", type=positive, metavar="USD")


def require_model(options: argparse.Namespace) -> None:
    """Raise `UserError` if there is something for a model to keep to, and no model."""
    limits = ("examples", "max_tokens", "max_cost", "max_tokens_per_function", "max_cost_per_function")
    given = [name for name in limits if getattr(options, name, None) is not None]
    if given and not options.model:
        option = f"--{given[0].replace('_', '-')}"
        raise UserError(f"{option} is for a corrupting model, and none is named.", hint="Add --model NAME.")


def chat_model(settings: EndpointSettings) -> ChatModel:
    """Return the model at an endpoint; it retries after passing errors."""
    from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
    from gistpoint.sandbox.endpoints.retrying import RetryingModel

    return RetryingModel(OpenAICompatibleModel(settings))


def model_of(
    options: argparse.Namespace, environment: Mapping[str, str] | None = None
) -> tuple[ChatModel, LoopSettings]:
    """Return the model named by the options, the environment and the config file, and the limits of its loops.

    Raises `EndpointError` if the endpoint is not configured, and `UserError` for an invalid limit.
    """
    settings = endpoint_settings(Locations.of_user().config, environment or os.environ, options.model)
    max_tokens, max_cost = _caps_of_function(options)
    changes: dict[str, Any] = {"keep": Keep(options.keep), "feedback_rounds": options.rounds}
    changes["tool_calls"] = options.max_tool_calls
    changes["max_cost_usd"] = max_cost if max_cost is not None else settings.max_cost_usd
    if (tokens := max_tokens if max_tokens is not None else settings.max_tokens) is not None:
        changes["max_tokens"] = tokens
    return chat_model(settings), LoopSettings.for_tasks(options.min_failing, **changes)


def _caps_of_function(options: argparse.Namespace) -> tuple[int | None, float | None]:
    if hasattr(options, "max_cost_per_function"):
        return options.max_tokens_per_function, options.max_cost_per_function
    return options.max_tokens, options.max_cost


def examples_hash(options: argparse.Namespace) -> str:
    """Return the hash of the file of examples, empty without one. Raises `UserError` if it can't be read."""
    return sha256_of_text(_examples_file(options)) if options.examples else ""


def examples_of(options: argparse.Namespace, library: str) -> str:
    """Return the examples to show for a library, empty if none were asked for; their sources are fetched.

    Raises `UserError`, `SourceError` and `CorruptionReplayError`.
    """
    if not options.examples:
        return ""
    judged = read_judged(_examples_file(options), Path(options.examples).name)
    from gistpoint.sandbox.environments.sources import Fetcher

    with tempfile.TemporaryDirectory(prefix="gistpoint-examples-") as name:

        def tree_of(source: str) -> SourceTree:
            into = Path(name) / source
            _, folder = Fetcher().fetch(source, into)
            write_tree(folder, into / "tree.tar")
            return SourceTree.open(into / "tree.tar")

        return examples_text(judged, library, tree_of)


def _examples_file(options: argparse.Namespace) -> str:
    try:
        return Path(options.examples).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{options.examples} can't be read: {error}.", hint="--examples takes a JSON lines file."
        ) from error


def terms_of_set(
    options: argparse.Namespace, settings: CampaignSettings, sources: Sequence[SourceSpec]
) -> Callable[[str], ModelTerms] | None:
    """Return the terms of a set's conversations by library, None without a model; the set is what the command makes.

    What was spent is counted by settings and sources, so that the same command with other caps or counts goes on.
    """
    if not settings.model:
        return None
    spending = _spending(options, settings, sources)
    spending.begin()
    return lambda library: ModelTerms(examples_of(options, library), spending)


def print_spent(options: argparse.Namespace, settings: CampaignSettings, sources: Sequence[SourceSpec]) -> None:
    """Print what the model of a set has cost so far, if it has one."""
    if not settings.model:
        return
    spent, caps = spent_json(options, settings, sources), []
    if options.max_tokens is not None:
        caps.append(f"{options.max_tokens} tokens")
    if options.max_cost is not None:
        caps.append(f"{options.max_cost:g} US dollars")
    cost = "" if spent["cost_usd"] is None else f", {spent['cost_usd']:.4f} US dollars"
    about = " (estimated in part)" if spent["estimated"] else ""
    most = f"; at most {' and '.join(caps)}" if caps else ""
    print_text(
        f"{settings.model}: {spent['requests']} requests, {spent['tokens']} tokens{about}{cost} for this set{most}"
    )


def spent_json(
    options: argparse.Namespace, settings: CampaignSettings, sources: Sequence[SourceSpec]
) -> dict[str, Any]:
    """Return what the model of a set has cost so far, as a JSON value."""
    spent = _spending(options, settings, sources).spent()
    usage = spent.usage
    return {
        "requests": spent.requests,
        "tokens": usage.tokens,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd,
        "estimated": usage.estimated,
    }


def _spending(options: argparse.Namespace, settings: CampaignSettings, sources: Sequence[SourceSpec]) -> SetSpending:
    key = sha256_of_json([settings.to_json(), sorted(spec.source for spec in sources)])[:16]
    path = Locations.of_user().campaigns / f"spent-{settings.mode.value}-{key}.jsonl"
    return SetSpending(path, options.max_tokens, options.max_cost)
