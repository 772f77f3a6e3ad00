"""Options for models that corrupt or read functions, and the models at the endpoints that they name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.corruption.rounds import LoopSettings
from gistpoint.core.generation.by_model import CorruptingModel
from gistpoint.core.generation.examples import TreeOf
from gistpoint.core.locations import Locations
from gistpoint.core.ports import ChatModel
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.core.unfinished import scratch_folder
from gistpoint.object_graph import refuse_exposed_key
from gistpoint.sandbox.endpoints.settings import EndpointSettings, endpoint_settings, reader_settings
from gistpoint.tui.commands.options import Option, OptionTable, option

if TYPE_CHECKING:
    from gistpoint.sandbox.endpoints.throttle import Throttle


def chat_model(settings: EndpointSettings) -> ChatModel:
    """Return the model at an endpoint, which keeps to its limits and retries after temporary errors."""
    from gistpoint.sandbox.endpoints.models import chat_model_at
    from gistpoint.sandbox.endpoints.retrying import RetryingModel
    from gistpoint.sandbox.endpoints.throttle import ThrottledModel

    gate = _throttle().gate(settings.place, settings.limits)
    return RetryingModel(ThrottledModel(chat_model_at(settings, gate), gate))


@cache
def _throttle() -> Throttle:
    """Return the gates of this process, one for each endpoint's host and port."""
    from gistpoint.sandbox.endpoints.throttle import Throttle

    return Throttle()


def open_model(
    request: CorruptingModel, min_failing: int, *, exposed: Callable[[], bool] = lambda: False
) -> tuple[ChatModel, LoopSettings]:
    """Return the model that is set by options, environment or config file, and the limits of its loops.

    Raises `EndpointError` if the endpoint is not configured, and `SandboxUnavailableError` if it has a key
    and `exposed` returns True: what the model writes would then run without isolation.
    """
    settings = endpoint_settings(Locations.of_user().config, os.environ, request.model)
    refuse_exposed_key(settings, exposed)
    return chat_model(settings), request.loop(min_failing, settings.max_tokens, settings.max_cost_usd)


def open_reader(name: str, *, exposed: Callable[[], bool] = lambda: False) -> ChatModel:
    """Return the blind reader with that name. Raises the same errors as `open_model`."""
    settings = reader_settings(Locations.of_user().config, os.environ, name)
    refuse_exposed_key(settings, exposed)
    return chat_model(settings)


@contextmanager
def fetched_trees() -> Iterator[TreeOf]:
    """Yield a function that fetches a source and returns its files, which exist until the context ends."""
    from gistpoint.sandbox.environments.sources import Fetcher

    with scratch_folder("examples") as name:

        def tree_of(source: str) -> SourceTree:
            into = Path(name) / source
            _, folder = Fetcher().fetch(source, into)
            write_tree(folder, into / "tree.tar")
            return SourceTree.open(into / "tree.tar")

        yield tree_of


def _limits(subject: str) -> dict[str, Option | OptionTable]:
    """Return the options for limits on tokens and cost. The help texts begin with `subject`."""
    return {
        "max_tokens": option(f"{subject}, sent and received", metavar="N"),
        "max_cost": option(f"{subject}; needs a price, see the guide", metavar="USD"),
    }


MODEL = OptionTable(
    {
        "model": option("corrupt by this model, with the paper's prompt and feedback", metavar="NAME"),
        "keep": option("keep the best-hidden submission, or the last one (as in the paper)"),
        "rounds": option("rounds of test feedback (default: {default})", metavar="N"),
        "max_tool_calls": option("per function (default: {default})", metavar="N"),
        "examples": option(
            "corruptions judged by readers, to be shown to the model (JSON lines, see the guide)",
            metavar="FILE",
        ),
        **_limits("at most"),
    },
    title="corruption by a model",
    description=(
        "The endpoint is that of OPENAI_BASE_URL and OPENAI_API_KEY, or of the table [llm] of config.toml,"
        " whose api may also be anthropic or gemini."
    ),
)
MODEL_OF_SET = replace(
    MODEL,
    options={
        "model": MODEL.options["model"],
        "rewrite": option(
            "have the model rewrite each function without seeing its body or hearing of faults"
        ),
        **MODEL.options,
        **_limits("for the whole set"),
        "max_tokens_per_function": option("default: 500000", "--max-tokens-per-function", metavar="N"),
        "max_cost_per_function": option("", "--max-cost-per-function", metavar="USD"),
    },
)
READER = OptionTable(
    {
        "reader": option(
            "have this model, which must not be the one of --model, read proven corruptions among untouched"
            " functions; those that it misses are chosen first",
            metavar="NAME",
        ),
        "readings": option("readings of each corruption (default: {default})", metavar="N"),
    },
    title="reading by a model",
    description=(
        "The endpoint is that of --model, or the table [reader] of config.toml. --max-tokens and --max-cost"
        " limit both models together."
    ),
)
