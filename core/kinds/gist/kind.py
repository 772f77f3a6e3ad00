"""Gists as a kind of task.

Code that reads runs needs only the tools of the kinds, so judges, checks and measures are imported on first
use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.model import (
    GistTask,
    command_identity,
    command_version,
    gist_settings,
    gist_task,
)
from gistpoint.core.kinds.gist.state import GistState
from gistpoint.core.kinds.gist.tools import (
    GIST_BUFFER,
    OPTIONAL,
    SCORE_GIST,
    SUBMIT_GIST,
    WRITE_GIST,
    WRITING,
    gist_tools,
)
from gistpoint.core.kinds.kind import (
    ExportedWork,
    OneRequest,
    Rejudged,
    StartText,
    TaskKind,
    Trial,
    TrialSubject,
)
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tasks.names import shown_name
from gistpoint.core.tools.browsing import BROWSING

if TYPE_CHECKING:
    from gistpoint.core.attempts.identity import Role
    from gistpoint.core.attempts.state import KindState, Submission
    from gistpoint.core.kinds.gist.judge import GistJudge
    from gistpoint.core.kinds.gist.simulation import GistScene
    from gistpoint.core.kinds.kind import Runners
    from gistpoint.core.kinds.measures import Analysis, Measure, MeasuredAttempt
    from gistpoint.core.running import RunContext
    from gistpoint.core.tasks.budgets import Budgets
    from gistpoint.core.tasks.fields import Fields
    from gistpoint.core.tasks.leaks import CheckFinding
    from gistpoint.core.tasks.model import Answer, Task
    from gistpoint.core.tools.declaration import Tool

PROFILES = ("all", "browse", "bash", "edit_and_execute")
"""Named sets of tools, whose settings are in `core.kinds.gist.overrides`."""


@cache
def prompt_text(name: str) -> str:
    """Return the stored text of a prompt."""
    return (
        files("gistpoint.core.kinds.gist")
        .joinpath("prompts", f"{name}.md")
        .read_text(encoding="utf-8")
        .strip()
    )


class Gist(TaskKind["GistJudge"]):
    """The kind in which a solver writes the behaviour of a command as one self-contained file."""

    modes = (Mode.GIST,)
    screen = "gist"
    tools = (*BROWSING, *WRITING, *OPTIONAL, SCORE_GIST, SUBMIT_GIST)
    noun = "gist"
    score_rule = (
        "Fidelity is 1 if the gist does everything that the command does, otherwise 0. There are also two"
        " rates: the share of its lines that run, and the share of its lines that are in the repository."
    )
    takes_settings = True
    profiles = PROFILES
    suite = False

    @property
    def blank(self) -> KindState:
        """The empty gist."""
        return GistState()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The scores and rates of a gist."""
        from gistpoint.core.kinds.gist.measures import MEASURES

        return MEASURES

    @property
    def task_measures(self) -> tuple[Measure, ...]:
        """The figures for the command."""
        from gistpoint.core.kinds.gist.measures import OF_COMMAND

        return OF_COMMAND

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """The analyses of Gistify."""
        from gistpoint.core.kinds.gist.measures import ANALYSES

        return ANALYSES

    def budgets(self, task: Task, role: Role) -> Budgets:
        """Return the task's steps and one hand-in; scores are unlimited unless the attempt counts."""
        from gistpoint.core.kinds.gist.overrides import gist_budgets

        return gist_budgets(task, role)

    def tools_of(self, task: Task, budgets: Budgets) -> tuple[Tool, ...]:
        """Return the tools that the settings allow, and `score_gist` if there is a budget for scores."""
        return gist_tools(gist_settings(task), scoring=budgets.scores != 0)

    def measured(self, attempt: MeasuredAttempt) -> Mapping[str, Any]:
        """Return the measures of the best hand-in, by name; empty without a hand-in."""
        from gistpoint.core.kinds.gist.measures import measured

        best = attempt.state.best
        if best is None:
            return {}
        return measured(best.metrics)

    def accepts(self, passing: Submission) -> bool:
        """Return whether the gist does not fake any part of the codebase."""
        from gistpoint.core.kinds.gist.measures import is_mocked

        return not is_mocked(passing)

    def read(self, fields: Fields) -> GistTask:
        """Return the part with the command and the table `gist`. Raises `TaskError`, naming a bad key."""
        from gistpoint.core.kinds.gist.documents import read_command, read_settings

        settings = read_settings(fields.table("gist"))
        return read_command(fields, GistTask(fields.get("entrypoint", str), settings))

    def document(self, task: Task) -> Mapping[str, Any]:
        """Return the command and the table `gist`."""
        from gistpoint.core.kinds.gist.documents import command_document, settings_table

        return {**command_document(gist_task(task)), "gist": settings_table(gist_settings(task))}

    def identity(self, task: Task) -> Mapping[str, Any]:
        """Return the command, with its standard input and its variables if it has any."""
        return command_identity(gist_task(task))

    def version(self, task: Task) -> int:
        """Return the version of the task (see `command_version`)."""
        return command_version(gist_task(task), task.environment.image)

    def read_answer(self, task: Task, fields: Fields) -> Answer:
        """Return the runs of the original, and everything else that gists are compared with.

        Raises `TaskError`, which names the key, for a bad value.
        """
        from gistpoint.core.kinds.gist.documents import read_gist_answer
        from gistpoint.core.tasks.model import Answer

        of_kind = read_gist_answer(fields.table("gist"))
        metrics = fields.table("metrics").values
        provenance = fields.table("provenance").values
        return Answer((), (), metrics, provenance, of_kind)

    def answer_document(self, answer: Answer) -> Mapping[str, Any]:
        """Return the table `gist`."""
        from gistpoint.core.kinds.gist.answer import gist_answer
        from gistpoint.core.kinds.gist.documents import gist_answer_document

        return {"gist": gist_answer_document(gist_answer(answer))}

    def verify(self, task: Task, answer: Answer) -> None:
        """Raise `TaskError` unless every run of the original has the ids of the suite."""
        from gistpoint.core.entrypoints.runs import TestsRun
        from gistpoint.core.kinds.gist.answer import gist_answer
        from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE
        from gistpoint.core.tasks.identity import hash_of_ids

        for run in gist_answer(answer).originals:
            ids = run.tests if isinstance(run, TestsRun) else ()
            if hash_of_ids(ids) != task.suite.ids_sha256:
                raise TaskError(
                    f"{TASK_FILE}: the key 'suite.ids_sha256' does not match the runs in {ANSWER_FILE}."
                )

    def brief(self, task: Task) -> str:
        """Return the brief of a gist."""
        from gistpoint.core.kinds.gist.brief import gist_brief

        return gist_brief(task)

    def start(self, task: Task) -> StartText:
        """Return the empty gist."""
        return StartText(GIST_BUFFER)

    def judge(self, task: Task, answer: Answer, runners: Runners) -> GistJudge:
        """Return a judge that runs gists."""
        from gistpoint.core.kinds.gist.answer import gist_answer
        from gistpoint.core.kinds.gist.judge import GistJudge

        return GistJudge(task, gist_answer(answer), runners.entrypoints_for(task))

    def check(self, judge: GistJudge, run: RunContext) -> Iterator[CheckFinding]:
        """Yield the findings on leaks in the workspace and on gists whose score is known."""
        from gistpoint.core.kinds.gist.check import gist_findings

        return gist_findings(judge, run)

    def trial(
        self, judge: GistJudge, subject: TrialSubject, texts: Mapping[str, str], run: RunContext
    ) -> Trial:
        """Return a new run of the original, or the score of the reference gist or a validator's gist."""
        from gistpoint.core.kinds.gist.check import original_trial, score_trial

        if subject is TrialSubject.ORIGINAL:
            return original_trial(judge, cancel=run.cancel)
        reference = judge.answer.reference
        text = reference.text if reference is not None else ""
        if subject is TrialSubject.FIX:
            text = texts[GIST_BUFFER]
        return score_trial(judge, subject, text, run=run)

    def asks(self, task: Task) -> str:
        """Return the instruction for a gist."""
        return "Put all the code that one test runs into a single file."

    def subject(self, task: Task) -> str:
        """Return `gist of` and the test's name, or the whole command if it does not name a single test.

        This reveals nothing to a solver, because the brief contains the command.
        """
        command = gist_task(task).entrypoint
        return f"gist of {shown_name(command.rpartition('::')[2])}"

    def about(self, task: Task) -> str:
        """Return the command."""
        return gist_task(task).entrypoint

    def difficulty(self, task: Task) -> Mapping[str, float]:
        """Return how much of the codebase the command exercises; empty if that is unknown."""
        from gistpoint.core.kinds.gist.documents import read_figures

        figures = read_figures(task)
        if figures is None:
            return {}
        return asdict(figures.difficulty)

    def difficulty_words(self, figures: Mapping[str, float]) -> str:
        """Return the numbers of calls, functions and files and the share of lines; empty without figures."""
        from gistpoint.core.kinds.gist.trace import Difficulty, shown_difficulty

        return shown_difficulty(Difficulty(**figures)) if figures else ""  # type: ignore[arg-type]

    def originals(self, answer: Answer) -> int:
        """Return how often the command was run on the original."""
        from gistpoint.core.kinds.gist.answer import gist_answer

        return len(gist_answer(answer).originals)

    def rejudged(self, judge: GistJudge, files: Mapping[str, bytes | None]) -> Rejudged:
        """Return the judgement of the gist's file; a missing file is judged as an empty gist.

        Raises `InfrastructureError` if the isolation failed.
        """
        data = files.get(gist_task(judge.task).command.gist_file) or b""
        found = judge.judge(data.decode("utf-8-sig", "surrogateescape")).score
        fidelity = found.execution_fidelity
        return Rejudged(
            fidelity == 1, float(fidelity), found.error.evidence if found.error is not None else ""
        )

    def read_settings(self, data: bytes, file: str) -> dict[str, Any]:
        """Return settings from TOML or a JSON object. Raises `GistSettingsError` if they can't be read."""
        from gistpoint.core.kinds.gist.overrides import overrides_data, parse_overrides

        return overrides_data(parse_overrides(data, file))

    def in_profile(self, name: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the settings `given`, overridden by those of a profile; None if neither sets anything."""
        from gistpoint.core.kinds.gist.overrides import GistOverrides, in_profile, overrides_data

        own = None
        if given is not None:
            own = msgspec.convert(dict(given), decodable(GistOverrides))
        found = in_profile(name, own)
        if found is None:
            return None
        return overrides_data(found)

    def settled(self, task: Task, answer: Answer, given: Mapping[str, Any]) -> Task:
        """Return the task as it is in an attempt with these settings.

        Raises `GistSettingsError` if they contradict each other or the task.
        """
        from gistpoint.core.kinds.gist.answer import gist_answer
        from gistpoint.core.kinds.gist.original_test import given_test
        from gistpoint.core.kinds.gist.overrides import GistOverrides

        known = gist_answer(answer)
        parameters = known.parameters(gist_task(task).command)
        return msgspec.convert(dict(given), decodable(GistOverrides)).on(
            task, given_test(known.test), parameters
        )

    def settings_in(self, recorded: Mapping[str, Any], task: Task) -> object:
        """Return the settings in the header of an attempt; without any, those of the task."""
        from gistpoint.core.kinds.gist.overrides import settings_data

        return recorded.get("gist_settings", settings_data(task))

    def with_budgets(self, task: Task, budgets: Budgets) -> Task:
        """Return the task with these budgets, which its brief states."""
        from gistpoint.core.kinds.gist.overrides import with_budgets

        return with_budgets(task, budgets)

    @property
    def prompts(self) -> Mapping[str, str]:
        """The prompts of the static setting (Gistify, 4.3), by name."""
        from gistpoint.core.kinds.gist.brief import STATIC_PROMPTS

        return {name: prompt_text(name) for name in STATIC_PROMPTS}

    def one_request(self, task: Task, answer: Answer) -> OneRequest:
        """Return a request with the rules, then the text of each file of the trace, in the trace's order."""
        from gistpoint.core.kinds.gist.answer import gist_answer
        from gistpoint.core.kinds.gist.brief import static_prompt, static_template, static_values

        text = static_prompt(task, prompt_text(static_template(task)))
        return OneRequest(text, static_values(task, gist_answer(answer)))

    def handed_in(self, text: str) -> tuple[tuple[Tool, dict[str, str]], ...]:
        """Return the call that writes the gist, unless `text` is empty, and the hand-in."""
        hand_in = (SUBMIT_GIST, dict[str, str]())
        if not text:
            return (hand_in,)
        return (WRITE_GIST, {"content": text}), hand_in

    def exported_brief(self, task: Task, shell: str, place: str) -> str:
        """Return the brief for a solver with a shell, who writes the gist to `place`."""
        from gistpoint.core.kinds.gist.brief import gist_brief

        return gist_brief(task, shell=shell, gist=place)

    def exported(self, task: Task, answer: Answer) -> ExportedWork:
        """Return the gist's file, with the reference gist if it is faithful."""
        from gistpoint.core.kinds.gist.answer import gist_answer

        name = gist_task(task).command.gist_file
        known = gist_answer(answer).reference
        solution = {}
        if known is not None and known.faithful:
            solution[name] = known.text.encode("utf-8", "surrogateescape")
        return ExportedWork(name, gist_settings(task).execution, solution)

    def targets(self, task: Task, answer: Answer) -> tuple[str, ...]:
        """Return the command, the only subject of a gist."""
        return (gist_task(task).entrypoint,)

    def metrics(self, answer: Answer) -> Mapping[str, float]:
        """Return how much of the codebase the command exercises."""
        from gistpoint.core.kinds.gist.answer import gist_answer

        return {name: float(value) for name, value in asdict(gist_answer(answer).measured).items()}

    def simulated(self, task: Task, answer: Answer) -> GistScene:
        """Return the simulated scene of a gist."""
        from gistpoint.core.kinds.gist.simulation import GistScene

        return GistScene(self, task, answer)
