"""Asks a real server for streamed and for whole replies, abandons a request, and sends two at once.

Usage: PYTHONPATH=src:tests python tests/studies/streamed_requests.py URL MODEL [PROMPTS]

The server may have a single slot. The temperature is 0, so both ways should give the same reply; a server may
still vary. Exit code 1 if replies differ, if the server still works on the abandoned request after two
minutes, or if one of two requests at once gets no reply.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatReply, Sampling
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.retrying import RetryingModel
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sandbox.endpoints.throttle import HostGate, ThrottledModel

TOOL = {
    "name": "read_file",
    "description": "Return the text of a file of the repository.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
PROMPTS = (
    "Which file of a Python project lists its dependencies? Answer in one short sentence.",
    "Read the file pyproject.toml with the tool.",
    "Write a Python function that returns the larger of two numbers. Only code.",
    "Schreib einen kurzen Satz mit ä, ö, ü und dem Zeichen €.",
)
LONG = "Count from one to five hundred in words."


def about(answer: ChatReply | ChatFailure) -> str:
    if isinstance(answer, ChatFailure):
        return f"{answer.problem}: {answer.message}"
    message, usage = answer.message, answer.usage
    calls = ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
    way = "in pieces" if answer.streamed else "whole"
    return f"{way}, {answer.finish}, {usage.prompt_tokens}+{usage.completion_tokens}: {message.content!r} {calls}"


def said(answer: ChatReply | ChatFailure) -> object:
    """Return the parts that have to be equal, without the ids, which servers choose at random."""
    if isinstance(answer, ChatFailure):
        return answer
    calls = [(call.name, call.arguments) for call in answer.message.tool_calls]
    return (
        answer.message.content,
        answer.message.reasoning,
        calls,
        answer.finish,
        answer.usage.completion_tokens,
    )


def model_at(settings: EndpointSettings, gate: HostGate) -> RetryingModel:
    return RetryingModel(ThrottledModel(OpenAICompatibleModel(settings, gate), gate))


def main() -> int:
    url, name = sys.argv[1:3]
    prompts = PROMPTS[: int(sys.argv[3])] if len(sys.argv) > 3 else PROMPTS
    sampling = Sampling(temperature=0.0, seed=1, max_output_tokens=48)
    settings = EndpointSettings(name, url, ApiKey(""), sampling=sampling)
    gate = HostGate(place=settings.place)
    faults = 0
    for prompt in prompts:
        answers = []
        for no_stream in (False, True):
            began = time.monotonic()
            model = model_at(replace(settings, no_stream=no_stream), gate)
            answers.append(model.complete([ChatMessage("user", prompt)], [TOOL]))
            print(f"{time.monotonic() - began:6.1f} s {about(answers[-1])}", flush=True)
        same = said(answers[0]) == said(answers[1])
        faults += not same
        print("        the same" if same else "        DIFFERENT", flush=True)

    hasty = replace(settings, timeout_s=5.0, sampling=replace(sampling, max_output_tokens=2_000))
    left = OpenAICompatibleModel(hasty, gate).complete([ChatMessage("user", LONG)], [])
    print(f"left: {about(left)}")
    began = time.monotonic()
    while gate.host.still_works and time.monotonic() - began < 120:
        time.sleep(0.01)
    print(f"the server let go {1000 * (time.monotonic() - began):.0f} ms later: {not gate.host.still_works}")
    faults += gate.host.still_works

    answers = []

    def ask() -> None:
        answers.append(model_at(settings, gate).complete([ChatMessage("user", PROMPTS[0])], []))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in answers:
        print(f"at once: {about(answer)}")
    faults += sum(isinstance(answer, ChatFailure) for answer in answers)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
