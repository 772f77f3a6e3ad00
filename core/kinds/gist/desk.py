"""What the tools of a gist may do outside of the text: look at traces, and run what the settings allow."""

from __future__ import annotations

from dataclasses import dataclass

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.entrypoints import EntrypointError, parse_entrypoint
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.reference.trace import Trace, read_trace
from gistpoint.core.kinds.gist.runs import CommandOutput, shown_run
from gistpoint.core.kinds.gist.verdict import ScoresGists
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import RefusalError
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Desk:
    """A `core.tools.declaration.GistDesk` for one call."""

    task: Task
    judge: ScoresGists
    tree: SourceTree
    text: str
    cancel: CancelToken | None = None

    @property
    def settings(self) -> GistSettings:
        """What the task allows."""
        return self.task.gist_settings

    def trace(self, command: str) -> Trace:
        """Return the recorded trace of the task's command, or trace another one now."""
        answer = self.judge.answer
        if command in ("", self.task.entrypoint):
            return read_trace(answer.trace)
        try:
            entrypoint = parse_entrypoint(command)
        except EntrypointError as error:
            raise RefusalError(str(error)) from error
        if entrypoint.text == self.task.entrypoint:
            return read_trace(answer.trace)
        run = self.judge.runner.run_original(
            self.tree, self.task.environment, entrypoint, timeout_s=answer.timeout_s, trace=True, cancel=self.cancel
        )
        if run.trace is None:
            raise RefusalError("Nothing was traced: the command could not be run on the repository.")
        try:
            return read_trace(run.trace)
        except TaskError as error:
            raise RefusalError(f"Nothing was traced: {error}") from error

    def shell(self, command: str) -> CommandOutput:
        """Run a shell command in a copy of the codebase, with the gist beside it."""
        return self.judge.runner.run_command(
            command,
            self.task.environment,
            execution=self.settings.execution,
            timeout_s=self.judge.answer.timeout_s,
            tree=self.tree,
            files={parse_entrypoint(self.task.entrypoint).gist_file: self.text},
            cancel=self.cancel,
        )

    def trial(self, text: str) -> str:
        """Run the task's command on a gist as it stands, and return what the run shows."""
        trial = self.judge.runner.run_gist(
            text,
            self.task.environment,
            parse_entrypoint(self.task.entrypoint),
            owned=self.judge.answer.owned,
            timeout_s=self.judge.answer.timeout_s,
            measure_lines=False,
            cancel=self.cancel,
        )
        return shown_run(trial.run)
