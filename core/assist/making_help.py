"""Makes a gist as help for a repair: the first failing test of the corrupted tree in one file.

The gist is made from the corrupted tree, which a solver has anyway; it must not contain a line of the
original that is missing from that tree (decision 85).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.code.source_text import python_text
from gistpoint.core.entrypoints.command import EntrypointError, parse_entrypoint
from gistpoint.core.entrypoints.runs import EntrypointRunner
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.intake import Examination, NoGistError, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.references import ReferenceMaker, reference_of
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree
from gistpoint.core.unfinished import scratch_folder

REDUCING_S = 60.0
"""The time for reducing a gist once it is faithful, in seconds."""


def make_help(
    task: Task,
    answer: Answer,
    runner: EntrypointRunner,
    clock: Callable[[], float],
    *,
    seconds: float = REDUCING_S,
    run: RunContext = UNATTENDED,
) -> HelpGist:
    """Return the gist of the first failing test that yields one, or the reason why none does.

    Tests are tried in the order of the brief, all parameters of a test at once; a test that no command can
    name, such as a doctest, yields none. The reason is that of the last test. Raises `CancelledError` when
    cancelled.
    """
    tree = SourceTree.open(task.tree_path)
    repository = Repository(task.source, tree, task.environment)
    reason = "The task does not name a failing test."
    for text in dict.fromkeys(failure.id.partition("[")[0] for failure in task.brief.failing):
        try:
            entrypoint = parse_entrypoint(f"pytest {shlex.quote(text)}")
        except EntrypointError as error:
            reason = f"{text}: {error.message}"
            continue
        run.step(f"making the gist of {entrypoint.text}")
        try:
            examined = Examination(repository, runner, allow_failing=True, run=run.quiet).examine(entrypoint)
        except NoGistError as error:
            reason = f"{entrypoint.text}: {error.message}"
            continue
        with scratch_folder("help") as scratch:
            gist = write_gist_task(repository, entrypoint, examined, Path(scratch))
            judge = GistJudge(gist, gist_answer(read_answer(gist)), runner)
            found = reference_of(
                judge, lambda given: ReferenceMaker(given, clock, seconds, cancel=run.cancel)
            )
        if not found.faithful:
            reason = f"{entrypoint.text}: {found.reason}"
        elif leaked := leaked_line(found.text, tree, answer):
            reason = f"{entrypoint.text}: a line of the original is in the gist: {leaked}"
        else:
            return HelpGist(found.text, entrypoint.text)
    return HelpGist(reason=reason)


def leaked_line(gist: str, tree: SourceTree, answer: Answer) -> str:
    """Return a line of an original function that is in a gist and not in the corrupted tree.

    Empty if there is none.
    """
    lines = {line.strip() for line in gist.splitlines()}
    corrupted = {
        line.strip() for _, source in tree.read_all(".py") for line in python_text(source).splitlines()
    }
    originals = (line.strip() for target in answer.targets for line in target.original.splitlines())
    return next((line for line in originals if line in lines and line not in corrupted), "")
