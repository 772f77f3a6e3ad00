"""The options of commands that let a model corrupt functions, and the model that they name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gistpoint.core.corruption.model.loop import LoopSettings
    from gistpoint.core.ports import ChatModel
    from gistpoint.sandbox.endpoints.settings import EndpointSettings


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add `--model` and what limits it."""
    group = parser.add_argument_group(
        "corruption by a model",
        "The endpoint is OpenAI-compatible: OPENAI_BASE_URL and OPENAI_API_KEY, or the table [llm] of config.toml.",
    )
    group.add_argument("--model", metavar="NAME", help="corrupt by this model, with the paper's prompt and feedback")
    group.add_argument("--keep", choices=["best", "final"], default="best", help="the most subtle or the last (paper)")
    group.add_argument("--rounds", type=int, default=5, metavar="N", help="of test feedback (default: 5)")
    group.add_argument("--max-tool-calls", type=int, default=30, metavar="N", help="per function (default: 30)")
    group.add_argument("--max-tokens", type=int, metavar="N", help="per function, sent and received")
    group.add_argument("--max-cost", type=float, metavar="USD", help="per function; needs a price, see the guide")


def chat_model(settings: EndpointSettings) -> ChatModel:
    """Return the model behind an endpoint, asked again when something passing goes wrong."""
    from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
    from gistpoint.sandbox.endpoints.retrying import RetryingModel

    return RetryingModel(OpenAICompatibleModel(settings))


def model_of(
    options: argparse.Namespace, environment: Mapping[str, str] | None = None
) -> tuple[ChatModel, LoopSettings]:
    """Return the model that the options, the environment and the config file name, and the limits of its loops.

    Raises `EndpointError` where the endpoint is not configured, and `UserError` for a limit that makes no sense.
    """
    from gistpoint.core.corruption.model.loop import Keep, LoopSettings
    from gistpoint.core.errors import UserError
    from gistpoint.core.locations import Locations
    from gistpoint.sandbox.endpoints.settings import endpoint_settings

    settings = endpoint_settings(Locations.of_user().config, environment or os.environ, options.model)
    if (
        options.rounds < 0
        or options.max_tool_calls < 1
        or any(value is not None and value <= 0 for value in _caps(options))
    ):
        raise UserError("--rounds must be 0 or more, --max-tool-calls 1 or more, and a cap more than 0.")
    max_tokens, max_cost = _caps(options)
    changes: dict[str, Any] = {"keep": Keep(options.keep), "feedback_rounds": options.rounds}
    changes["tool_calls"] = options.max_tool_calls
    changes["max_cost_usd"] = max_cost if max_cost is not None else settings.max_cost_usd
    if (tokens := max_tokens if max_tokens is not None else settings.max_tokens) is not None:
        changes["max_tokens"] = tokens
    return chat_model(settings), LoopSettings.for_tasks(options.min_failing, **changes)


def _caps(options: argparse.Namespace) -> tuple[int | None, float | None]:
    return options.max_tokens, options.max_cost
