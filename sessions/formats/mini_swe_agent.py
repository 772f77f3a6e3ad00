"""mini-swe-agent: `messages` with `trajectory_format`, and the bare list of messages that came before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.messages import Turns, message_step
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.protocol import BaseReader, SingleRun
from gistpoint.sessions.formats.values import as_dict, as_float, as_int, as_list, as_str, as_text, objects
from gistpoint.sessions.runs.model import Actor, Json, Run, Step
from gistpoint.sessions.runs.reader import Raw, array_records, guarded, object_records
from gistpoint.sessions.runs.scanning import LightKeys, Record

_LIGHT = LightKeys(("role", "type", "object", "tool_call_id", "call_id"))
_MARKS = ("mswea_bash_command", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")


class _Reader(BaseReader):
    format = "mini-swe-agent"

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._turns = Turns(shell=True)

    def records(self) -> Iterator[Record]:
        blob, start = self.probe.blob, self.probe.start
        if self.probe.array:
            found = array_records(blob, start, _LIGHT)
        else:
            found = object_records(blob, start, ("messages",), self.facts, _LIGHT)
        return guarded(found, blob, self.warnings)

    def place(self, fields: Json, step_count: int) -> int:
        return self._turns.place(fields, step_count)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        return message_step(index, raws, shell=True)

    def header(self) -> Run:
        if self.probe.array:
            return Run(self.format, "bare list", prompt="", derived=frozenset({"format"}))
        info = as_dict(self.fact("info"))
        config = as_dict(info.get("config"))
        stats = as_dict(info.get("model_stats"))
        model = as_str(as_dict(config.get("model")).get("model_name"))
        return Run(
            self.format,
            as_str(self.fact("trajectory_format")).removeprefix("mini-swe-agent-"),
            task=as_str(self.fact("instance_id")),
            model=model,
            agent=f"mini-swe-agent {as_str(info.get('mini_version'))}".strip(),
            actor=Actor.PERSON if as_dict(config.get("agent")).get("mode") == "human" else Actor.AGENT,
            exit_status=as_str(info.get("exit_status")),
            submission=as_text(info.get("submission")),
            cost=as_float(stats.get("instance_cost")),
            extra={"api_calls": as_int(stats.get("api_calls"))} if "api_calls" in stats else {},
        )


class MiniSweAgent(SingleRun):
    """Told by `trajectory_format`, by `mini_version`, or by the submission mark in a bare list's prompts."""

    name = "mini-swe-agent"

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is."""
        if as_str(probe.object.get("trajectory_format")).startswith("mini-swe-agent"):
            return 1.0
        if "messages" in probe.object or "info" in probe.object:
            if as_str(probe.late("trajectory_format")).startswith("mini-swe-agent"):
                return 1.0
            if "mini_version" in as_dict(probe.object.get("info")):
                return 0.95
        opening = objects(probe.array[:3])
        if len(opening) >= 2 and as_list(probe.array) and all("role" in message for message in opening):
            said = "".join(as_text(message.get("content")) for message in opening)
            return 0.9 if any(mark in said for mark in _MARKS) else 0.0
        return 0.0

    def reader(self, probe: Probe) -> _Reader:
        """Open the run."""
        return _Reader(probe)


FORMAT = MiniSweAgent()
