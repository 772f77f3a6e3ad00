"""A run of a gist in words: what `edit_and_execute` answers, and nothing more than that run shows."""

from __future__ import annotations

from gistpoint.core.gist.runs import CommandRun, Raised, TestRun, TestsRun
from gistpoint.core.outcomes import RunStatus


def shown_run(run: TestsRun | CommandRun) -> str:
    """Return outcomes, output and exceptions of a run."""
    parts = [] if run.status is RunStatus.FINISHED else [f"The run ended as {run.status}."]
    parts += [f"The import of {name} was refused." for name in run.isolation.refused_imports]
    if isinstance(run, CommandRun):
        parts.append(f"Exit status {run.exit_status}.")
        parts += _streams(run.stdout, run.stderr)
        return "\n".join(parts)
    if run.collection_error is not None:
        parts.append(f"It could not be imported.\n{_raised(run.collection_error)}")
    elif not run.tests:
        parts.append("No test was collected.")
    parts += [_test(id, test) for id, test in run.tests.items()]
    return "\n".join(parts)


def _test(id: str, test: TestRun) -> str:
    raised = [_raised(test.raised)] if test.raised else []
    return "\n".join([f"{id.partition('::')[2] or id}: {test.outcome}", *raised, *_streams(test.stdout, test.stderr)])


def _raised(raised: Raised) -> str:
    return f"{raised.type}: {raised.message}"


def _streams(stdout: str, stderr: str) -> list[str]:
    pairs = (("standard output", stdout), ("standard error", stderr))
    return [f"{name}:\n{text.rstrip()}" for name, text in pairs if text.strip()]
