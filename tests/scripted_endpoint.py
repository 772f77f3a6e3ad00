"""An OpenAI-compatible endpoint on loopback that answers from a script, and a scripted model."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatReply, ToolRequest, Usage
from gistpoint.core.running import NEVER, CancelToken


@dataclass(frozen=True)
class Answer:
    """The answer to one request; `cut` closes the connection after this number of bytes of the body.

    With `blocks`, the body is sent in these pieces; a number is a wait in seconds, an event is waited for,
    and a function is called. The connection is closed after them, without an end of the body if `cut` is
    given.
    """

    body: object = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: threading.Event | None = None
    cut: int | None = None
    blocks: Sequence[bytes | float | threading.Event | Callable[[], object]] | None = None


Step = Answer | Callable[[dict[str, Any], Mapping[str, str]], Answer]


def completion(
    content: str | None = None,
    *calls: tuple[str, object],
    finish: str = "",
    usage: object = None,
    **message: object,
) -> Answer:
    """Return a chat completion with tool calls: names, with arguments as an object or as raw text."""
    tool_calls = [
        {
            "id": f"id-{number}",
            "type": "function",
            "function": {"name": name, "arguments": value if isinstance(value, str) else json.dumps(value)},
        }
        for number, (name, value) in enumerate(calls)
    ]
    turn: dict[str, object] = {"role": "assistant", "content": content, **message}
    if tool_calls:
        turn["tool_calls"] = tool_calls
    choice = {"index": 0, "message": turn, "finish_reason": finish or ("tool_calls" if calls else "stop")}
    used = (
        usage if usage is not None else {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    )
    return Answer(
        {"id": "c", "object": "chat.completion", "model": "scripted-1", "choices": [choice], "usage": used}
    )


def events_of(*chunks: object, done: bool = True) -> bytes:
    """Return a stream of events with these chunks, and `[DONE]` at its end if `done`."""
    sent = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {data}\n\n" for data in [*sent, *(["[DONE]"] if done else [])]).encode()


def chunk(finish: str | None = None, usage: object = None, **delta: object) -> dict[str, Any]:
    """Return a chunk of a chat completion."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    about = {"id": "c", "object": "chat.completion.chunk", "model": "scripted-1"}
    return {**about, "choices": choices, **({} if usage is None else {"usage": usage})}


@dataclass
class Endpoint:
    """A running server, with the requests that it received and its URL."""

    steps: list[Step]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""
    left: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released whenever a client leaves before its answer is complete."""
    at_work: int = 0
    """The number of requests that are being answered."""
    most_at_work: int = 0

    def next(self, request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
        number = len(self.requests)
        self.requests.append(request)
        self.headers.append(dict(headers))
        step = self.steps[min(number, len(self.steps) - 1)]
        return step if isinstance(step, Answer) else step(request, headers)


@contextmanager
def endpoint(*steps: Step) -> Iterator[Endpoint]:
    """Serve the steps in turn, repeating the last one, and yield the endpoint."""
    served = Endpoint(list(steps))
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            except (ValueError, OSError):
                return  # the client is gone
            served.paths.append(self.path)
            answer = served.next(request, {key.lower(): value for key, value in self.headers.items()})
            with lock:
                served.at_work += 1
                served.most_at_work = max(served.most_at_work, served.at_work)
            try:
                self._answer(answer)
            finally:
                with lock:
                    served.at_work -= 1

        def _answer(self, answer: Answer) -> None:
            if answer.wait is not None and not self._waited(answer.wait, 30):
                return
            if answer.blocks is not None:
                self._stream(answer)
                return
            body = answer.body
            data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else None
            data = json.dumps(body).encode() if data is None else data
            try:
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for key, value in answer.headers.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(data if answer.cut is None else data[: answer.cut])
            except OSError:
                pass
            if answer.cut is not None:
                self.close_connection = True

        def _waited(self, event: threading.Event, seconds: float) -> bool:
            """Wait for an event, and return whether the client is still there."""
            until = time.monotonic() + seconds
            while not event.wait(0.01) and time.monotonic() < until:
                if select.select([self.connection], [], [], 0)[0]:
                    try:
                        gone = not self.connection.recv(1, socket.MSG_PEEK)
                    except OSError:
                        gone = True
                    if gone:
                        served.left.release()
                        self.close_connection = True
                        return False
            return True

        def _stream(self, answer: Answer) -> None:
            headers = {"Content-Type": "text/event-stream", **answer.headers}
            lines = [f"{key}: {value}\r\n" for key, value in headers.items()]
            head = f"HTTP/1.1 {answer.status} OK\r\n{''.join(lines)}Transfer-Encoding: chunked\r\n\r\n"
            self.close_connection = True
            try:
                self.wfile.write(head.encode())
                for block in answer.blocks or ():
                    if isinstance(block, bytes):
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block) if block else b"")
                        continue
                    if callable(block):
                        block()
                        continue
                    seconds = 30.0 if isinstance(block, threading.Event) else block
                    event = block if isinstance(block, threading.Event) else threading.Event()
                    if not self._waited(event, seconds):
                        return
                if answer.cut is None:
                    self.wfile.write(b"0\r\n\r\n")
            except OSError:
                served.left.release()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def closing() -> Iterator[str]:
    """Serve an endpoint that reads each request and closes the connection without a reply; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def reply(
    *calls: tuple[str, object],
    content: str = "",
    finish: str = "",
    usage: Usage | None = None,
    refusal: str = "",
    ids: Sequence[str] = (),
) -> ChatReply:
    """Return a reply in the form in which a `ChatModel` returns it."""
    requests = tuple(
        ToolRequest(
            ids[number] if ids else f"id-{number}",
            name,
            value if isinstance(value, str) else json.dumps(value),
        )
        for number, (name, value) in enumerate(calls)
    )
    message = ChatMessage("assistant", content, requests)
    return ChatReply(
        message, finish or ("tool_calls" if calls else "stop"), usage or Usage(100, 10), "m-1", refusal
    )


@dataclass
class ScriptedModel:
    """A chat model that replies in turn, repeating the last reply."""

    script: Sequence[ChatReply | ChatFailure]
    name: str = "scripted"
    asked: list[list[ChatMessage]] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        cancel.check()
        self.asked.append(list(messages))
        self.offered.append([tool["name"] for tool in tools])
        return self.script[min(self.replied(messages), len(self.script) - 1)]

    def replied(self, messages: Sequence[ChatMessage]) -> int:
        """Return how many replies were given before this request."""
        return len(self.asked) - 1
