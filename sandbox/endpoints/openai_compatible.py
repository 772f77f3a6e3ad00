"""Chat models behind OpenAI-compatible endpoints, through the package `openai` (the extra `llm`)."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.core.errors import EndpointError, extra_hint
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tools.dialects import openai_tool
from gistpoint.sandbox.endpoints.meanings import error_text, problem_of, retry_after
from gistpoint.sandbox.endpoints.replies import reply_in_error, reply_of, usage_of
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sandbox.endpoints.transport import MOST_BYTES, EndlessReplyError, bounded_client, loaded

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI
    from openai.types.chat import ChatCompletionMessageParam

_TICK_S = 0.05
_NO_KEY = "none"
"""The key that is sent to endpoints that need none, because the header is required."""

Answer = ChatReply | ChatFailure


class OpenAICompatibleModel:
    """A model behind an endpoint; implements `gistpoint.core.ports.ChatModel`.

    Each call sends one request.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        """Raises `EndpointError` if the package `openai` is not installed."""
        try:
            import httpx2
            import openai
        except ImportError:
            raise EndpointError(
                "Chat models need packages that are not installed.",
                hint=extra_hint("llm"),
            ) from None
        self.settings = settings
        self._withheld = settings.withheld
        self._openai = openai
        self._httpx = httpx2

    @property
    def name(self) -> str:
        """The model's name as it is requested."""
        return self.settings.model

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> Answer:
        """Send one request, and return the reply or the failure.

        The request is abandoned at its time limit, which is a failure, and when `cancel` is cancelled, which
        raises `CancelledError`.
        """
        answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()
        body = self._body(messages, tools)
        sent = len(json.dumps(body))

        abandoned = threading.Event()
        client = self._openai.OpenAI(
            api_key=self.settings.key.reveal() or _NO_KEY,
            base_url=self.settings.base_url,
            timeout=self.settings.timeout_s,
            # `RetryingModel` retries, since waits must be cancellable, limited and recorded (decision 34).
            max_retries=0,
            http_client=bounded_client(self.settings.timeout_s, abandoned),
        )

        def work() -> None:
            try:
                with client:
                    answers.put(self._request(client, body, sent))
            except BaseException as error:
                answers.put(error)

        # Run in a thread, which can be abandoned, because the package can't stop a request (decision 34).
        threading.Thread(target=work, name="chat-request", daemon=True).start()
        deadline = time.monotonic() + self.settings.timeout_s
        try:
            while True:
                cancel.check()
                try:
                    answer = answers.get(timeout=_TICK_S)
                    break
                except queue.Empty:
                    if time.monotonic() > deadline:
                        return self._timed_out(sent)
        finally:
            abandoned.set()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _body(self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the request as it is sent; an empty list of tools is left out, as endpoints refuse it."""
        rows = [self._message(message) for message in messages]
        offered = {"tools": [openai_tool(tool) for tool in tools]} if tools else {}
        return {"messages": rows, **offered, **self.settings.sampling_fields}

    def _message(self, message: ChatMessage) -> dict[str, Any]:
        row: dict[str, Any] = {"role": message.role, "content": _utf8(message.content)}
        # A member such as a signature is meaningful to its own host, and none of another host's business.
        is_of_host = message.host == self.settings.place
        if is_of_host:
            row = {**message.extra, **row}
        if self.settings.echo_reasoning and message.reasoning:
            row["reasoning_content"] = _utf8(message.reasoning)
        if message.tool_calls:
            row["tool_calls"] = [
                _call_row(item, item.extra if is_of_host else {}) for item in message.tool_calls
            ]
        if message.tool_call_id:
            row["tool_call_id"] = message.tool_call_id
        return row

    def _request(self, client: OpenAI, body: dict[str, Any], sent: int) -> Answer:

        openai = self._openai
        httpx = self._httpx
        others = {name: value for name, value in body.items() if name != "messages"}
        try:
            with client.chat.completions.with_streaming_response.create(
                model=self.settings.model,
                messages=cast("list[ChatCompletionMessageParam]", body["messages"]),
                extra_body=others,
            ) as response:
                received = response.read()
            # Read as raw JSON, because the package's own models would accept anything (decision 34).
            return self._without_key(
                reply_of(
                    self._withheld.taken_out_of(loaded(received)),
                    self.settings.prices,
                    sent,
                    self.settings.place,
                )
            )
        except EndlessReplyError:
            return self._failure(ChatProblem.MALFORMED_REPLY, f"sent more than {MOST_BYTES >> 20} MiB")
        except (openai.APITimeoutError, httpx.TimeoutException):
            return self._timed_out(sent)
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
            return self._failure(ChatProblem.NO_CONNECTION, f"can't be reached ({cause})")
        except httpx.HTTPError as error:
            what = f"stopped in the middle of its reply ({type(error).__name__})"
            return self._failure(ChatProblem.NO_CONNECTION, what, usage=self._usage_if_lost(sent))
        except openai.APIStatusError as error:
            error_body = self._body_of(error)
            reply = reply_in_error(error.status_code, error_body, self.settings.prices, sent)
            if reply is not None:
                return self._without_key(reply)
            problem = problem_of(error.status_code, error_body)
            text = error_text(error_body)
            if error.status_code < 400:
                text = "it redirects, which is not followed; give the address that it redirects to"
            if error.status_code == 404 and not self.settings.has_path:
                text += "; if the server has the model, its address may have to end in /v1"
            after = retry_after(error.response.headers)
            return self._failure(problem, f"answered {error.status_code}: {text}", after)
        except (ValueError, RecursionError):
            return self._failure(
                ChatProblem.MALFORMED_REPLY, "sent something that is not JSON, or too much of it"
            )
        except openai.APIError:
            return self._failure(ChatProblem.MALFORMED_REPLY, "sent a reply that can't be read")

    def _body_of(self, error: APIStatusError) -> object:
        """Return the body of an error without the key, as text unless it is JSON.

        It is read here because the package leaves out what is next to the member `error`.
        """
        try:
            return self._withheld.taken_out_of(loaded(error.response.content))
        except (ValueError, RecursionError):
            return self._withheld.taken_out_of_text(error.response.text)

    def _without_key(self, answer: Answer) -> Answer:
        """Return an answer from which the key is removed, even if it was sent in parts or escaped."""
        if not isinstance(answer, ChatReply):
            return answer
        withheld = self._withheld
        written = answer.message
        calls = tuple(
            replace(
                call,
                arguments=withheld.taken_out_of_json(call.arguments),
                extra=withheld.taken_out_of_texts(call.extra),
            )
            for call in written.tool_calls
        )
        return replace(
            answer,
            message=replace(
                written,
                content=withheld.taken_out_of_text(written.content),
                tool_calls=calls,
                extra=withheld.taken_out_of_texts(written.extra),
            ),
            echoed=self.settings.echo_reasoning,
        )

    def _failure(
        self, problem: ChatProblem, what: str, after: float | None = None, usage: Usage | None = None
    ) -> ChatFailure:
        text = self._withheld.taken_out_of_text(f"{self.settings.place} {what.rstrip('.')}.")
        return ChatFailure(problem, text, after, usage or Usage())

    def _timed_out(self, sent: int) -> ChatFailure:
        what = f"gave no complete reply within {self.settings.timeout_s:g} s"
        return self._failure(ChatProblem.TIMED_OUT, what, usage=self._usage_if_lost(sent))

    def _usage_if_lost(self, sent: int) -> Usage:
        """Return the minimum usage of a request whose reply was lost: that of the text sent."""
        return usage_of(None, self.settings.prices, sent, 0)


def _call_row(call: ToolRequest, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as it is sent; `extra` are its other members, with those of its function."""
    function = {**extra.get("function", {}), "name": call.name, "arguments": call.arguments}
    return {**extra, "id": call.id, "type": "function", "function": function}


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
