"""Documented and recorded bodies of ten servers, how they are read, and what failures mean (decision 147).

The bodies are in `bodies`, with their sources; long strings, ids and times are shortened. `from memory` means
that no document was available. The servers were not run, except llama.cpp's for one body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import Answer, completion, endpoint

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.sandbox.endpoints.meanings import PARTIES, PROBLEMS, SIGNS, FailureMeaning, meaning_of
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.replies import BROKEN, FINISHES, UNREADABLE
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings

FILES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "bodies").glob("*.json"))
}
SERVERS = {name: file for name, file in FILES.items() if name != "others"}
CASES = (
    *("call", "reasoning", "cut", "refused", "filtered", "context full", "rate limit", "quota gone"),
    *("wrong key", "overloaded", "error inside a 200", "malformed call"),
)
BODIES = {
    f"{name}, {body['what']}, {number}": body
    for name, file in FILES.items()
    for number, body in enumerate(file["bodies"])
}
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "agents.md"
HELLO = (ChatMessage("user", "Hello."),)


def answered(body: object, status: int = 200) -> ChatReply | ChatFailure:
    with endpoint(Answer(body, status)) as served:
        model = OpenAICompatibleModel(EndpointSettings("m", served.url, ApiKey(""), timeout_s=60.0))
        return model.complete(HELLO, [])


def read_of(reply: ChatReply) -> dict[str, Any]:
    """Return the reply read from a body, in the form of the files."""
    usage, message = reply.usage, reply.message
    return {
        "content": message.content,
        "calls": [[call.id, call.name, call.arguments] for call in message.tool_calls],
        "reasoning": message.reasoning,
        "finish": reply.finish,
        "refusal": reply.refusal,
        "sent_back": dict(message.extra),
        "sent_back_of_calls": [dict(call.extra) for call in message.tool_calls],
        "tokens": [usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens],
    }


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_read_as_its_server_means_it(name: str) -> None:
    body: Mapping[str, Any] = BODIES[name]
    read = body["read"]
    answer = answered(body["body"], body["status"])
    if "problem" in read:
        assert isinstance(answer, ChatFailure)
        assert answer.problem == read["problem"]
        assert read["words"] in answer.message
        return
    assert isinstance(answer, ChatReply)
    empty = {
        "content": "",
        "calls": [],
        "reasoning": "",
        "sent_back": {},
        "sent_back_of_calls": [{} for _ in read.get("calls", ())],
    }
    found = read_of(answer)
    assert {key: found[key] for key in {**empty, **read} if key != "refusal"} == {
        key: value for key, value in {**empty, **read}.items() if key != "refusal"
    }
    assert read.get("refusal", "") in answer.refusal
    assert bool(answer.refusal) == ("refusal" in read)


@pytest.mark.parametrize("name", SERVERS)
def test_every_case_of_a_server_has_a_body_or_a_reason_for_having_none(name: str) -> None:
    file = SERVERS[name]
    known = {body["what"] for body in file["bodies"]}
    assert known - {"unknown", "unknown model"} | file["none"].keys() == set(CASES)
    assert not known & file["none"].keys()
    assert all(body["source"] for body in file["bodies"])


def test_the_servers_are_the_ten_of_the_guide() -> None:
    assert len(SERVERS) == 10
    text = GUIDE.read_text(encoding="utf-8")
    for file in SERVERS.values():
        assert file["server"].partition(",")[0] in text


@pytest.mark.parametrize("name", SERVERS)
def test_members_that_are_not_read_reach_their_own_host_as_they_came(name: str) -> None:
    replies = [body for body in SERVERS[name]["bodies"] if body["status"] == 200 and "calls" in body["read"]]
    for body in replies:
        read = body["read"]
        with endpoint(Answer(body["body"]), completion("Done.")) as served:
            model = OpenAICompatibleModel(EndpointSettings("m", served.url, ApiKey(""), timeout_s=60.0))
            reply = model.complete(HELLO, [])
            assert isinstance(reply, ChatReply)
            model.complete([*HELLO, reply.message], [])
        sent = served.requests[1]["messages"][1]
        members = {key: value for key, value in sent.items() if key not in ("role", "content", "tool_calls")}
        assert members == read.get("sent_back", {})
        of_calls = [
            {k: v for k, v in call.items() if k not in ("id", "type", "function")}
            for call in sent["tool_calls"]
        ]
        assert of_calls == read.get("sent_back_of_calls", [{} for _ in read["calls"]])


# The party that a failure counts against


def rows_of_guide() -> dict[str, tuple[str, ...]]:
    """Return the rows of the guide's table of failures, by their first cell."""
    text = GUIDE.read_text(encoding="utf-8")
    table = text[text.index("| reported by the endpoint |") :].split("\n\n")[0]
    rows = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def test_the_guide_has_a_row_for_every_meaning_and_tells_whose_it_is() -> None:
    rows = rows_of_guide()
    assert rows.keys() == {meaning.value for meaning in FailureMeaning}
    for meaning in FailureMeaning:
        recognised, whose, effect = rows[meaning.value]
        assert whose == PARTIES[meaning].value
        problem = PROBLEMS.get(meaning)
        if problem is not None and problem is not ChatProblem.CONTEXT_FULL:
            assert f"`{problem}`" in effect
        statuses = {status for sign in SIGNS if sign.meaning is meaning for status in sign.statuses if status}
        told = {int(number) for number in re.findall(r"\b[45]\d\d\b", recognised)}
        assert statuses - set(range(500, 600)) <= told
        codes = {code for sign in SIGNS if sign.meaning is meaning for code in sign.codes}
        assert codes <= set(re.findall(r"`(\w+)`", recognised))


def test_the_guide_names_every_word_for_a_finish() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for word in (*FINISHES, *BROKEN, *UNREADABLE):
        assert f"`{word}`" in text


def test_every_code_and_every_sentence_of_the_table_has_a_body() -> None:
    for sign in SIGNS:
        bodies = [body for body in BODIES.values() if not sign.statuses or body["status"] in sign.statuses]
        texts = [json.dumps(body["body"]) for body in bodies if means(body) is sign.meaning]
        for code in sign.codes:
            assert any(f'"{code}"' in text for text in texts), code
        for sentence in sign.sentences:
            assert any(re.search(sentence, told, re.IGNORECASE) for told in map(unescaped, texts)), sentence


def means(body: Mapping[str, Any]) -> FailureMeaning:
    return meaning_of(0 if body["status"] == 200 else body["status"], body["body"])


def unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\n", "\n")


# The reverse error: words of the repository, the request or the model in an error

FULL = "prompt is too long: 210134 tokens > 200000 maximum"
EMPTY = "Your credit balance is too low to access the Anthropic API."
FILTER = "Content Exists Risk"


@pytest.mark.parametrize("words", [FULL, EMPTY, FILTER, "error parsing tool call: raw='x', err=y"])
@pytest.mark.parametrize(
    "quoted",
    [
        "Invalid value for messages[3].content: '{}'",
        'messages.2: Input should be a valid string, input_value="{}"',
        "Template error at line 7:\n{}",
        "Unexpected token in tool result {}",
        "{{'input': ['{}']}}",
        "tests/test_limits.py:10: AssertionError: assert '{}' in out",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
def test_quoted_words_do_not_decide(words: str, quoted: str, status: int) -> None:
    expected = FailureMeaning.OVERLOADED if status == 500 else FailureMeaning.UNKNOWN
    message = quoted.format(words)
    assert meaning_of(status, {"error": {"message": message}}) is expected
    assert meaning_of(status, {"error": {"message": "No.", "failed_generation": words}}) is expected
    assert meaning_of(status, {"error": {"message": "No.", "metadata": {"raw": message}}}) is expected


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_words_of_a_full_context_count_only_with_a_refused_request(status: int) -> None:
    assert meaning_of(status, {"error": {"message": FULL}}) is not FailureMeaning.CONTEXT_FULL


@pytest.mark.parametrize(
    "before",
    ["", "Error code: 400 - ", "litellm.BadRequestError: AnthropicException - ", "ValidationException: "],
)
def test_what_a_gateway_puts_before_a_sentence_does_not_hide_it(before: str) -> None:
    assert meaning_of(400, {"error": {"message": before + FULL}}) is FailureMeaning.CONTEXT_FULL


def test_an_error_of_no_known_form_is_the_endpoints_and_shown_as_it_is() -> None:
    for body in ({"detail": [{"loc": ["body"], "msg": "odd"}]}, {"oops": 7}, [1, 2], {"errors": ["a", "b"]}):
        answer = answered(body, 400)
        assert isinstance(answer, ChatFailure)
        assert answer.problem is ChatProblem.REJECTED
        shown = body["detail"] if isinstance(body, dict) and "detail" in body else body
        assert json.dumps(shown) in answer.message


def test_an_error_is_bounded_and_one_line() -> None:
    answer = answered({"error": {"message": "long\n" * 10_000}}, 400)
    assert isinstance(answer, ChatFailure)
    assert len(answer.message) < 1_200
    assert "\n" not in answer.message


# Empty replies


def test_an_empty_reply_is_one_where_tokens_were_counted_or_it_was_filtered() -> None:
    for finish, tokens in (("stop", 1), ("stop", None), ("content_filter", 0), ("length", 0)):
        usage = None if tokens is None else {"prompt_tokens": 9 * tokens, "completion_tokens": tokens}
        choice = {"message": {"role": "assistant", "content": ""}, "finish_reason": finish}
        assert isinstance(answered({"choices": [choice], "usage": usage}), ChatReply)


def test_a_call_that_a_provider_of_a_gateway_could_not_read_keeps_the_model_s_text() -> None:
    (inner,) = [
        body["body"] for body in FILES["groq"]["bodies"] if "brave_search" in json.dumps(body["body"])
    ]
    passed_on = {
        "error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": json.dumps(inner)}}
    }
    for status, body in ((400, passed_on), (200, passed_on)):
        answer = answered(body, status)
        assert isinstance(answer, ChatReply)
        (call,) = answer.message.tool_calls
        assert (call.name, call.arguments) == ("brave_search", inner["error"]["failed_generation"])


@pytest.mark.parametrize("error", [None, {}, "", {"code": 0, "message": ""}, False])
def test_an_error_of_nothing_is_none(error: object) -> None:
    body = completion("Hello.").body
    assert isinstance(body, dict)
    assert isinstance(answered({**body, "error": error}), ChatReply)


@pytest.mark.parametrize("finish", ["end_turn", "eos", "tool_calls"])
def test_an_empty_reply_with_a_known_finish_is_the_model_s(finish: str) -> None:
    choice = {"message": {"role": "assistant", "content": ""}, "finish_reason": finish}
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    assert isinstance(answered({"choices": [choice], "usage": usage}), ChatReply)


@pytest.mark.parametrize(
    ("sent", "received", "is_estimated"), [(0, 0, True), (0, 700, True), (700, 0, True), (700, 700, False)]
)
def test_a_reply_that_was_received_has_tokens(sent: int, received: int, is_estimated: bool) -> None:
    usage = {"prompt_tokens": sent, "completion_tokens": received}
    answer = answered(completion("Hello, how are you today?", usage=usage).body)
    assert isinstance(answer, ChatReply)
    assert answer.usage.estimated == is_estimated
    assert min(answer.usage.prompt_tokens, answer.usage.completion_tokens) > 3
    counted = (answer.usage.prompt_tokens == 700, answer.usage.completion_tokens == 700)
    assert counted == (sent == 700, received == 700)


def test_xai_reports_its_cost_in_ticks() -> None:
    """The prices of grok-3-mini give the same cost.

    They are 0.3 dollars per million tokens sent, 0.075 per million cached, and 0.5 per million received.
    """
    (body,) = [body for body in FILES["xai"]["bodies"] if body["what"] == "call"]
    answer = answered(body["body"])
    assert isinstance(answer, ChatReply)
    assert answer.usage.cost_usd == pytest.approx((281 * 0.3 + 7 * 0.075 + 377 * 0.5) / 1e6)


def test_an_unknown_finish_is_the_endpoints_only_without_a_reply() -> None:
    for content, kind in (("", ChatFailure), ("Hello.", ChatReply)):
        choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "eos_of_2031"}
        body = {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
        answer = answered(body)
        assert isinstance(answer, kind)
        if isinstance(answer, ChatFailure):
            assert (answer.problem, answer.usage.tokens) == (ChatProblem.MALFORMED_REPLY, 12)
            assert "eos_of_2031" in answer.message
