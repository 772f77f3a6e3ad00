"""What a request may cost at most is reserved by the limit on its reply that is really sent."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from gistpoint.core.agents.settings import AgentSettings, TokenPrice, limited
from gistpoint.core.chat import CHAT_APIS, ChatApi, ChatMessage, Sampling
from gistpoint.sandbox.endpoints import anthropic_bodies, gemini_bodies
from gistpoint.sandbox.endpoints.settings import OPENAI, EndpointSettings
from gistpoint.sandbox.scaffolds.passed_replies import limit_in, replies_in

PRICE = TokenPrice(1.0, 10.0, 0.5, 1.25)
SAMPLINGS = [
    Sampling(max_output_tokens=most, thinking_tokens=thinking)
    for most, thinking in product((None, 1, 500, 100_000), (None, 0, 4_000, 60_000))
]
PATHS: dict[ChatApi, str] = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
}


def sent_by(api: ChatApi, sampling: Sampling, url: str = "http://h") -> dict[str, Any]:
    """Return the body of a request, or its part with the sampling."""
    settings = EndpointSettings("m", url, api=api, sampling=sampling)
    messages = [ChatMessage("user", "Hello.")]
    if api == "openai":
        return settings.sampling_fields
    bodies = anthropic_bodies if api == "anthropic" else gemini_bodies
    body: dict[str, Any] = bodies.request_of(messages, [], settings)
    return body


@pytest.mark.parametrize("api", CHAT_APIS)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("context", [2_000, 128_000])
def test_the_reserved_reply_is_as_long_as_the_sent_limit_allows(
    api: ChatApi, sampling: Sampling, context: int
) -> None:
    for chosen in (sampling, limited(sampling, context)):
        settings = AgentSettings(api=api, sampling=chosen, price=PRICE, context_tokens=context)
        limit = limit_in(PATHS[api], sent_by(api, chosen))
        assert settings.sent_limit == limit
        longest = max(32_000, context - 700) if limit is None else limit
        assert settings.estimate(700).cost_usd == pytest.approx((700 * 1.25 + longest * 10.0) / 1e6)
        assert settings.estimate_with(700, limit) == settings.estimate(700)


def test_openais_own_limit_has_another_name() -> None:
    fields = sent_by("openai", Sampling(max_output_tokens=9), OPENAI)
    assert limit_in(PATHS["openai"], fields) == 9


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_with_a_limit_on_costs_every_request_has_a_limit(sampling: Sampling) -> None:
    limit = limited(sampling, 128_000).max_output_tokens
    least = 0 if sampling.thinking_tokens is None else sampling.thinking_tokens + 8_000
    assert limit == (sampling.max_output_tokens or max(32_000, least))
    assert limited(sampling, 8_000).max_output_tokens == (sampling.max_output_tokens or max(2_000, least))


@pytest.mark.parametrize(
    ("path", "request_body", "limit"),
    [
        ("/v1/messages", {"max_tokens": 64_000}, 64_000),
        ("/v1/messages/count_tokens", {}, 0),
        ("/v1/responses", {"max_output_tokens": 5}, 5),
        ("/v1/responses", {"max_output_tokens": None}, None),
        ("/v1/chat/completions", {"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ("/v1/chat/completions", {"max_tokens": "5"}, None),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", {"generationConfig": {"maxOutputTokens": 3}}, 3),
        ("/v1beta/models/m:generateContent", {"generationConfig": []}, None),
        ("/v1/chat/completions/", {"max_tokens": 5}, 5),
        ("/v1/chat/completions", {"max_output_tokens": 5, "generationConfig": {"maxOutputTokens": 3}}, None),
        ("/v1/messages", {"max_completion_tokens": 5}, None),
        ("/v1/responses", {"max_tokens": 5}, None),
        ("/v1beta/models/m:generateContent", {"max_tokens": 5}, None),
    ],
)
def test_the_limit_of_a_programs_own_request(
    path: str, request_body: dict[str, Any], limit: int | None
) -> None:
    assert limit_in(path, request_body) == limit


@pytest.mark.parametrize(
    ("path", "request_body", "replies"),
    [
        ("/v1/chat/completions", {}, 1),
        ("/v1/chat/completions", {"n": 4}, 4),
        ("/v1/chat/completions", {"n": 2, "best_of": 5}, 5),
        ("/v1/chat/completions", {"n": "3"}, 3),
        ("/v1/chat/completions", {"n": 3.0}, 3),
        *(("/v1/chat/completions", {"n": odd}, 1) for odd in (None, 0, -2, "x", [2], 1e999, "nan", True)),
        ("/v1/messages", {"n": 4}, 1),
        ("/v1/messages/count_tokens", {"n": 4}, 1),
        ("/v1beta/models/m:generateContent", {"generationConfig": {"candidateCount": 4}}, 4),
        ("/v1beta/models/m:streamGenerateContent", {"generation_config": {"candidate_count": 4}}, 4),
    ],
)
def test_each_reply_that_a_program_asks_for_is_reserved(
    path: str, request_body: dict[str, Any], replies: int
) -> None:
    assert replies_in(path, request_body) == replies


def test_several_replies_cost_their_tokens_each_and_the_prompt_once() -> None:
    settings = AgentSettings(price=PRICE, context_tokens=128_000)
    one, three = (settings.estimate_with(700, 500, replies).cost_usd for replies in (1, 3))
    assert one == pytest.approx((700 * 1.25 + 500 * 10.0) / 1e6)
    assert three == pytest.approx((700 * 1.25 + 3 * 500 * 10.0) / 1e6)
    unlimited = settings.estimate_with(700, None, 2).cost_usd
    assert unlimited == pytest.approx((700 * 1.25 + 2 * (128_000 - 700) * 10.0) / 1e6)
