"""An OpenAI-compatible endpoint, sound or not: each failure has a reason, and the key is never shown."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import socket
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import Answer, completion, endpoint

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Sampling, ToolRequest, Usage
from gistpoint.core.errors import CancelledError, EndpointError, SettingsError
from gistpoint.core.running import CancelToken
from gistpoint.sandbox.endpoints.meanings import retry_after
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.retrying import Backoff, RetryingModel
from gistpoint.sandbox.endpoints.settings import (
    OPENAI,
    ApiKey,
    EndpointSettings,
    Prices,
    endpoint_settings,
    reader_settings,
)

KEY = "sk-secret-0123456789/abc"
HELLO = [ChatMessage("user", "Hello.")]
OTHERS = ("messages", "model", "tools", "stream", "stream_options")
TOOL = {
    "name": "submit_attempt",
    "description": "Submit.",
    "parameters": {"type": "object", "properties": {}},
}


def model_at(url: str, **changes: Any) -> OpenAICompatibleModel:
    return OpenAICompatibleModel(EndpointSettings("m", url, ApiKey(KEY), **{"timeout_s": 10.0, **changes}))


def asked(*steps: Answer, **changes: Any) -> ChatReply | ChatFailure:
    with endpoint(*steps) as served:
        return model_at(served.url, **changes).complete(HELLO, [TOOL])


def test_a_conversation_is_sent_and_its_reply_read() -> None:
    call = ToolRequest("id-1", "submit_attempt", '{"func_code": "x"}')
    messages = [
        *HELLO,
        ChatMessage("assistant", "", (call,)),
        ChatMessage("tool", "Two fail \ud800.", (), "id-1"),
    ]
    with endpoint(completion("Fine.", ("submit_attempt", {"func_code": "y"}))) as served:
        reply = model_at(served.url).complete(messages, [TOOL])
        (request,), (headers,) = served.requests, served.headers
    assert reply == ChatReply(
        ChatMessage("assistant", "Fine.", (ToolRequest("id-0", "submit_attempt", '{"func_code": "y"}'),)),
        "tool_calls",
        Usage(100, 10),
        "scripted-1",
        request_id="c",
    )
    assert headers["authorization"] == f"Bearer {KEY}"
    assert request["model"] == "m"
    assert request["tools"] == [{"type": "function", "function": TOOL}]
    assert request["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"func_code": "x"}'
    assert request["messages"][2] == {"role": "tool", "content": "Two fail ?.", "tool_call_id": "id-1"}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (429, ChatProblem.RATE_LIMITED),
        (500, ChatProblem.SERVER_ERROR),
        (502, ChatProblem.SERVER_ERROR),
        (503, ChatProblem.SERVER_ERROR),
        (504, ChatProblem.TIMED_OUT),
        (408, ChatProblem.TIMED_OUT),
        (401, ChatProblem.NOT_AUTHORISED),
        (403, ChatProblem.NOT_AUTHORISED),
        (400, ChatProblem.REJECTED),
        (404, ChatProblem.UNKNOWN_MODEL),
        (422, ChatProblem.REJECTED),
    ],
)
def test_statuses(status: int, problem: ChatProblem) -> None:
    failure = asked(Answer({"error": {"message": "because\nof this"}}, status))
    assert isinstance(failure, ChatFailure)
    assert failure.problem is problem
    assert f"answered {status}: because of this." in failure.message


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>busy</html>",
        "[" * 200_000,
        "null",
        "[]",
        '"text"',
        "{}",
        '{"choices": []}',
        '{"choices": null}',
        '{"choices": "no"}',
        '{"choices": [null]}',
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": "no"}]}',
        b"\xff\xfe",
        '{"choices": [{"message": {"content"',
    ],
)
def test_malformed_bodies(body: str | bytes) -> None:
    failure = asked(Answer(body))
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.MALFORMED_REPLY
    assert failure.problem.passing


def test_odd_but_readable_replies() -> None:
    odd = {
        "choices": [
            {
                "message": {
                    "content": [{"type": "text", "text": "a"}, {"text": "b"}, 3],
                    "tool_calls": [
                        None,
                        {"id": 3, "function": {"name": "f", "arguments": {"a": 1}}},
                        {"id": "x"},
                    ],
                    "refusal": "No.",
                },
                "finish_reason": None,
            }
        ],
        "usage": {"prompt_tokens": -1, "completion_tokens": True},
    }
    reply = asked(Answer(odd))
    assert isinstance(reply, ChatReply)
    assert reply.message == ChatMessage("assistant", "ab", (ToolRequest("", "f", '{"a": 1}'),))
    assert reply.refusal == "No."
    assert reply.usage.estimated
    assert reply.usage.prompt_tokens > 10


def test_an_error_in_a_reply_that_says_it_is_fine() -> None:
    failure = asked(Answer({"error": {"code": 429, "message": "slow down"}}))
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.RATE_LIMITED


def test_a_connection_that_breaks_off() -> None:
    failure = asked(Answer({"choices": ["x" * 1000]}, cut=100))
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.NO_CONNECTION


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        failure = model_at(f"http://127.0.0.1:{port}/v1").complete(HELLO, [])
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.NO_CONNECTION
    assert f"127.0.0.1:{port}" in failure.message


def test_a_silent_endpoint_is_given_up_at_the_time_limit() -> None:
    gate = threading.Event()
    try:
        failure = asked(Answer("{}", wait=gate), timeout_s=0.3)
    finally:
        gate.set()
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.TIMED_OUT


def test_a_request_under_way_is_cancelled() -> None:
    gate, cancel = threading.Event(), CancelToken()
    with endpoint(Answer("{}", wait=gate)) as served:
        threading.Timer(0.2, cancel.cancel).start()
        with pytest.raises(CancelledError):
            model_at(served.url).complete(HELLO, [], cancel=cancel)
        gate.set()


def test_prices() -> None:
    reply = asked(completion("x"), prices=Prices(10.0, 100.0))
    assert reply.usage == Usage(100, 10, cost_usd=0.002)
    reply = asked(completion("x", usage={"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.25}))
    assert reply.usage == Usage(1, 2, cost_usd=0.25)


class Waits:
    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float, cancel: CancelToken) -> None:
        self.seconds.append(seconds)


def retried(
    *steps: Answer, backoff: Backoff | None = None
) -> tuple[ChatReply | ChatFailure, list[float], int]:
    waits = Waits()
    with endpoint(*steps) as served:
        answer = RetryingModel(model_at(served.url), backoff or Backoff(), waits).complete(HELLO, [])
        return answer, waits.seconds, len(served.requests)


def test_what_passes_is_tried_again_ever_later() -> None:
    answer, waits, requests = retried(
        Answer("", 500), Answer("<html>"), Answer({"choices": []}), completion("Fine.")
    )
    assert isinstance(answer, ChatReply)
    assert answer.retried == (
        ChatProblem.SERVER_ERROR,
        ChatProblem.MALFORMED_REPLY,
        ChatProblem.MALFORMED_REPLY,
    )
    assert requests == 4
    assert [0.75 * 2**n <= wait <= 2**n for n, wait in enumerate(waits)] == [True] * 3


def test_what_does_not_pass_is_not_tried_again() -> None:
    answer, waits, requests = retried(Answer({"error": "no such model"}, 404))
    assert isinstance(answer, ChatFailure)
    assert (waits, requests) == ([], 1)


def test_it_is_tried_a_bounded_number_of_times_and_waits_no_longer_than_it_may() -> None:
    answer, waits, requests = retried(Answer("", 503), backoff=Backoff(requests=9, longest_s=5.0))
    assert isinstance(answer, ChatFailure)
    assert answer.retried == (ChatProblem.SERVER_ERROR,) * 8
    assert requests == 9
    assert max(waits) <= 5.0


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"Retry-After": "0"}, 0, 0),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5, 1.5),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"Retry-After": "soon"}, 0.75, 1),
        ({"Retry-After": "nan"}, 0.75, 1),
        ({"Retry-After": "-5"}, 0.75, 1),
    ],
)
def test_retry_after(headers: Mapping[str, str], low: float, high: float) -> None:
    answer, (wait,), _ = retried(Answer("", 429, headers), completion("Fine."))
    assert isinstance(answer, ChatReply)
    assert low <= wait <= high


def test_retry_after_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(days=1))
    asked = retry_after({"retry-after": later})
    assert asked is not None
    assert 80_000 < asked <= 86_400
    assert retry_after({}) is None


@pytest.mark.parametrize("year", [1999, 2024, 2070])
def test_a_date_to_retry_after_is_compared_with_the_hosts_own_clock(year: int) -> None:
    date = f"Fri, 31 Dec {year} 23:5{{}} GMT"
    assert retry_after({"retry-after": date.format("9:30"), "date": date.format("9:00")}) == 30.0
    assert retry_after({"retry-after": date.format("8:00"), "date": date.format("9:00")}) == 0.0
    assert retry_after({"retry-after": "2", "date": "nonsense"}) == 2.0


def test_an_endpoint_that_wants_to_be_left_alone_for_hours_is_left() -> None:
    answer, waits, requests = retried(Answer("", 429, {"Retry-After": "7200"}))
    assert isinstance(answer, ChatFailure)
    assert answer.problem is ChatProblem.RATE_LIMITED
    assert (waits, requests) == ([], 1)


def test_waiting_is_cancelled() -> None:
    cancel = CancelToken()
    with endpoint(Answer("", 429, {"Retry-After": "60"})) as served:
        threading.Timer(0.2, cancel.cancel).start()
        with pytest.raises(CancelledError):
            RetryingModel(model_at(served.url)).complete(HELLO, [], cancel=cancel)


def test_tokens_of_failed_requests_count() -> None:
    wasted = Answer({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}})
    answer, _, _ = retried(wasted, completion("Fine."))
    assert isinstance(answer, ChatReply)
    assert (answer.usage, answer.lost) == (Usage(100, 10), Usage(5, 1))
    failed, _, _ = retried(wasted, backoff=Backoff(requests=3))
    assert failed.usage == Usage(15, 3)


def echo(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    """Reply with the key in every member that can contain it."""
    shown = headers["authorization"]
    answer = completion(shown, (f"tool-{shown}", {shown: shown}), refusal=f"No, {shown}", finish=shown)
    assert isinstance(answer.body, dict)
    return Answer(json.dumps({**answer.body, "model": shown}).replace("/", "\\/").replace("k", "\\u006b"))


def test_the_key_is_in_nothing_that_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with endpoint(echo) as served:
        reply = model_at(served.url).complete(HELLO, [TOOL])
    assert isinstance(reply, ChatReply)
    assert "Bearer [key]" in reply.message.content
    assert KEY not in repr(reply)
    assert "0123456789" not in repr(reply)
    assert KEY not in caplog.text


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_the_key_is_in_no_error(status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def refuse(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
        return Answer({"error": {"message": f"Wrong key: {headers['authorization']}"}}, status)

    def raw(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
        return Answer(f"Wrong key: {headers['authorization']}", status)

    for step in (refuse, raw):
        with endpoint(step) as served:
            failure = model_at(served.url).complete(HELLO, [])
        assert isinstance(failure, ChatFailure)
        assert "Wrong key: Bearer [key]" in failure.message
        assert KEY not in repr(failure) + caplog.text


def test_a_key_has_no_text_and_can_not_be_stored() -> None:
    secret = ApiKey(KEY)
    settings = EndpointSettings("m", "http://user:hidden@host:80/hidden/v1?key=hidden", secret)
    for text in (
        repr(secret),
        str(secret),
        f"{secret}",
        repr(settings.key),
        settings.place,
        f"{secret!s:>3}",
    ):
        assert KEY not in text
        assert "hidden" not in text
    assert settings.place == "host:80"
    for store in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="never stored"):
            store(secret)


def test_settings_from_the_environment_win_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        'sandbox = "bwrap"\n[llm]\nmodel = "file"\nbase_url = "http://file/v1"\napi_key = "file-key"\ntimeout_s = 9\n'
        "usd_per_million_prompt_tokens = 1\nusd_per_million_completion_tokens = 2.5\nmax_tokens = 1000\n"
    )
    settings = endpoint_settings(tmp_path, {})
    assert (settings.model, settings.base_url, settings.key.reveal()) == (
        "file",
        "http://file/v1",
        "file-key",
    )
    assert (settings.timeout_s, settings.prices, settings.max_tokens) == (9.0, Prices(1, 2.5), 1000)
    environment = {
        "OPENAI_BASE_URL": "https://env/v1",
        "OPENAI_API_KEY": "env-key\n",
        "GISTPOINT_MODEL": "env",
    }
    settings = endpoint_settings(tmp_path, environment)
    assert (settings.model, settings.base_url, settings.key.reveal()) == ("env", "https://env/v1", "env-key")
    assert endpoint_settings(tmp_path, environment, "asked").model == "asked"


def test_a_reader_has_its_own_endpoint_or_that_of_other_models(tmp_path: Path) -> None:
    environment = {"OPENAI_BASE_URL": "https://env/v1", "OPENAI_API_KEY": "env-key", "GISTPOINT_MODEL": "env"}
    settings = reader_settings(tmp_path, environment, "r")
    assert (settings.model, settings.base_url, settings.key.reveal()) == ("r", "https://env/v1", "env-key")
    llm = '[llm]\napi_key = "llm-key"\ntimeout_s = 9\nusd_per_million_prompt_tokens = 1\n'
    llm += "usd_per_million_completion_tokens = 2\n"
    prices = "[reader]\nusd_per_million_prompt_tokens = 5\nusd_per_million_completion_tokens = 6\n"
    (tmp_path / "config.toml").write_text(llm + prices)
    settings = reader_settings(tmp_path, environment, "r")
    assert (settings.base_url, settings.timeout_s, settings.prices) == ("https://env/v1", 9.0, Prices(5, 6))
    (tmp_path / "config.toml").write_text(llm + '[reader]\nbase_url = "http://own/v1"\n')
    settings = reader_settings(tmp_path, environment, "r")
    assert (settings.base_url, settings.key.reveal(), settings.prices) == ("http://own/v1", "", None)
    environment["GISTPOINT_READER_API_KEY"] = "reader-key"
    assert reader_settings(tmp_path, environment, "r").key.reveal() == "reader-key"
    assert endpoint_settings(tmp_path, environment).key.reveal() == "env-key"


@pytest.mark.parametrize(
    ("file", "environment", "said"),
    [
        ("", {}, "No model was given"),
        ("", {"GISTPOINT_MODEL": "m"}, "No key is set"),
        ("", {"GISTPOINT_MODEL": "m", "OPENAI_BASE_URL": f"ftp://{KEY}"}, "address of the endpoint"),
        ("", {"GISTPOINT_MODEL": "m", "OPENAI_BASE_URL": "http://[x"}, "address of the endpoint"),
        ("", {"GISTPOINT_MODEL": "m", "OPENAI_BASE_URL": "http://x:99999"}, "address of the endpoint"),
        ("", {"GISTPOINT_MODEL": "m", "OPENAI_API_KEY": f"{KEY}\n{KEY}"}, "characters that no key has"),
        ("", {"GISTPOINT_MODEL": "m", "OPENAI_API_KEY": f"{KEY}é"}, "characters that no key has"),
        (f"[llm]\napi_key = '{KEY}", {}, "not valid TOML"),
        ("llm = 3", {}, "must be a table"),
        (f"[llm]\nsecret = '{KEY}'", {}, "'llm.secret' is not known"),
        (f"[lm]\napi_key = '{KEY}'", {}, "'lm' is not known"),
        ("[llm]\nmodel = 'm'\napi_key = 3", {}, "must be a string"),
        ("[llm]\nmodel = 'm'\napi_key = 'k'\ntimeout_s = -1", {}, "a number that is at least 0"),
        ("[llm]\nmodel = 'm'\napi_key = 'k'\nusd_per_million_prompt_tokens = 1", {}, "one side only"),
    ],
)
def test_settings_that_will_not_do(tmp_path: Path, file: str, environment: dict[str, str], said: str) -> None:
    (tmp_path / "config.toml").write_text(file)
    with pytest.raises((EndpointError, SettingsError), match=said) as raised:
        endpoint_settings(tmp_path, environment)
    assert KEY not in str(raised.value)


def test_an_endpoint_without_a_key() -> None:
    with endpoint(completion("Fine.")) as served:
        settings = endpoint_settings(Path("nowhere"), {"GISTPOINT_MODEL": "m", "OPENAI_BASE_URL": served.url})
        assert isinstance(OpenAICompatibleModel(settings).complete(HELLO, []), ChatReply)
        assert served.headers[0]["authorization"] == "Bearer none"


def test_no_part_of_the_key_is_left_where_an_error_is_cut() -> None:
    failure = asked(Answer({"error": {"message": f"{'x' * 290} {KEY}"}}, 400))
    assert isinstance(failure, ChatFailure)
    assert "xxx" in failure.message
    assert "sk-s" not in failure.message


# Request fields besides the messages


def test_nothing_is_sent_that_is_not_set() -> None:
    with endpoint(completion("Fine.")) as served:
        model_at(served.url).complete(HELLO, [])
        (request,) = served.requests
    assert sorted(request) == ["messages", "model", "stream", "stream_options"]


def test_sampling_is_sent_as_the_endpoint_spells_it() -> None:
    sampling = Sampling(0.0, 0.9, 7, 2_000, "high", 1_000)
    with endpoint(completion("Fine.")) as served:
        model_at(served.url, sampling=sampling).complete(HELLO, [TOOL])
        (request,) = served.requests
    given = {name: value for name, value in request.items() if name not in OTHERS}
    assert given == {
        "temperature": 0.0,
        "top_p": 0.9,
        "seed": 7,
        "max_tokens": 2_000,
        "reasoning_effort": "high",
        "reasoning": {"max_tokens": 1_000},
    }
    fields = EndpointSettings("m", OPENAI, sampling=Sampling(max_output_tokens=5)).sampling_fields
    assert fields == {"max_completion_tokens": 5}


@pytest.mark.parametrize("echo_reasoning", [False, True])
def test_reasoning_is_read_and_sent_back_only_where_that_is_set(echo_reasoning: bool, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"[llm]\necho_reasoning = {str(echo_reasoning).lower()}\n")
    with endpoint(
        completion("Fine.", reasoning_content="Hm."), completion("Fine.", reasoning="Hm.")
    ) as served:
        settings = endpoint_settings(tmp_path, {"GISTPOINT_MODEL": "m", "OPENAI_BASE_URL": served.url})
        model, messages = OpenAICompatibleModel(settings), HELLO
        for _ in range(2):
            reply = model.complete(messages, [])
            assert isinstance(reply, ChatReply)
            assert reply.message.reasoning == "Hm."
            messages = [*messages, reply.message, *HELLO]
        assert ("reasoning_content" in served.requests[1]["messages"][1]) is echo_reasoning


def test_what_an_endpoint_counts_apart() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    assert asked(completion("x", usage=usage)).usage == Usage(100, 10, cached_tokens=64, reasoning_tokens=4)
    # https://openrouter.ai/docs/guides/features/prompt-caching
    written = {**usage, "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 30}}
    assert asked(completion("x", usage=written)).usage.written_tokens == 30
    written["prompt_tokens_details"] = {"cached_tokens": 64, "cache_write_tokens": 300}
    assert asked(completion("x", usage=written)).usage.written_tokens == 36
    odd = {**usage, "prompt_tokens_details": [3], "completion_tokens_details": {"reasoning_tokens": 9_999}}
    assert asked(completion("x", usage=odd)).usage == Usage(100, 10, reasoning_tokens=10)


FULL = {
    "OpenAI": (
        400,
        {"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in "
                   "8227 tokens. Please reduce the length of the messages.", "type": "invalid_request_error",
                   "param": "messages", "code": "context_length_exceeded"}},
    ),  # crewAIInc/crewAI-examples#121
    "vLLM": (
        400,
        {"object": "error", "message": "This model's maximum context length is 16384 tokens. However, you requested "
         "122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length"
         " of the messages or "
         "completion.", "type": "BadRequestError", "param": None, "code": 400},
    ),  # vllm-project/vllm#20409 (0.9), the members as in #4667
    "llama.cpp": (
        400,
        {"error": {"code": 400, "message": "request (4390 tokens) exceeds the available context size (4096 tokens), "
                   "try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 4390, "n_ctx": 4096}},
    ),  # ggml-org/llama.cpp#19774 (build 8064)
    "llama.cpp, before": (
        500,
        {"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context "
                   "size or enable context shift", "type": "exceed_context_size_error", "n_prompt_tokens": 1407,
                   "n_ctx": 256}},
    ),  # ggml-org/llama.cpp#15780
    "OpenRouter": (
        400,
        {"error": {"message": "This model's maximum context length is 8192 tokens, however you requested 8977 tokens "
                   "(8977 in your prompt; 0 for the completion). Please reduce your prompt; or"
                   " completion length.",
                   "type": "invalid_request_error", "param": None, "code": None}},
    ),  # OpenRouterTeam/openrouter-examples#10
}  # fmt: skip
"""Servers' answers to a conversation that is too long, with the reports that contain the bodies."""


@pytest.mark.parametrize("server", FULL)
def test_a_conversation_that_is_too_long_is_told_from_other_faults(server: str) -> None:
    status, body = FULL[server]
    answer, _, requests = retried(Answer(body, status))
    assert isinstance(answer, ChatFailure)
    assert (answer.problem, requests) == (ChatProblem.CONTEXT_FULL, 1)


def test_a_model_that_the_endpoint_does_not_have() -> None:
    for status, error in (
        (404, {"message": "The model `m` does not exist.", "type": "NotFoundError"}),
        (400, {"message": "m is not a valid model ID", "code": 400}),
    ):
        failure = asked(Answer({"error": error}, status))
        assert isinstance(failure, ChatFailure)
        assert failure.problem is ChatProblem.UNKNOWN_MODEL
        assert failure.problem.of_endpoint


def test_an_address_without_a_path_that_answers_404_may_lack_one() -> None:
    with endpoint(Answer("404 page not found", 404)) as served:
        bare = model_at(served.url.removesuffix("/v1")).complete(HELLO, [])
        whole = model_at(served.url).complete(HELLO, [])
    assert isinstance(bare, ChatFailure)
    assert isinstance(whole, ChatFailure)
    assert "its address may have to end in /v1." in bare.message
    assert "/v1" not in whole.message


def test_the_servers_own_word_in_a_reply_that_is_an_error_is_told() -> None:
    failure = asked(Answer({"error": "out of memory"}))
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, failure.message) == (
        ChatProblem.SERVER_ERROR,
        "The endpoint answered with an error: out of memory",
    )


def test_a_reply_that_was_lost_is_counted_by_what_was_sent() -> None:
    failure = asked(Answer({"choices": ["x" * 1000]}, cut=100), prices=Prices(3.0, 1.0))
    assert failure.usage.estimated
    assert failure.usage.prompt_tokens > 10
    assert failure.usage.cost_usd == pytest.approx(failure.usage.prompt_tokens * 3 / 1e6)
