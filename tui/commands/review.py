"""`gistpoint review`: open recorded runs on a screen."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.login import login_name
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.object_graph import live_annotations
from gistpoint.tui.commands.arguments import ISOLATION, READ_AS, read_files_as
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import require_terminal

if TYPE_CHECKING:
    from textual.screen import Screen

    from gistpoint.core.attempts.harness import TaskJudge
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.replay.replaying import Replay
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.services import Services
    from gistpoint.tui.screens.review.settings import Judging, ReviewSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest(Request):
    """A request to review recorded runs on a screen."""

    paths: tuple[str, ...] = ()
    demo: bool = False
    reviewer: str = ""
    blind: bool = False
    read_as: str = ""
    isolation: IsolationChoice


def review(request: ReviewRequest) -> int:
    """Open the list of the named runs, or the run itself if only one is named. Return the exit code.

    Raises `UserError` if nothing is named, or if a named run does not exist.
    """
    if not request.paths and not request.demo:
        raise UserError(
            "No run to review was named.", hint="`gistpoint review --demo` opens some runs to try it with."
        )
    for path in request.paths:
        _require_there(path)
    if request.read_as:  # imports all code that reads runs, so only if it is needed
        read_files_as(request.read_as)
    require_terminal("review", hint="gistpoint show RUN prints a run.")
    from gistpoint.tui.review_app import ReviewApp

    locations, paths = Locations.of_user(), request.paths
    if request.demo:
        from gistpoint.core.demo.tasks import recorded_runs, unpack_demo

        paths = (*paths, str(recorded_runs()))
        for _ in unpack_demo(locations.demo):
            pass
    reviewer = request.reviewer or login_name()
    replaying = partial(_replay, request.isolation)
    judging = partial(_judge, request.isolation)
    names = named_runs(paths, locations)
    load = partial(first_screen, names, locations, reviewer, request.blind, replaying, judging)
    return ReviewApp(locations, load, names).run_to_exit_code()


def _require_there(name: str) -> None:
    if os.path.exists(name):  # noqa: PTH110 (`Path.exists` raises if the name is too long)
        return
    from gistpoint.sessions.runs.opening import split_name  # would delay the first drawing

    if split_name(name)[0].exists():
        return
    from gistpoint.tui.commands.runs import attempt_folder  # would delay the screen for a file

    if attempt_folder(name) is not None or (Locations.of_user().runs / name / "run.toml").is_file():
        return
    raise UserError(
        f"There is no file, folder, attempt or agents' run called {name!r}.",
        hint="`gistpoint attempt list` and `gistpoint agent list` list what is here.",
    )


def _services(isolation: IsolationChoice) -> Services:
    """Return services that run code, but never ask for consent on the terminal, which shows the screen."""
    from gistpoint.object_graph import build_services

    services = build_services(isolation)
    services.consent.asker = lambda why_not: False
    return services


def _replay(isolation: IsolationChoice, document: RunDocument) -> Replay:
    return _services(isolation).replay_of(document, document.name)


def _judge(isolation: IsolationChoice, task: Task) -> TaskJudge:
    return _services(isolation).judge_for(task)


def named_runs(paths: Sequence[str], locations: Locations) -> tuple[str, ...]:
    """Return what to open for each name: a path or, for an agent's run, the folders of its attempts."""
    return tuple(found for path in paths for found in _stored(path, locations))


def first_screen(
    names: Sequence[str],
    locations: Locations,
    reviewer: str,
    blind: bool,
    replaying: Callable[[RunDocument], Replay] | None = None,
    judging: Judging | None = None,
) -> Callable[[], Screen[None]]:
    """Import the screen for a single run, or the screen for a list, and return its constructor.

    The first steps of a single run are read ahead. If that fails, the screen reports why. The folder of a
    study opens the list of its attempts, for a blind review.
    """
    from gistpoint.tui.screens.review.opening import is_one_run
    from gistpoint.tui.screens.review.screen import ReviewScreen

    settings = review_settings(locations, reviewer, blind=blind, replaying=replaying, judging=judging)
    if is_one_run(names):
        from gistpoint.tui.screens.review.loading import read_ahead

        return partial(ReviewScreen, names[0], settings, ahead=read_ahead(names[0]))
    from gistpoint.tui.screens.review.runs import RunsScreen

    if len(names) == 1 and (Path(names[0]) / "study.toml").is_file():
        from gistpoint.sessions.blinding import Blinding

        # Reviewers read attempts of an open study; the screen hides results until the verdict.
        Blinding.of_process = None
        study = Path(names[0]).absolute()
        return partial(
            RunsScreen, [str(study / "attempts")], replace(settings, blind=True, study=study, live=None)
        )
    return partial(RunsScreen, list(names), settings)


def review_settings(
    locations: Locations,
    reviewer: str,
    *,
    blind: bool = False,
    replaying: Callable[[RunDocument], Replay] | None = None,
    judging: Judging | None = None,
) -> ReviewSettings:
    """Return the settings of a review with the screens of this program."""
    from gistpoint.tui.screens.review.screens import Screens
    from gistpoint.tui.screens.review.settings import ReviewSettings

    live = live_annotations(locations, "reviews", reviewer)
    return ReviewSettings(locations, reviewer, Screens(), blind, replaying, judging, live=live)


def _stored(name: str, locations: Locations) -> list[str]:
    """Return the folders of the named attempt or of the named run's attempts; otherwise, only the name."""
    if Path(name).exists():
        return [name]
    from gistpoint.tui.commands.runs import attempt_folder

    if (folder := attempt_folder(name)) is not None:
        return [str(folder)]
    if not (locations.runs / name / "run.toml").is_file():
        return [name]
    from gistpoint.sessions.agentruns.store import AgentRunStore

    jobs = AgentRunStore(locations.runs).open(name).jobs.values()
    return [str(locations.attempts / state.attempt) for state in jobs if state.attempt] or [name]


REVIEW = CliCommand(
    ReviewRequest,
    review,
    {
        "paths": argument(
            "PATH",
            "files, folders, archives, FILE#ID for one of several, attempts' ids, names of agent"
            " runs; or a study's folder, to review its attempts blind",
        ),
        "demo": option("open recorded runs that come with gistpoint"),
        "reviewer": option("the reviewer's pseudonym (default: the login)", metavar="NAME"),
        "blind": option("hide the model and the outcome until the verdict"),
        "read_as": READ_AS,
        "isolation": ISOLATION,
    },
)
