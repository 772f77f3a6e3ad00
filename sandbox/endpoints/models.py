"""Makes the chat model at an endpoint, by the API that its settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gistpoint.core.errors import EndpointError, extra_hint
from gistpoint.core.ports import ChatModel
from gistpoint.sandbox.endpoints.settings import EndpointSettings

if TYPE_CHECKING:
    from gistpoint.sandbox.endpoints.throttle import HostGate


def chat_model_at(settings: EndpointSettings, gate: HostGate | None = None) -> ChatModel:
    """Return the model at an endpoint, which sends one request per call; `gate` is the gate of its host.

    Raises `EndpointError` if the package for its API is not installed, or if the API can't have such a model.
    """
    try:
        return _made(settings, gate)
    except ModuleNotFoundError as error:
        extra = settings.api if settings.api in ("anthropic", "gemini") else "llm"
        raise EndpointError(
            f"Chat models need packages that are not installed, such as {error.name}.",
            hint=extra_hint(extra),
        ) from error


def _made(settings: EndpointSettings, gate: HostGate | None) -> ChatModel:
    # Imported here, because each module needs the packages of a different extra.
    if settings.api == "anthropic":
        from gistpoint.sandbox.endpoints.anthropic_messages import AnthropicModel

        return AnthropicModel(settings, gate)
    if settings.api == "gemini":
        from gistpoint.sandbox.endpoints.gemini_content import GeminiModel

        return GeminiModel(settings, gate)
    from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel

    return OpenAICompatibleModel(settings, gate)
