"""`gistpoint study simulate`, `demo` and `power`: a study without people, and what a design can tell."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gistpoint import __version__
from gistpoint.core.demo.tasks import PACKAGE
from gistpoint.core.draws import normal
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.study.operations import ORGANISER, STUDY, PowerTold, StudyError, StudyOperationKind
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.simulating import Behaviour, Crowd, ModelBehaviour, difficulties
from gistpoint.core.text import plural
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.tui.commands.arguments import counted
from gistpoint.tui.commands.command import DONE, Handler
from gistpoint.tui.commands.options import number, whole
from gistpoint.tui.commands.output import make_folder, print_json, print_table, print_text
from gistpoint.tui.commands.progress import ProgressLine, long_work
from gistpoint.tui.study_opening import FOLDER_HELP, open_study

if TYPE_CHECKING:
    from gistpoint.core.analysis.power import PowerDesign, PowerFigure
    from gistpoint.sessions.studies.simulation import SimulationCount

DEMO_FOLDER = "demo-study"
DEMO_PEOPLE = 12
DEMO_FUNCTIONS = 60
DEMO_SKILLS = {"strong-model": 1.2, "weak-model": -0.5}
"""The skills of the demo's simulated models, in logits."""
_MEMORY = Path("/dev/shm")


def simulate_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study simulate`."""
    parser.description = (
        "Fills a study that is declared with `simulated = true`: simulated people go its whole way, simulated models "
        "make the runs of each [[solver]]. Attempts are made by the real engine; the clock and the results of tests "
        "are made up. The same seed gives the same study."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--people", metavar="N", type=counted, default=DEMO_PEOPLE, help="how many (default: 12)")
    parser.add_argument("--seed", metavar="S", type=whole, default=None, help="default: the study's own")
    _add_behaviour(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")
    return simulate


def _add_behaviour(parser: argparse.ArgumentParser) -> None:
    default = Behaviour()
    for option, name, words in (
        ("--ability", "ability", "standard deviation of persons, in logits"),
        ("--task", "task", "standard deviation of tasks, in logits"),
        ("--sigma", "sigma", "standard deviation of the logarithm of the time that one person needs for one task"),
        ("--give-up", "give_up", "share of attempts whose patience ends before the time limit"),
        ("--assist-ratio", "assist_ratio", "time with assistance as a ratio to time alone"),
    ):
        known = getattr(default, name)
        parser.add_argument(option, metavar="X", type=number, default=known, help=f"{words} (default: {known:g})")


def simulate(options: argparse.Namespace) -> int:
    """Fill a simulated study."""
    behaviour = Behaviour(
        ability=options.ability,
        task=options.task,
        sigma=options.sigma,
        give_up=options.give_up,
        assist_ratio=options.assist_ratio,
    )
    root = path_of(options.dir)
    study = open_study(options.dir)
    _require_empty(study, options.dir)
    seed = study.study.seed if options.seed is None else options.seed
    with ProgressLine(quiet=options.json) as progress:
        count = fill(root, behaviour, options.people, seed, run=RunContext(progress=progress.making))
    return _told(options, "gistpoint.study-simulate/1", count)


def _require_empty(study: StudyFolder, name: str) -> None:
    study.require_simulated()
    if study.ledger.people or next(study.attempts(), None) is not None:
        raise StudyError(
            f"{study.study.id} has participants already: nobody is added to them.",
            hint=f"Delete log, attempts and runs in {name}, or simulate in another folder.",
        )
    if not study.tasks:
        raise StudyError(f"{study.study.id} has no tasks.", hint=f"Put task folders into {name}/{study.study.tasks}.")


def fill(
    root: Path,
    behaviour: Behaviour,
    people: int,
    seed: int,
    *,
    skills: dict[str, float] | None = None,
    run: RunContext | None = None,
) -> SimulationCount:
    """Let simulated people and models work in the study in `root`; `skills` are those of models, by name."""
    from gistpoint.core.kinds.simulation import SimulatedTime
    from gistpoint.sessions.studies.simulation import FIRST_MS, StudySimulation

    run = run or RunContext()
    clock = SimulatedTime(FIRST_MS, "simulated")
    study = StudyFolder(root, Locations.of_user(), clock)
    latest = max((operation.utc_ms for operation in study.ledger.operations), default=0)
    clock.advance(max(0, latest + 60_000 - FIRST_MS))
    hard = difficulties(list(study.tasks.values()), behaviour, seed)
    crowd = Crowd(behaviour, study.study.id, seed, hard)
    width = len(str(people))
    with _scratch() as scratch:
        simulation = StudySimulation(study, clock, crowd, scratch, __version__)
        simulation.open()
        simulation.people([f"P{number:0{max(2, width)}}" for number in range(1, people + 1)], run)
        models = [
            (solver, ModelBehaviour(name=solver.name, skill=(skills or {}).get(solver.name, normal(seed, solver.name))))
            for solver in study.study.solver
        ]
        simulation.models(models, run)
    return simulation.count


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a folder for journals before they are published: in memory if there is some."""
    below = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="gistpoint-", dir=below) as name:
        yield Path(name)


def demo_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study demo`."""
    parser.description = (
        "Writes a simulated study of the library that comes with gistpoint, to see what a report tells: "
        f"{DEMO_PEOPLE} simulated people, two simulated models, two conditions. Nobody took part, and it says so."
    )
    parser.add_argument("dir", metavar="DIR", nargs="?", default=DEMO_FOLDER, help=f"default: ./{DEMO_FOLDER}")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return demo


def demo(options: argparse.Namespace) -> int:
    """Write the demo's study."""
    from gistpoint.core.demo.functions import write_simulated_tasks

    root = path_of(options.dir).absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise StudyError(
            f"{root.name} is there already, and not an empty folder.",
            hint=f"`gistpoint study report {options.dir}` reports it if it is the demo's; else name another folder.",
        )
    part = root.with_name(f".{root.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with ProgressLine(quiet=options.json) as progress:
            run = RunContext(progress=progress.making)
            text = files(PACKAGE).joinpath("study.toml").read_text(encoding="utf-8")
            make_folder(part)
            (part / STUDY_FILE).write_text(text, encoding="utf-8")
            total = DEMO_FUNCTIONS + len(DEMO_SKILLS)
            for number, _ in enumerate(write_simulated_tasks(part / "tasks", Locations.of_user().demo, DEMO_FUNCTIONS)):
                run.progress(RunProgress("writing tasks", number, total, step="tasks"))
            seed = open_study(str(part)).study.seed
            count = fill(part, Behaviour(), DEMO_PEOPLE, seed, skills=DEMO_SKILLS, run=run)
        if root.is_dir():
            root.rmdir()
        part.rename(root)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return _told(options, "gistpoint.study-demo/1", count)


def _told(options: argparse.Namespace, schema: str, count: SimulationCount) -> int:
    if options.json:
        print_json(schema, {"folder": options.dir, **asdict(count)})
        return DONE
    people = plural(count.people, "simulated person", "simulated people")
    print_text(
        f"{options.dir}: {people} made {plural(count.attempts, 'attempt')} and solved {count.solved}; "
        f"simulated models made {plural(count.runs, 'run')}. Nobody took part."
    )
    if count.withdrew:
        print_text(f"{count.withdrew} of the people withdrew on the way, as happens.")
    for problem in count.problems:
        print_text(problem)
    print_text(f"Next: gistpoint study report {options.dir}")
    return DONE


def power_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study power`."""
    parser.description = (
        "Says how wide the 95 % interval of the primary estimate will be, for the design of the study and several "
        "numbers of people, before anybody is asked. Outcomes are simulated and analysed as those of the study will be."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--people", metavar="N", type=counted, default=None, help="only for so many people")
    parser.add_argument(
        "--effect", metavar="D", type=number, help="the difference of rates, or ratio of times, to be told"
    )
    parser.add_argument(
        "--rate", metavar="X", type=number, default=0.5, help="the share solved (default: 0.5, the widest)"
    )
    parser.add_argument(
        "--ability", metavar="X", type=number, default=0.8, help="standard deviation of persons, in logits"
    )
    parser.add_argument("--task", metavar="X", type=number, default=1.2, help="standard deviation of tasks, logits")
    parser.add_argument("--sigma", metavar="X", type=number, default=0.9, help="of the logarithm of a person's time")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return power


def power(options: argparse.Namespace) -> int:
    """Print the half-widths to expect, and keep them in the study's log."""
    from gistpoint.core.analysis.running import missing_extra

    try:
        return _power(options)
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error


def _power(options: argparse.Namespace) -> int:
    from gistpoint.core.analysis.power import PEOPLE, PowerAssumptions, design_of, power_of

    study = open_study(options.dir)
    assumed = PowerAssumptions(
        ability=options.ability, task=options.task, rate=options.rate, sigma=options.sigma, effect=options.effect
    )
    numbers = (options.people,) if options.people else PEOPLE
    designs = [design_of(study.study, list(study.tasks.values()), people) for people in numbers]
    with long_work(quiet=getattr(options, "json", False), kept="Nothing was written.") as work:
        figures = [power_of(design, assumed, study.study.seed, run=work.run) for design in designs]
    told = PowerTold(
        what=designs[0].what,
        assumed=msgspec.to_builtins(assumed),
        figures=tuple(msgspec.to_builtins(figure) for figure in figures),
    )
    study.record(ORGANISER, STUDY, StudyOperationKind.POWER, told)
    if options.json:
        values = {"id": study.study.id, "what": told.what, "assumed": told.assumed, "figures": list(told.figures)}
        print_json("gistpoint.study-power/1", values)
        return DONE
    _print_power(designs[0], figures, options)
    return DONE


def _print_power(design: PowerDesign, figures: list[PowerFigure], options: argparse.Namespace) -> None:
    width = "known to within a factor" if design.of_times else "half-width"
    effect = figures[0].power is not None
    print_text(
        f"Primary estimate: {design.what}. Of all attempts of people; of one mode or condition alone it is wider."
    )
    print_table(
        ["people", "tasks each", "tasks", "attempts", width, *(["told from none"] if effect else [])],
        [
            [
                str(figure.people),
                str(figure.each),
                str(figure.tasks),
                str(figure.attempts),
                "no interval" if figure.half_width is None else f"{figure.half_width:.2f}",
                *([f"{100 * (figure.power or 0):.0f} %"] if effect else []),
            ]
            for figure in figures
        ],
    )
    print_text(
        f"Assumed: {options.rate:g} solved, standard deviation of persons {options.ability:g} and of tasks "
        f"{options.task:g} logits"
        + (f", of log times {options.sigma:g}" if design.of_times else "")
        + (f", effect {options.effect:g}" if effect else "")
        + ". Kept in the study's log."
    )
