"""`gistpoint review`: the screen for recorded runs."""

from __future__ import annotations

import argparse
import getpass
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.tui.commands.arguments import add_read_as, heed_read_as
from gistpoint.tui.commands.command import Handler
from gistpoint.tui.commands.output import require_terminal
from gistpoint.tui.object_graph import add_isolation

if TYPE_CHECKING:
    from textual.screen import Screen

    from gistpoint.core.kinds.gist.judge import GistJudge
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.replay.replaying import Replay
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.tui.screens.review.settings import Judging
    from gistpoint.tui.services import Services


def review_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint review`."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files, folders, archives, FILE#ID for one of several, attempts' ids, names of runs of agents; or a "
        "study's folder: its attempts, blind",
    )
    parser.add_argument("--demo", action="store_true", help="open recorded runs that come with gistpoint")
    parser.add_argument("--reviewer", default="", metavar="NAME", help="who reviews: a pseudonym (default: the login)")
    parser.add_argument("--blind", action="store_true", help="hide model and outcome until the verdict")
    add_read_as(parser)
    add_isolation(parser)
    return review


def review(options: argparse.Namespace) -> int:
    """Open the list of runs, or the run if only one was named."""
    if not options.paths and not options.demo:
        raise UserError("Nothing to review was named.", hint="`gistpoint review --demo` opens runs to try it with.")
    for path in options.paths:
        _require_there(path)
    if options.read_as:  # heeding it imports all that reads runs
        heed_read_as(options)
    require_terminal("review", hint="gistpoint show RUN prints a run.")
    from gistpoint.tui.review_app import ReviewApp

    locations = Locations.of_user()
    if options.demo:
        from gistpoint.core.demo.tasks import recorded_runs, unpack_demo

        options.paths = [*options.paths, str(recorded_runs())]
        for _ in unpack_demo(locations.demo):
            pass
    reviewer = options.reviewer or getpass.getuser()
    replaying = partial(_replay, options)
    judging = partial(_judge, options)
    first = partial(first_screen, options.paths, locations, reviewer, options.blind, replaying, judging)
    return ReviewApp(locations, first).run_to_exit_code()


def _require_there(name: str) -> None:
    if os.path.exists(name):  # noqa: PTH110 (a path raises where a name is too long for one)
        return
    from gistpoint.sessions.runs.opening import split_name  # loads more than the first paint needs

    if split_name(name)[0].exists():
        return
    from gistpoint.tui.commands.runs import attempt_folder  # loads more than the screen of a file needs

    if attempt_folder(name) is not None or (Locations.of_user().runs / name / "run.toml").is_file():
        return
    raise UserError(
        f"There is no {name!r}: no file, no folder, no attempt and no run of an agent.",
        hint="`gistpoint attempt list` and `gistpoint agent list` show what is here.",
    )


def _services(options: argparse.Namespace) -> Services:
    """Build the services that run code; they never ask on the terminal while the screen uses it."""
    from gistpoint.tui.object_graph import build_services

    services = build_services(options)
    services.consent.asker = lambda why_not: False
    return services


def _replay(options: argparse.Namespace, document: RunDocument) -> Replay:
    return _services(options).replay_of(document, document.name)


def _judge(options: argparse.Namespace, task: Task) -> GistJudge:
    return _services(options).gist_judge_for(task)


def first_screen(
    paths: list[str],
    locations: Locations,
    reviewer: str,
    blind: bool,
    replaying: Callable[[RunDocument], Replay] | None = None,
    judging: Judging | None = None,
) -> Screen[None]:
    """Return the screen of a run if only a file or an attempt was named, else the list."""
    from gistpoint.tui.screens.review.screens import Screens
    from gistpoint.tui.screens.review.settings import ReviewSettings

    screens = Screens()
    settings = ReviewSettings(locations, reviewer, screens, blind, replaying, judging)
    if len(paths) == 1 and (Path(paths[0]) / "study.toml").is_file():
        study = Path(paths[0]).absolute()
        return screens.runs([str(study / "attempts")], replace(settings, blind=True, study=study))
    paths = [found for path in paths for found in _stored(path, locations)]
    if len(paths) == 1 and _is_one_run(paths[0]):
        return screens.run(paths[0], settings)
    return screens.runs(paths, settings)


def _stored(name: str, locations: Locations) -> list[str]:
    """Return the folders of the attempt, or of the attempts of a run of an agent, that a name means; else the name."""
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


def _is_one_run(name: str) -> bool:
    """Whether a name is certainly that of one run: a plain JSON or JSON lines file is opened as such at first."""
    path = Path(name)
    if "#" in name and not path.exists():
        return True
    if path.is_dir():
        return (path / "journal.jsonl").is_file()
    try:
        with path.open("rb") as file:
            start = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError:
        return False
    return start[:1] in (b"{", b"[")
