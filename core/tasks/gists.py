"""The settings of a gist task: what its solver may do and is told."""

from __future__ import annotations

from dataclasses import dataclass

from gistpoint.core.errors import UserError

OPTIONAL_TOOLS = ("trace", "repo_graph", "bash", "edit_and_execute")
"""The tools that a task may add to browsing, writing and handing in."""
STRATEGIES = ("", "tracing", "reading")
UNLIMITED = -1
"""How a budget without a limit is written in `task.toml`."""


@dataclass(frozen=True, slots=True)
class GistSettings:
    """What the solver of a gist may do and is told (specs: gistify)."""

    owned: tuple[str, ...] = ()
    """The codebase's own top-level names, which may not be imported; the brief tells them."""
    execution: bool = False
    """Whether code may be run before the hand-in; without it `edit_and_execute` is not offered."""
    strategy: str = ""
    """What the brief advises: nothing, `tracing` or `reading`."""
    give_test: bool = False
    """Whether the brief holds the original test, and the gist begins with it."""
    tools: tuple[str, ...] = ()
    """Those of `OPTIONAL_TOOLS` that the task adds."""
    score_budget: int | None = 0
    """Uses of `score_gist` in a counted attempt; None for any number."""
    output_characters: int = 30_000
    """Of the output of a command, as the tools that run one show it."""
    gist_characters: int = 1_000_000
    """The longest gist that is taken."""


class ContradictionError(UserError):
    """Settings of a gist contradict each other, or the command; the hint says what to add or to leave out."""


def require_consistent(settings: GistSettings, *, is_test: bool) -> None:
    """Raise `ContradictionError` for settings that no task can be made with; `is_test` tells what the command is."""
    if "edit_and_execute" in settings.tools and not settings.execution:
        raise ContradictionError(
            "edit_and_execute runs code, and execution is off.", hint="Add --execution, or leave the tool out."
        )
    if settings.give_test and not is_test:
        raise ContradictionError("The command is no test, so there is none to give.", hint="Leave --give-test out.")
