"""SWE-agent's `.traj`, all four eras: state as text, execution times, `messages`, and `query` of each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from gistpoint.sessions.formats.calls import edits_of, kind_of_command, words
from gistpoint.sessions.formats.messages import Turns, message_step
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.protocol import BaseReader, RunEntry, SingleRun
from gistpoint.sessions.formats.values import (
    as_dict,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    objects,
    parsed_object,
)
from gistpoint.sessions.runs.blobs import RunFileError, SliceBlob
from gistpoint.sessions.runs.model import Actor, Call, Json, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.runs.reader import Raw, guarded, object_records, unknown_step
from gistpoint.sessions.runs.scanning import (
    CutOffError,
    DamagedError,
    LightKeys,
    Record,
    Scanner,
    TooLongError,
    members,
)

_TOOLS = frozenset(
    ("open", "goto", "scroll_up", "scroll_down", "create", "edit", "search_dir", "search_file", "find_file", "submit",
     "str_replace_editor", "insert", "exit_forfeit", "filemap")
)  # fmt: skip
_STEP_KEYS = frozenset({"action", "observation", "response", "thought"})


class _Reader(BaseReader):
    format = "swe-agent"

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._history_only = "trajectory" not in probe.object and "history" in probe.object
        self._turns = Turns(shell=True)

    def records(self) -> Iterator[Record]:
        array = "history" if self._history_only else "trajectory"
        light = LightKeys(("role", "tool_call_id")) if self._history_only else LightKeys(("action",))
        blob = self.probe.blob
        return guarded(object_records(blob, self.probe.start, (array,), self.facts, light), blob, self.warnings)

    def place(self, fields: Json, step_count: int) -> int:
        return self._turns.place(fields, step_count) if self._history_only else step_count

    def header(self) -> Run:
        info = as_dict(self.fact("info"))
        stats = as_dict(info.get("model_stats"))
        replay = self.fact("replay_config")
        config = as_dict(parsed_object(replay) if isinstance(replay, str) else replay)
        problem = as_dict(config.get("problem_statement"))
        model = as_str(as_dict(as_dict(config.get("agent")).get("model")).get("name"))
        return Run(
            self.format,
            as_str(info.get("swe_agent_version")) or self._era(),
            task=as_str(problem.get("id")) or as_str(self.fact("environment")),
            model=model,
            agent="swe-agent",
            actor=Actor.PERSON if model.startswith("human") else Actor.AGENT,
            exit_status=as_str(info.get("exit_status")),
            submission=as_text(info.get("submission")),
            tokens=Tokens(as_int(stats.get("tokens_sent")), as_int(stats.get("tokens_received"))),
            cost=as_float(stats.get("instance_cost")),
            prompt=self._prompt(problem),
            extra={"api_calls": as_int(stats.get("api_calls"))} if "api_calls" in stats else {},
            derived=frozenset({"format_version"} if "swe_agent_version" not in info else ()),
        )

    def _first_step(self) -> dict[str, Json]:
        return as_dict((as_list(self.probe.object.get("trajectory")) or [None])[0])

    def _era(self) -> str:
        step = self._first_step()
        if self._history_only:
            return "history only"
        if "query" in step:
            return "1.1"
        if "messages" in step:
            return "1.0"
        return "0.7" if "execution_time" in step else "0.5-0.7"

    def _prompt(self, problem: dict[str, Json]) -> str:
        step = self._first_step()
        for message in objects(first(step, "query", "messages")):
            if message.get("role") == "user" and not message.get("is_demo"):
                return as_text(message.get("content"))
        return as_text(first(problem, "text", "problem_statement"))

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        if self._history_only:
            return message_step(index, raws, shell=True)
        value = raws[0].value
        if not isinstance(value, dict) or not _STEP_KEYS & value.keys():
            return unknown_step(index, raws, "step", as_text(value))
        action, observation = as_text(value.get("action")), as_text(value.get("observation"))
        thought, response = as_text(value.get("thought")), as_text(value.get("response"))
        state = value.get("state")
        known = as_dict(parsed_object(state) if isinstance(state, str) else state)
        diff = known.get("diff")
        call = _call(action)
        calls = (call,) if call else ()
        ended = not calls and observation.startswith("Exit")
        results = (Result("", observation, duration_s=as_float(value.get("execution_time"))),) if calls else ()
        kind = StepKind.END if ended else kind_of_command(action) if calls else StepKind.MESSAGE
        return Step(
            index, Actor.AGENT, kind, raws[0].range, tuple(raw.range for raw in raws), label="step",
            thought=thought if thought != response else "",
            text=response if calls or not observation else f"{response}\n{observation}".strip(),
            calls=calls, results=results,
            state={key: item for key, item in known.items() if key != "diff"},
            diff_so_far=diff if isinstance(diff, str) else None,
            edits=edits_of(calls), derived=frozenset({"kind", "calls.tool"} if calls else {"kind"}),
        )  # fmt: skip


def _call(action: str) -> Call | None:
    """Read an action, which is recorded as one rendered command line."""
    if not action.strip():
        return None
    name = action.split(None, 1)[0]
    if name not in _TOOLS:
        return Call("", "bash", action, {"command": action})
    parsed: dict[str, Json] = {"command": action}
    if name == "str_replace_editor":
        parts = words(action)[1:]
        parsed = {"command": parts[0] if parts else "", **({"path": parts[1]} if len(parts) > 1 else {})}
        for flag, value in pairwise(parts[2:]):
            if flag.startswith("--"):
                parsed[flag[2:]] = value
    return Call("", name, action, parsed)


class SweAgent(SingleRun):
    """Told by steps with an action and an observation, or by a history of messages that name their agent.

    A run that was tried several times is the chosen try; each try is `#attempt-N` beside it.
    """

    name = "swe-agent"

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is."""
        steps = probe.object.get("trajectory")
        if isinstance(steps, list):
            keys = as_dict(steps[0]).keys() if steps else set()
            if len(_STEP_KEYS & keys) >= 2:
                return 0.95
            return 0.6 if not steps or "history" in probe.object else 0.2
        attempts = objects(probe.object.get("attempts"))
        if attempts and "trajectory" in attempts[0]:
            return 0.9
        history = objects(probe.object.get("history"))
        if history and "role" in history[0] and ({"agent", "message_type"} & history[0].keys()):
            return 0.85
        return 0.0

    def reader(self, probe: Probe) -> _Reader:
        """Open the run."""
        return _Reader(probe)

    def runs(self, probe: Probe) -> Iterator[RunEntry]:
        """List the run, and the tries of one that was tried several times."""
        yield RunEntry("", _Reader(probe).header())
        for id, part in _attempts(probe):
            yield RunEntry(id, replace(_Reader(part).header(), id=id))

    def open(self, probe: Probe, id: str) -> _Reader:
        """Open the run, or one of its tries."""
        if not id:
            return _Reader(probe)
        for known, part in _attempts(probe):
            if known == id:
                return _Reader(part)
        raise RunFileError(f"{probe.name or 'The file'} has no run #{id}.")


def _attempts(probe: Probe) -> Iterator[tuple[str, Probe]]:
    if "attempts" not in probe.object and probe.late("attempts") is None:
        return
    found: list[Record] = []
    try:
        scanner = Scanner(probe.blob, probe.start)
        for key, _, _, _ in members(scanner, lambda key: key == "attempts"):
            if key == "attempts":
                found += scanner.elements(LightKeys(("environment",))) if scanner.peek() == "[" else [scanner.record()]
    except (CutOffError, DamagedError, TooLongError):
        pass
    for number, record in enumerate(found, 1):
        part = SliceBlob(probe.blob, record.start, record.end, probe.blob.name, origin=record.start)
        yield f"attempt-{number}", Probe(part, name=probe.name)


FORMAT = SweAgent()
