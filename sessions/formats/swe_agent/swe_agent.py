"""SWE-agent's `.traj` files of all versions, which differ in the members of the file and of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of_command, shell_words
from gistpoint.sessions.formats.shared.command_lines import (
    FENCE,
    FUNCTION,
    PARAMETER,
    call_of_command,
    reports_error,
)
from gistpoint.sessions.formats.shared.messages import Shell, Turns, message_step, message_texts
from gistpoint.sessions.records.building import StepBuilder, error_if
from gistpoint.sessions.records.format import Raw, RunEntry, RunReader, SingleRun, run_named, unknown_step
from gistpoint.sessions.records.model import (
    Actor,
    Json,
    Noted,
    NotShown,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    StepTexts,
    Tokens,
    step_texts,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.scanning import LightKeys, elements_at
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    first,
    first_object,
    joined,
    objects,
    parsed_object,
    recoded,
)

_STEP_KEYS = frozenset({"action", "observation", "response", "thought"})
_UNNAMED = frozenset({"", "main", "swe_main"})
"""Environment names that do not identify the task; the file is then named after the task."""
_LONGEST_OPENING = 200
"""The number of messages in a history that are searched for the request; a demonstration may precede it."""


class _Reader(RunReader):
    format = "swe-agent"

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._history_only = "trajectory" not in probe.object and "history" in probe.object
        self.arrays = ("history",) if self._history_only else ("trajectory",)
        self.light = LightKeys(("role", "tool_call_id")) if self._history_only else LightKeys(("action",))
        self._turns = Turns(_SHELL)
        self._history: list[dict[str, Json]] | None = None

    def place(self, fields: Json, step_count: int) -> int:
        return self._turns.place(fields, step_count) if self._history_only else step_count

    def sum_up(self) -> Iterator[None]:
        # Before version 1.0, only the history, which comes after the steps, contains the model's request.
        # It may be too long to be kept as a fact.
        if not self._history_only and not self._sent():
            found = elements_at(self.probe.blob, self.probe.start, "history")
            self._history = [as_dict(recoded(record.fields)) for record in islice(found, _LONGEST_OPENING)]
            yield

    def header(self) -> Run:
        info = as_dict(self.fact("info"))
        stats = as_dict(info.get("model_stats"))
        replay = self.fact("replay_config")
        config = as_dict(_as_object(replay))
        problem = as_dict(config.get("problem_statement"))
        model = as_str(as_dict(as_dict(config.get("agent")).get("model")).get("name"))
        sent = self._sent()
        place = "trajectory" if sent else "history"
        asked = sent or self._history or objects(self.fact("history"))
        system = "" if self._history_only else _opening("system", asked)
        inferred = {
            "format_version": "swe_agent_version" not in info,
            "task": not problem.get("id") and as_str(self.fact("environment")) in _UNNAMED,
        }
        return Run(
            self.format,
            as_str(info.get("swe_agent_version")) or self._era(),
            task=as_str(problem.get("id")) or self._environment(),
            model=model,
            agent="swe-agent",
            actor=Actor.PERSON if model.startswith("human") else Actor.AGENT,
            exit_status=as_str(info.get("exit_status")),
            submission=as_text(info.get("submission")),
            tokens=Tokens(as_int(stats.get("tokens_sent")), as_int(stats.get("tokens_received"))),
            cost=as_float(stats.get("instance_cost")),
            prompt=_opening("user", asked) or as_text(first(problem, "text", "problem_statement")),
            extra={"api_calls": as_int(stats.get("api_calls"))} if "api_calls" in stats else {},
            derived=frozenset(name for name, is_inferred in inferred.items() if is_inferred),
            also=(Noted(f"{place}.content", system),) if system else (),
        )

    def _environment(self) -> str:
        """Return the name of the environment, or of the file if the environment has none."""
        named = as_str(self.fact("environment"))
        return Path(self.probe.name).stem if named in _UNNAMED and not self._history_only else named

    def _sent(self) -> list[dict[str, Json]]:
        """Return the input that the model got for the first step; empty if the steps do not record it."""
        return objects(first(self._first_step(), "query", "messages"))

    def _first_step(self) -> dict[str, Json]:
        return first_object(self.probe.object.get("trajectory"))

    def _era(self) -> str:
        step = self._first_step()
        if self._history_only:
            return "history only"
        # Versions before 1.1 are not recorded, but their steps have different members.
        if "query" in step:
            return "1.1"
        if "messages" in step:
            return "1.0"
        return "0.7" if "execution_time" in step else "0.5-0.7"

    def texts(self, index: int, values: Sequence[Json]) -> StepTexts | None:
        if self._history_only:
            return message_texts(values, _SHELL)
        value = values[0]
        if not isinstance(value, dict) or not _STEP_KEYS & value.keys():
            return None
        thought, spoken, calls = _content(value)
        return step_texts(thought, spoken, calls, [as_text(value.get("observation"))] if calls else [])

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        if self._history_only:
            return message_step(index, raws, _SHELL)
        value = Record(raws[0].value)
        if not value.has(*_STEP_KEYS):
            return unknown_step(index, raws, "step", as_text(raws[0].value))
        thought, spoken, calls = _content(value.members)
        action, observation = value.text("action"), value.text("observation")
        known = Record(_as_object(value.get("state")))
        diff = known.get("diff")
        kind = kind_of_command(action) if calls else StepKind.MESSAGE
        if not calls and observation.startswith("Exit"):
            kind = StepKind.END
        # No version records whether a command failed.
        failed = error_if(calls and reports_error(observation, kind))
        results = [Result("", observation, failed, None, value.number("execution_time"))] if calls else []
        return (
            StepBuilder(index, raws, Actor.AGENT, kind, "step")
            .thought(thought)
            .text(spoken)
            .calls(calls)
            .results(results)
            .edits(edits_of(calls))
            .state(known.without("diff"))
            .flag_if(failed, "error")
            .derived(
                "kind",
            )
            .derived_if(calls, "calls.tool")
            .derived_if(failed, "results.is_error")
            .diff_so_far(diff if isinstance(diff, str) else None)
            .build()
        )


def _opening(role: str, messages: Iterable[dict[str, Json]]) -> str:
    """Return the messages of a role before the first reply, without those of demonstrations."""
    found: list[str] = []
    for message in messages:
        # The first messages from a user may be a demonstration of another task.
        if message.get("is_demo") or message.get("agent") == "demo":
            continue
        if message.get("role") == "assistant":
            break
        found += [as_text(message.get("content"))] if message.get("role") == role else []
    return joined(found)


def _as_object(value: Json) -> Json:
    """Return `value`, or the object in it if it is JSON text, as older versions write state and settings."""
    return parsed_object(value) if isinstance(value, str) else value


def _content(value: dict[str, Json]) -> tuple[str, str, tuple[RunCall, ...]]:
    """Return the thought, the text and the calls of a step; without a call, the observation is text."""
    call = call_of_command(as_text(value.get("action")))
    # Without a call, the observation is the shell's answer to the text.
    if call is None:
        return "", joined([as_text(value.get("response")), as_text(value.get("observation"))]), ()
    return *_separated(
        as_text(value.get("thought")), as_text(value.get("response")), as_text(value.get("action"))
    ), (call,)


def _separated(thought: str, response: str, action: str) -> tuple[str, str]:
    """Return the thought of a reply, and its text without the thought and the call."""
    if thought == response:
        return "", response
    # The whole reply repeats the thought and the call, which are shown separately.
    remaining = response.replace(thought.strip(), "", 1)
    given = set(shell_words(action)) | {action.strip()}
    blocks = FUNCTION.findall(remaining)
    if blocks and all(value.strip() in given for block in blocks for value in PARAMETER.findall(block)):
        remaining = FUNCTION.sub("", remaining)
    remaining = FENCE.sub(lambda block: "" if block[1].strip() == action.strip() else block[0], remaining)
    return thought, "" if remaining.isspace() or remaining.strip() == action.strip() else remaining


def _recorded_action(message: dict[str, Json], _reply: str, _answer: str) -> tuple[RunCall, ...]:
    """Return the call of a message in the history, which contains the parsed action; none without one."""
    call = call_of_command(as_text(message.get("action")))
    return (call,) if call else ()


_SHELL = Shell(_recorded_action)


class SweAgent(SingleRun):
    """Recognised by a `trajectory`, or by `attempts` of which the first contains one.

    A file with only a `history` is recognised if its messages name an agent or a type. If there were several
    attempts, the run is the chosen one; each attempt is also listed, as `#attempt-N`.
    """

    name = "swe-agent"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("query", "messages"),
            "the messages sent to the model for a step: the prompts and the steps before it",
        ),
        NotShown(("response",), "the whole reply; its thought, its call and its other text are shown"),
        NotShown(
            ("state", "extra_info", "agent"),
            "the shell's folder and the open file; a diff in it is shown as diff so far",
        ),
        NotShown(
            ("history",), "demonstrations of other tasks, and the steps and prompts once more", of_run=True
        ),
        NotShown(("replay_config",), "settings and templates of prompts", of_run=True),
        NotShown(
            ("info.edited_files30", "info.edited_files50", "info.edited_files70"),
            "parts of the files that the submission changed",
            of_run=True,
        ),
        NotShown(("attempts",), "separate runs, if a run was tried several times", of_run=True),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        steps = probe.object.get("trajectory")
        if isinstance(steps, list):
            keys = as_dict(steps[0]).keys() if steps else set()
            if len(_STEP_KEYS & keys) >= 2:
                return 1.0 if keys >= _STEP_KEYS else 0.95
            return 0.6 if not steps or "history" in probe.object else 0.2
        attempts = objects(probe.object.get("attempts"))
        if attempts and "trajectory" in attempts[0]:
            return 0.9
        history = objects(probe.object.get("history"))
        if history and "role" in history[0] and ({"agent", "message_type"} & history[0].keys()):
            return 0.85
        return 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the run."""
        return _Reader(probe)

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the run, and its attempts if there were several."""
        yield RunEntry("", _Reader(probe).header())
        for id, part in _attempts(probe):
            yield RunEntry(id, replace(_Reader(part).header(), id=id))

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of the run, or of one of its attempts.

        Raises `RunFileError` if there is no such attempt.
        """
        if not id:
            return _Reader(probe)
        return _Reader(run_named(probe, id, _attempts(probe))[1])


def _attempts(probe: FileProbe) -> Iterator[tuple[str, FileProbe]]:
    if "attempts" in probe.object or probe.late("attempts") is not None:
        found = elements_at(probe.blob, probe.start, "attempts", light=LightKeys(("environment",)))
        for number, record in enumerate(found, 1):
            yield f"attempt-{number}", probe.part(record)


FORMAT = SweAgent()
