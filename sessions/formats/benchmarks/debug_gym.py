"""debug-gym's `trajectory.json`: a `log` of steps, each with the whole prompt."""

from __future__ import annotations

from collections.abc import Sequence

from gistpoint.sessions.formats.shared.calls import call_of_function, edits_of, kind_of
from gistpoint.sessions.records.building import StepBuilder, verdict_of
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun, unknown_step
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, Step, StepKind, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import LightKeys
from gistpoint.sessions.records.values import (
    as_bool,
    as_dict,
    as_int,
    as_str,
    as_text,
    first_object,
    objects,
    total,
)

_KEYS = frozenset({"step_id", "obs", "action", "content"})


class _Reader(RunReader):
    format = "debug-gym"
    arrays = ("log",)
    light = LightKeys(("content",))

    def header(self) -> Run:
        config = as_dict(self.fact("config"))
        llm = as_dict(config.get("llm"))
        solved = as_bool(self.fact("success"))
        opening = first_object(self.probe.object.get("log"))
        return Run(
            self.format,
            id=as_str(self.fact("uuid")),
            task=as_str(self.fact("problem")),
            model=as_str(config.get("llm_name")) or as_str(llm.get("name")) or as_str(llm.get("model")),
            agent=as_str(self.fact("agent_type")),
            verdict=verdict_of(solved),
            prompt=as_text(opening.get("problem_message")),
        )

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        value = raws[0].value
        if not isinstance(value, dict) or not _KEYS & value.keys():
            return unknown_step(index, raws, "log entry", as_text(value))
        action = value.get("action")
        calls = (call_of_function(action),) if isinstance(action, dict) else ()
        observation = as_text(value.get("obs"))
        # A step may ask the model several times.
        usage = [as_dict(pair.get("token_usage")) for pair in objects(value.get("prompt_response_pairs"))]
        # The first entry is what the environment shows at the beginning, before any action.
        opening = index == 0 and not calls
        prompts = [as_text(value.get(key)) for key in ("system_message", "problem_message")]
        opening_text = "\n\n".join(part for part in [*prompts, observation] if part)
        counts = (total([as_int(item.get(key)) for item in usage]) for key in ("prompt", "response"))
        return (
            StepBuilder(
                index,
                raws,
                Actor.ENVIRONMENT if opening else Actor.AGENT,
                StepKind.TASK if opening else kind_of(calls),
                f"step {as_str(value.get('step_id'))}".strip(),
            )
            .thought(as_text(value.get("reasoning")))
            .text(opening_text if opening else as_text(value.get("content")))
            .calls(calls)
            .results((Result(calls[0].id, observation),) if calls else ())
            .edits(edits_of(calls))
            .spent(Tokens(*counts))
            .derived("kind")
            .id(as_str(value.get("step_id")))
            .build()
        )


class DebugGym(SingleRun):
    """Recognised by a `log` of numbered steps, or with less confidence by a `log` and a `problem`."""

    name = "debug-gym"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("prompt_response_pairs",),
            "the messages sent to the model, and its reply in the provider's own form",
        ),
        NotShown(("tools", "config", "logger"), "settings, and the tools offered to the model", of_run=True),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        if not {"problem", "log"} & probe.object.keys():
            return 0.0
        log: Json = probe.object.get("log")
        entry = first_object(log)
        if entry and {"step_id", "obs"} & entry.keys():
            return 0.9
        return 0.6 if isinstance(log, list) and "problem" in probe.object else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the run."""
        return _Reader(probe)


FORMAT = DebugGym()
