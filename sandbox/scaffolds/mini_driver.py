"""Runs mini-swe-agent's loop in its environment, with gistpoint as its model and its shell.

Started as a script, without gistpoint. It reads and writes lines of JSON: requests to the model, commands to
run, and the answers. Gistpoint gives the prompts; everything else is mini-swe-agent's.
"""

# The imports are those of mini-swe-agent's own environment.
# mypy: ignore-errors
# pyright: reportMissingImports=false

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace


class _Wire:
    """The connection to gistpoint, line by line."""

    def __init__(self):
        self.reading = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self.writing = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # output of libraries must not mix with the protocol

    def ask(self, **request):
        """Send a request and return the answer; raise `InterruptAgentFlow` if the attempt has ended."""
        from minisweagent.exceptions import InterruptAgentFlow

        self.send(**request)
        line = self.reading.readline()
        answer = json.loads(line) if line else {"end": "gistpoint is gone"}
        if "end" in answer:
            status = {"exit_status": answer["end"], "submission": ""}
            raise InterruptAgentFlow({"role": "exit", "content": answer["end"], "extra": status})
        return answer

    def send(self, **message):
        """Send one message as a line of JSON."""
        self.writing.write(json.dumps(message) + "\n")
        self.writing.flush()


class _Config(SimpleNamespace):
    """Settings in the form in which mini-swe-agent expects them."""

    def model_dump(self, **_):
        """Return the settings as a dictionary."""
        return dict(vars(self))


class _Part:
    """A part of mini-swe-agent, its model or its environment, that gistpoint implements."""

    kind = ""

    def __init__(self, wire, **config):
        self.wire, self.config = wire, _Config(**config)

    def get_template_vars(self, **_):
        """Return the variables for templates: none."""
        return {}

    def serialize(self):
        """Return the part's share of the trajectory."""
        return {
            "info": {"config": {self.kind: vars(self.config), f"{self.kind}_type": f"gistpoint.{self.kind}"}}
        }


class _Model(_Part):
    """A model that gistpoint asks."""

    kind = "model"

    def query(self, messages, **_):
        """Return the model's reply, with its actions as mini-swe-agent reads them.

        Raises `FormatError`, to which mini-swe-agent's loop responds, if the calls of the reply can't be
        read.
        """
        from minisweagent.exceptions import FormatError
        from minisweagent.models.utils.actions_toolcall import parse_toolcall_actions

        sent = [{key: value for key, value in message.items() if key != "extra"} for message in messages]
        answer = self.wire.ask(ask=sent)
        reply = answer["reply"]
        more = {"response": reply, "cost": answer["cost"], "timestamp": time.time()}
        calls = [
            SimpleNamespace(id=call["id"], function=SimpleNamespace(**call["function"]))
            for call in reply.get("tool_calls", ())
        ]
        try:
            actions = parse_toolcall_actions(
                calls,
                format_error_template=self.config.format_error_template,
                template_kwargs={"finish_reason": answer["finish"]},
            )
        except FormatError as error:
            (message,) = error.messages
            message["content"] += answer.get("charged", "")
            message["extra"].update(more)
            raise
        return {**reply, "extra": {"actions": actions, **more}}

    def format_message(self, **given):
        """Return the given members as a message."""
        return given

    def format_observation_messages(self, message, outputs, template_vars=None):
        """Return the messages with the answers to a reply's calls."""
        from minisweagent.models.utils.actions_toolcall import format_toolcall_observation_messages

        return format_toolcall_observation_messages(
            actions=message.get("extra", {}).get("actions", []),
            outputs=outputs,
            observation_template=self.config.observation_template,
            template_vars=template_vars,
        )


class _Environment(_Part):
    """An environment whose commands gistpoint carries out."""

    kind = "environment"

    def execute(self, action, cwd=""):
        """Return the answer to a command."""
        answer = self.wire.ask(run=action.get("command"), id=action.get("tool_call_id", ""))
        return {"output": answer["output"], "returncode": answer["returncode"], "exception_info": ""}


def main():
    """Run one attempt."""
    wire = _Wire()
    begin = json.loads(wire.reading.readline())
    from minisweagent.agents.default import DefaultAgent

    model = _Model(wire, **begin["model"])
    agent = DefaultAgent(
        model,
        _Environment(wire),
        **begin["agent"],
        step_limit=0,
        cost_limit=0,
        output_path=Path(begin["trajectory"]),
    )
    ended = agent.run(task=begin["task"])
    wire.send(exit=str(ended.get("exit_status", "")))


if __name__ == "__main__":
    main()
