"""Compares the processor time of a turn whose reply is received in pieces with one whose reply is sent whole.

usage: python tests/benchmarks/streamed_replies.py [TURNS]

The endpoint is a separate process on loopback. Each reply has the requested number of tokens of four
characters, one per chunk, as llama.cpp sends them. The two kinds of requests alternate, so that a busy
machine affects both alike. Prints the medians of the client's processor time, and the median of the paired
ratios.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripted_endpoint import Answer, chunk, completion, endpoint, events_of

from gistpoint.core.chat import ChatMessage, ChatReply
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings

WORD = "word"
SIZES = (10, 100, 1_000, 4_000)
USED = {"prompt_tokens": 100, "completion_tokens": 10}


def served(ready: Connection) -> None:
    """Serve replies of as many tokens as the last message of a request says."""

    def answer(request: dict[str, Any], headers: object) -> Answer:
        tokens = int(request["messages"][-1]["content"])
        if not request.get("stream"):
            return completion(WORD * tokens, usage=USED)
        words = [events_of(chunk(content=WORD), done=False)] * tokens
        return Answer(blocks=[*words, events_of(chunk("stop", usage=USED))])

    with endpoint(answer) as place:
        ready.send(place.url)
        ready.recv()


def spent(model: OpenAICompatibleModel, tokens: int) -> float:
    """Return the processor time of one request, in seconds."""
    began = time.process_time()
    reply = model.complete([ChatMessage("user", str(tokens))], [])
    seconds = time.process_time() - began
    assert isinstance(reply, ChatReply)
    assert reply.message.content == WORD * tokens
    return seconds


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=served, args=(theirs,), daemon=True)
    server.start()
    url = ours.recv()
    kinds = [
        OpenAICompatibleModel(EndpointSettings("m", url, ApiKey(""), no_stream=whole))
        for whole in (False, True)
    ]
    for tokens in SIZES:
        pairs = [[spent(model, tokens) for model in kinds] for _ in range(turns + 1)][1:]
        pieces, whole = (1000 * statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(in_pieces / at_once for in_pieces, at_once in pairs)
        a_token = 1000 * (pieces - whole) / tokens
        print(
            f"{tokens:>5} tokens: {pieces:.1f} ms in pieces, {whole:.1f} ms whole, ratio {ratio:.2f},"
            f" {a_token:.0f} µs more a token"
        )
    ours.send(None)
    server.join(5)


if __name__ == "__main__":
    main()
