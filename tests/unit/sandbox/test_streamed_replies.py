"""A reply that is sent in pieces equals the reply that would have been sent whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from scripted_endpoint import Answer, chunk, completion, endpoint, events_of

from gistpoint.core import merging
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.core.merging import EndlessReplyError
from gistpoint.sandbox.endpoints import events, streamed
from gistpoint.sandbox.endpoints.events import EventReader, ServerEvent
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.receiving import Received
from gistpoint.sandbox.endpoints.replies import reply_of
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings

KEY = ApiKey("sk-secret-0123456789/abc")


def received(*blocks: bytes) -> Received:
    reply = Received()
    reply.take(blocks, lambda: None)
    return reply


def read(*blocks: bytes) -> ChatReply | ChatFailure:
    """Return the reply in blocks, read as the client reads it."""
    reply = received(*blocks)
    assert reply.complete
    return reply_of(KEY.removed_from(reply.body()), None, 100)


def message(*chunks: object) -> ChatMessage:
    reply = read(events_of(*chunks))
    assert isinstance(reply, ChatReply)
    return reply.message


# Any reply, cut anywhere

TEXT = st.text(max_size=12) | st.sampled_from(["", "na" * 5, "😀é\u2028\r\n\x00", '{"a": 1}', "data: [DONE]"])
NAMES = st.sampled_from(["read_file", "submit_attempt", "f"])
DETAIL = st.one_of(
    st.builds(
        lambda text, signature: {"type": "reasoning.text", "text": text, "signature": signature},
        TEXT.filter(bool),
        st.none() | st.just("sig=="),
    ),
    st.builds(lambda data: {"type": "reasoning.encrypted", "data": data, "id": "r-1"}, st.just("b64==")),
)
CALL = st.fixed_dictionaries(
    {"id": st.uuids().map(str), "function": st.fixed_dictionaries({"name": NAMES, "arguments": TEXT})},
    optional={"extra_content": st.just({"google": {"thought_signature": "c2ln"}})},
)
MESSAGE = st.fixed_dictionaries(
    {"content": st.none() | TEXT},
    optional={
        "reasoning_content": TEXT,
        "reasoning": TEXT,
        "refusal": TEXT,
        "tool_calls": st.lists(CALL, min_size=1, max_size=3),
        "reasoning_details": st.lists(DETAIL, min_size=1, max_size=3),
    },
)
USAGE = st.none() | st.just({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})
FINISH = st.sampled_from(["stop", "tool_calls", "length", "content_filter"])


def cut(draw: Any, data: bytes) -> list[bytes]:
    """Return encoded text in pieces, which may end within a character."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    return [data[left:right] for left, right in zip([0, *places], [*places, len(data)], strict=True)]


def raw(piece: bytes) -> str:
    return piece.decode("utf-8", "surrogateescape")


def deltas(draw: Any, said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the deltas of a message, as a server may send them."""
    yield {"role": "assistant", "content": draw(st.sampled_from([None, ""]))}
    for name in ("reasoning_content", "reasoning", "content", "refusal"):
        for piece in cut(draw, (said.get(name) or "").encode()):
            yield {name: raw(piece)}
    for number, detail in enumerate(said.get("reasoning_details", ())):
        key = "text" if "text" in detail else "data"
        pieces = cut(draw, detail[key].encode()) if key == "text" else [detail[key].encode()]
        for place, piece in enumerate(pieces):
            once = {name: value for name, value in detail.items() if name == "type" or place == 0}
            yield {"reasoning_details": [{**once, key: raw(piece), "index": number}]}
    repeats = draw(st.booleans())
    for number, call in enumerate(said.get("tool_calls", ())):
        for place, piece in enumerate(cut(draw, call["function"]["arguments"].encode())):
            function = {"arguments": raw(piece)}
            if place and not repeats:
                yield {"tool_calls": [{"index": number, "function": function}]}
                continue
            others = {**function, "name": call["function"]["name"]}
            yield {"tool_calls": [{"index": number, "type": "function", **call, "function": others}]}


def body_of(said: dict[str, Any], finish: str, usage: object) -> dict[str, Any]:
    about = {"id": "c", "object": "chat.completion", "model": "m", "system_fingerprint": "fp"}
    choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": finish}
    return {**about, "choices": [choice], **({"usage": usage} if usage else {})}


def chunks_of(draw: Any, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    about = {**whole, "object": "chat.completion.chunk"}
    about.pop("usage", None)
    (choice,) = about.pop("choices")
    usage = whole.get("usage")
    for delta in deltas(draw, choice["message"]):
        yield {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None}
    with_usage = draw(st.booleans())
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield {**about, "choices": [last], **({"usage": usage} if usage and with_usage else {})}
    if usage and not with_usage:
        yield {**about, "choices": [], "usage": usage}


def sent(draw: Any, chunks: Iterable[dict[str, Any]]) -> bytes:
    """Return the chunks as events, with any line ends, comments and meaningless fields."""
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    ascii = draw(st.booleans())
    lines: list[str] = []
    for value in chunks:
        lines += draw(st.sampled_from([[], [": keep-alive", ""], ["event: message"], ["id: 7", "retry: 9"]]))
        text = json.dumps(value, ensure_ascii=False)
        with suppress(UnicodeEncodeError):
            text = json.dumps(value) if ascii and text.encode() else text
        lines += [draw(st.sampled_from(["data: ", "data:"])) + text, ""]
    if draw(st.booleans()):
        lines += ["data: [DONE]", *([""] if draw(st.booleans()) else [])]
    return end.join([*lines, ""]).encode("utf-8", "surrogateescape")


@given(st.data(), MESSAGE, FINISH, USAGE)
@examples(300)
def test_any_reply_in_any_pieces_is_the_reply_sent_whole(
    data: st.DataObject, said: dict[str, Any], finish: str, usage: object
) -> None:
    for number, detail in enumerate(said.get("reasoning_details", ())):
        detail["index"] = number
    whole = body_of(said, finish, usage)
    stream = sent(data.draw, chunks_of(data.draw, whole))
    expected = read(json.dumps(whole).encode())
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    blocks = [stream[left:right] for left, right in zip([0, *places], [*places, len(stream)], strict=True)]
    assert read(*blocks) == expected
    # Nothing of the message is lost or made up, even what `reply_of` does not read.
    built = received(*blocks).body()
    assert isinstance(built, dict)
    wanted = {name: value for name, value in said.items() if name not in ("content", "tool_calls")}
    found = {name: value for name, value in built["choices"][0]["message"].items() if name in wanted}
    assert {name: value or "" for name, value in wanted.items()} == {**dict.fromkeys(wanted, ""), **found}
    for call, asked in zip(
        built["choices"][0]["message"].get("tool_calls", ()), said.get("tool_calls", ()), strict=True
    ):
        assert call == {"type": "function", **asked}


def test_halves_of_a_character_are_joined() -> None:
    high, low = (
        '{"choices":[{"delta":{"content":"\\ud83d"}}]}',
        '{"choices":[{"delta":{"content":"\\ude00"}}]}',
    )
    end = chunk("stop")
    assert message(high, low, end).content == "😀"
    assert message(high, end).content == "?"  # as in a reply that is sent whole


# Calls


def piece(index: int | None, id: str | None = None, name: str | None = None, **others: Any) -> dict[str, Any]:
    function = {key: value for key, value in {"name": name, **others}.items() if value is not None}
    call = {"index": index, "id": id, "function": function}
    return chunk(tool_calls=[{key: value for key, value in call.items() if value is not None}])


def calls(*chunks: object) -> list[tuple[str, str, str]]:
    found = message(*chunks, chunk("tool_calls")).tool_calls
    return [(call.id, call.name, call.arguments) for call in found]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        # Two calls, their pieces mixed
        (
            [
                piece(1, "b", "g", arguments=""),
                piece(0, "a", "f", arguments="{"),
                piece(1, arguments="[]"),
                piece(0, arguments="}"),
            ],
            [("a", "f", "{}"), ("b", "g", "[]")],
        ),
        # lmdeploy#3412: vLLM sends every call with index 0, and SGLang repeats the id
        (
            [
                piece(0, "a", "f", arguments=""),
                piece(0, "", arguments="{}"),
                piece(0, "b", "f", arguments=""),
                piece(0, "", arguments="[]"),
            ],
            [("a", "f", "{}"), ("b", "f", "[]")],
        ),
        (
            [
                piece(0, "0", "f", arguments="{"),
                piece(0, "0", arguments="}"),
                piece(0, "1", "f", arguments="{}"),
            ],
            [("0", "f", "{}"), ("1", "f", "{}")],
        ),
        # A separate id for each piece of one call
        ([piece(0, "a", "f", arguments="{"), piece(0, "z", arguments="}")], [("a", "f", "{}")]),
        # Whole calls without ids, all with index 0, as Gemini's
        (
            [piece(0, "", "f", arguments='{"a": 1}'), piece(0, "", "f", arguments='{"a": 1}')],
            [("", "f", '{"a": 1}'), ("", "f", '{"a": 1}')],
        ),
        # A name with each piece
        ([piece(0, "a", "f", arguments="{"), piece(0, "a", "f", arguments="}")], [("a", "f", "{}")]),
        # No index
        (
            [
                piece(None, "a", "f", arguments="{"),
                piece(None, arguments="}"),
                piece(None, "b", "g", arguments="{}"),
            ],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        # Arguments as an object, or none
        ([piece(0, "a", "f", arguments={"a": [1]}), piece(1, "b", "g")], [("a", "f", '{"a": [1]}'), ("b", "g", "")]),
        # The name in two pieces
        ([piece(0, "a", "read_"), piece(0, name="file", arguments="{}")], [("a", "read_file", "{}")]),
    ],
)  # fmt: skip
def test_calls_by_index_and_id(chunks: Sequence[object], expected: object) -> None:
    assert calls(*chunks) == expected


# Other members


def built(*chunks: object) -> dict[str, Any]:
    body = received(events_of(*chunks, chunk("stop"))).body()
    assert isinstance(body, dict)
    found: dict[str, Any] = body["choices"][0]["message"]
    return found


def test_reasoning_details_are_merged_by_index_and_type() -> None:
    details = [
        [{"type": "reasoning.text", "text": "I ", "index": 0, "format": "x", "signature": None}],
        [{"type": "reasoning.text", "text": "think", "index": 0, "format": "x"}],
        [{"type": "reasoning.text", "signature": "sig", "index": 0}],
        [{"type": "reasoning.encrypted", "data": "AB", "index": 0}],
        [{"type": "reasoning.text", "text": "ha", "index": 1}, {"type": "reasoning.text", "text": "ha", "index": 1}],
    ]  # fmt: skip
    assert built(*(chunk(reasoning_details=items) for items in details))["reasoning_details"] == [
        {"type": "reasoning.text", "text": "I think", "index": 0, "format": "x", "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "AB", "index": 0},
        {"type": "reasoning.text", "text": "haha", "index": 1},
    ]


def test_items_without_an_index_grow_only_as_texts() -> None:
    cited = [{"type": "url_citation", "url_citation": {"url": "u"}}]
    said = built(
        chunk(annotations=cited),
        chunk(annotations=cited),
        chunk(reasoning_details=[{"type": "t", "text": "a"}]),
        chunk(reasoning_details=[{"type": "t", "text": "b"}]),
        chunk(reasoning_details=[{"type": "u", "text": "c"}]),
    )
    assert said["annotations"] == [*cited, *cited]
    assert said["reasoning_details"] == [{"type": "t", "text": "ab"}, {"type": "u", "text": "c"}]


def test_a_constant_repeats_and_a_text_grows() -> None:
    google = {"google": {"thought_signature": "c2ln", "budget": 7}}
    said = built(chunk(content="na", extra_content=google), chunk(content="na", extra_content=google))
    assert (said["content"], said["extra_content"]) == ("nana", google)


def test_content_in_parts_and_as_text() -> None:
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]
    text = [{"type": "text", "text": "a"}]
    assert (
        message(chunk(content=thought), chunk(content=text), chunk(content="b"), chunk("stop")).content
        == "ab"
    )
    assert (
        message(chunk(content="a"), chunk(content=[{"type": "text", "text": "b"}]), chunk("stop")).content
        == "ab"
    )


@pytest.mark.parametrize(
    "usage",
    [
        [chunk("stop", usage={"prompt_tokens": 7, "completion_tokens": 3})],
        [chunk("stop"), {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}],
        [chunk("stop", usage={"prompt_tokens": 7, "completion_tokens": 1}),
         {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}],
        [chunk("stop"), {"choices": [], "x_groq": {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}}],
        [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop",
                       "usage": {"prompt_tokens": 7, "completion_tokens": 3}}]}],
    ],
)  # fmt: skip
def test_usage_wherever_it_is(usage: Sequence[object]) -> None:
    reply = read(events_of(chunk(content="Fine."), *usage))
    assert reply.usage == Usage(7, 3)


def test_usage_nowhere_is_estimated() -> None:
    reply = read(events_of(chunk(content="Fine."), chunk("stop")))
    assert (reply.usage.estimated, reply.usage.completion_tokens) == (True, 2)


# Ends, errors and odd forms


def at(*steps: Answer, **changes: Any) -> tuple[ChatReply | ChatFailure, list[dict[str, Any]]]:
    with endpoint(*steps) as served:
        model = OpenAICompatibleModel(EndpointSettings("m", served.url, KEY, **changes))
        return model.complete([ChatMessage("user", "Hello.")], []), served.requests


def streaming(*blocks: bytes, **changes: Any) -> Answer:
    return Answer(blocks=blocks, **changes)


USED = {"prompt_tokens": 9, "completion_tokens": 2}
WHOLE = (chunk(role="assistant"), chunk(content="Fi"), chunk(content="ne."), chunk("stop", usage=USED))
FINE = ChatReply(
    ChatMessage("assistant", "Fine."), "stop", Usage(9, 2), "scripted-1", request_id="c", streamed=True
)


def test_a_reply_in_pieces_is_read() -> None:
    reply, (request,) = at(streaming(*(events_of(item, done=False) for item in WHOLE), b"data: [DONE]\n\n"))
    assert reply == FINE
    assert (request["stream"], request["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize(
    "answer",
    [
        streaming(events_of(*WHOLE, done=False)),  # ik_llama.cpp: no [DONE]
        streaming(events_of(*WHOLE, done=False), cut=0),  # closed without the end of the body
        streaming(events_of(*WHOLE).rstrip()),  # no empty line at the end
        streaming(b": OPENROUTER PROCESSING\n\n" * 3, events_of(*WHOLE)),
        streaming(b"\xef\xbb\xbf", events_of(*WHOLE)),
        streaming(events_of(*WHOLE).replace(b"\n\n", b"\n")),  # no lines between the events
        streaming(events_of(*WHOLE), headers={"Content-Type": "application/json"}),
        streaming(events_of(*WHOLE), events_of("more that nobody reads")),
        Answer(events_of(*WHOLE)),
    ],
)
def test_ends_and_forms_of_streams(answer: Answer) -> None:
    reply, _ = at(answer)
    assert reply == FINE


def test_one_reply_sent_whole_although_a_stream_was_asked_for() -> None:
    whole = completion("Fine.", usage={"prompt_tokens": 9, "completion_tokens": 2})
    sent_whole, _ = at(whole)
    in_an_event, _ = at(streaming(events_of(whole.body)))
    as_a_stream, _ = at(streaming(json.dumps(whole.body).encode()))
    message_alone, _ = at(streaming(events_of(
        {**WHOLE[0], "choices": [{"index": 0, "message": {"content": "Fine."}, "finish_reason": "stop"}]}, WHOLE[3]
    )))  # fmt: skip
    assert isinstance(sent_whole, ChatReply)
    assert isinstance(in_an_event, ChatReply)
    assert sent_whole == as_a_stream
    assert (sent_whole.streamed, in_an_event.streamed) == (False, True)
    assert sent_whole.message == in_an_event.message
    assert message_alone == FINE


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        (events_of(chunk(content="Fi"), {"error": {"message": "gone", "code": 503}}), "server_error"),
        (events_of(chunk(content="Fi"), {"error": {"message": "gone", "code": 429}}), "rate_limited"),
        (events_of({**chunk("error"), "error": {"code": "server_error", "message": "gone"}}), "server_error"),
        (events_of({"choices": [{"delta": {}, "error": {"code": 502, "message": "gone"}}]}), "server_error"),
        (events_of({"object": "error", "message": "gone", "code": 400}), "request_rejected"),
        (b'event: error\ndata: {"message": "gone"}\n\n', "server_error"),
        (b'error: {"code": 500, "message": "gone", "type": "server_error"}\n\n', "server_error"),
        (events_of(chunk(content="Fi"), {"error": "gone"}), "server_error"),
        (events_of(chunk(content="Fi"), {"error": ["gone"]}), "server_error"),
    ],
)  # fmt: skip
def test_an_error_inside_a_stream_is_the_endpoints(stream: bytes, problem: str) -> None:
    failure, _ = at(streaming(stream))
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, "gone" in failure.message) == (problem, True)
    assert failure.usage.estimated
    assert failure.usage.prompt_tokens > 5


@pytest.mark.parametrize("error", [{"error": "gone"}, {"choices": [{"error": "gone"}, {"delta": {}}]}])
def test_nothing_after_an_error_hides_it(error: object) -> None:
    failure, _ = at(streaming(events_of(chunk(content="Fi"), error, *WHOLE)))
    assert isinstance(failure, ChatFailure)
    assert "gone" in failure.message


@pytest.mark.parametrize(
    "answer",
    [
        streaming(b"data: {\n\n"),
        streaming(b"data: [1]\n\n"),
        Answer(b"<html></html>"),
        Answer([1, 2]),
        Answer(b"{" * 100_000),
        Answer(b"{}", headers={"Content-Encoding": "gzip"}),
    ],
)
def test_a_reply_that_cannot_be_read_is_paid(answer: Answer) -> None:
    failure, _ = at(answer)
    assert isinstance(failure, ChatFailure)
    assert (failure.problem, failure.usage.estimated) == (ChatProblem.MALFORMED_REPLY, True)
    assert failure.usage.prompt_tokens > 5


def test_a_call_in_the_older_form_is_a_call() -> None:
    call = {"name": "read_file", "arguments": '{"file_path": "a.py"}'}
    pieces = [{"name": "read_file", "arguments": '{"file_'}, {"arguments": 'path": "a.py"}'}]
    chunks = [chunk(function_call=item) for item in pieces]
    in_pieces, _ = at(streaming(events_of(*chunks, chunk("function_call", usage=USED))))
    sent_whole, _ = at(Answer(body_of({"function_call": call}, "function_call", USED)), no_stream=True)
    for answer in (in_pieces, sent_whole):
        assert isinstance(answer, ChatReply)
        assert answer.message.tool_calls == (ToolRequest("", call["name"], call["arguments"]),)
        assert answer.message.extra == {}


@pytest.mark.parametrize("error", [None, "", 0, False, {}, [], [""], {"message": "", "code": 0}])
def test_an_error_without_content_is_none(error: object) -> None:
    in_pieces, asked = at(streaming(events_of(*({**item, "error": error} for item in WHOLE))))
    sent_whole, _ = at(
        Answer({**body_of({"content": "Fine."}, "stop", USED), "error": error}), no_stream=True
    )
    assert isinstance(in_pieces, ChatReply)
    assert isinstance(sent_whole, ChatReply)
    assert (in_pieces.message, sent_whole.message, len(asked)) == (FINE.message, FINE.message, 1)


@pytest.mark.parametrize(
    ("error", "problem"),
    [(["gone"], "server_error"), (True, "server_error"), (429, "rate_limited"), ("401", "not_authorised")],
)
def test_an_error_of_any_type_is_the_same_in_pieces_and_whole(error: object, problem: str) -> None:
    in_pieces, _ = at(streaming(events_of(*WHOLE, {"error": error})))
    sent_whole, _ = at(
        Answer({**body_of({"content": "Fine."}, "stop", USED), "error": error}), no_stream=True
    )
    assert isinstance(in_pieces, ChatFailure)
    assert isinstance(sent_whole, ChatFailure)
    assert (in_pieces.problem, sent_whole.problem) == (problem, problem)


@pytest.mark.parametrize(
    "answer",
    [
        streaming(events_of(*WHOLE[:3], done=False)),
        streaming(events_of(*WHOLE[:3], done=False), cut=0),
        streaming(events_of(*WHOLE[:3], done=False)[:-9], cut=0),
        streaming(events_of(*WHOLE[:3], done=False)[:-9]),
        streaming(b": keep-alive\n\n"),
        Answer(cut=0, blocks=[]),
    ],
)
def test_a_stream_that_is_cut_is_no_reply(answer: Answer) -> None:
    failure, _ = at(answer)
    assert isinstance(failure, ChatFailure)
    assert failure.problem is ChatProblem.NO_CONNECTION
    assert "in the middle of its reply" in failure.message
    assert failure.usage.prompt_tokens > 5


def test_what_a_cut_stream_cost_is_counted() -> None:
    failure, _ = at(streaming(events_of(chunk(content="x" * 300), done=False), cut=0))
    assert failure.usage.estimated
    assert failure.usage.completion_tokens >= 100
    used = {"prompt_tokens": 11, "completion_tokens": 4}
    failure, _ = at(streaming(events_of(chunk(content="x", usage=used), done=False), cut=0))
    assert failure.usage == Usage(11, 4)


def test_a_key_in_pieces_is_taken_out() -> None:
    key = KEY.reveal()
    parts = [
        chunk(content=key[:9]),
        chunk(content=key[9:]),
        piece(0, "a", "f", arguments='{"k": "' + key[:5]),
    ]
    reply, _ = at(streaming(events_of(*parts, piece(0, arguments=key[5:] + '"}'), chunk("stop"))))
    assert isinstance(reply, ChatReply)
    assert reply.message.content == "[key]"
    assert reply.message.tool_calls[0].arguments == '{"k": "[key]"}'
    assert "0123456789" not in repr(reply)


# Servers that refuse streams

REFUSALS = [
    ({"error": {"message": "Unrecognized request argument supplied: stream_options"}}, 400, [True, True]),
    ({"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted"}]}, 422, [True, True]),
    ({"error": {"code": 500, "message": "Cannot use tools with stream", "type": "server_error"}}, 500, [True, False]),
    ({"error": "streaming is not supported"}, 400, [True, False]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "streams"), REFUSALS)
def test_a_refused_way_is_not_tried_twice(body: object, status: int, streams: list[bool]) -> None:
    hello = [ChatMessage("user", "Hello.")]
    fine = streaming(events_of(*WHOLE)) if streams[1] else completion("Fine.")
    with endpoint(Answer(body, status), fine) as served:
        model = OpenAICompatibleModel(EndpointSettings("m", served.url, KEY))
        first, second = model.complete(hello, []), model.complete(hello, [])
        sent = served.requests
    assert isinstance(first, ChatReply)
    assert isinstance(second, ChatReply)
    assert first.message.content == second.message.content == "Fine."
    assert ["stream" in request for request in sent] == [True, streams[1], streams[1]]
    assert ["stream_options" in request for request in sent] == [True, False, False]


def test_both_may_be_refused_one_after_the_other() -> None:
    refusal, other = Answer(REFUSALS[0][0], 400), Answer(REFUSALS[3][0], 400)
    reply, requests = at(refusal, other, completion("Fine."))
    assert isinstance(reply, ChatReply)
    assert len(requests) == 3


def test_a_refusal_for_another_reason_is_not_remembered() -> None:
    hello = [ChatMessage("user", "Hello.")]
    with endpoint(Answer({"error": "no such stream of thought"}, 400)) as served:
        model = OpenAICompatibleModel(EndpointSettings("m", served.url, KEY))
        failures = [model.complete(hello, []) for _ in range(2)]
        streams = ["stream" in request for request in served.requests]
    assert all(isinstance(failure, ChatFailure) for failure in failures)
    assert streams == [True, False, True, False]


def test_a_stream_is_not_asked_for_if_the_user_does_not_want_it() -> None:
    _, (request,) = at(completion("Fine."), no_stream=True)
    assert "stream" not in request


# Hostile streams


def fed(blocks: Iterable[bytes]) -> ChatFailure:
    with endpoint(Answer(blocks=list(blocks))) as served:
        failure = OpenAICompatibleModel(EndpointSettings("m", served.url, KEY)).complete([], [])
    assert isinstance(failure, ChatFailure)
    return failure


@pytest.mark.parametrize(
    "blocks",
    [
        [events_of(chunk(content="x" * 600), done=False)] * 3,
        [events_of(chunk(**{f"m{number}": "x" * 100}), done=False) for number in range(30)],
        [events_of(piece(0, "a", "f", arguments="x" * 100), done=False)] * 30,
        [events_of(chunk(reasoning_details=[{"type": "t", "index": 1, "text": "x" * 100}]), done=False)] * 30,
        [b"data: " + b"x" * 600] * 3,
        [b"data: x\ndata: " + b"x" * 600 + b"\n"] * 3,
    ],
)
def test_what_is_kept_of_a_stream_is_bounded(blocks: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST_BYTES", 1_500)
    monkeypatch.setattr(events, "MOST_BYTES", 1_500)
    assert "sent more than" in fed(blocks).message


def test_the_values_and_lines_of_a_stream_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_LINES", 1_000)
    assert "sent more than" in fed([b": keep-alive\n\n" * 100] * 6).message
    monkeypatch.setattr(merging, "MOST_VALUES", 200)
    monkeypatch.setattr(streamed, "MOST_VALUES", 200)
    many = chunk(reasoning_details=[{"index": number} for number in range(70)])
    assert "too much" in fed([events_of({**many, "x": [{}] * 200})]).message
    assert "sent more than" in fed([events_of(chunk(x=[0] * 60), done=False)] * 4).message


def test_tokens_in_large_chunks_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST_VALUES", 100)
    monkeypatch.setattr(merging, "MOST_BYTES", 12_000)
    around = {"logprobs": {"content": [{"token": "x", "top": ["y" * 90] * 9}]}}
    many = [{**chunk(content="x"), "choices": [{**chunk(content="x")["choices"][0], **around}]}] * 3_000
    assert message(*many, chunk("stop")).content == "x" * 3_000


@pytest.mark.parametrize(
    "stream",
    [
        b"data: {\n\n",
        b"data: null\n\n",
        b"data: [1]\n\n",
        b"data: \xff\xfe\n\n",
        b"data: " + b"[" * 200_000 + b"\n\n",
        b'data: {"choices": "no"}\n\ndata: [DONE]\n\n',
        b'data: {"choices": [{"delta": "no"}]}\n\ndata: [DONE]\n\n',
        b"data: [DONE]\n\n",
    ],
)
def test_malformed_streams(stream: bytes) -> None:
    failure = fed([stream])
    assert failure.problem is ChatProblem.MALFORMED_REPLY


LINES = st.sampled_from(
    [b"data: a", b"data:", b": x", b"event: e", b"id: 1", b"data", b"", b"\xff", b"data: \xe2\x82"]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=8), st.lists(st.integers(0, 60), max_size=8))
def test_events_are_the_same_however_their_bytes_arrive(
    lines: list[tuple[bytes, bytes]], places: list[int]
) -> None:
    def split(*blocks: bytes) -> list[Any]:
        reader = EventReader()
        return [event for block in blocks for event in reader.feed(block)] + [*reader.close()]

    data = b"".join(line + end for line, end in lines)
    cuts = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    assert split(*(data[left:right] for left, right in pairwise(cuts))) == split(data)


def test_a_line_end_of_two_bytes_may_come_in_two_blocks() -> None:
    reader = EventReader()
    found = [
        event for block in (b"data: a\r", b"", b"\ndata: b\r", b"\n\r\n") for event in reader.feed(block)
    ]
    assert found == [ServerEvent("", (b"a", b"b"))]


def test_a_reader_holds_no_more_than_its_limit() -> None:
    reader = EventReader()
    for _ in range(511):
        assert not list(reader.feed(b"x" * 65_536))
    with pytest.raises(EndlessReplyError):
        list(reader.feed(b"x" * 65_537))


def test_the_request_of_a_tool_keeps_its_name() -> None:
    assert message(piece(0, "a", "f", arguments="{}"), chunk("stop")).tool_calls == (
        ToolRequest("a", "f", "{}"),
    )
