"""`gistpoint study simulate`, `demo` and `power`: simulated studies, and the power of a design."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gistpoint.core.locations import Locations, path_of
from gistpoint.core.readable import percent_words
from gistpoint.core.running import RunContext
from gistpoint.core.text import plural
from gistpoint.sessions.studies.analysing import PowerOfStudy, StudyPower, record_power
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.simulation import (
    DEMO_PEOPLE,
    SimulateStudy,
    SimulationCount,
    simulate_study,
    write_demo_study,
)
from gistpoint.tui.commands.arguments import JSON
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, Option, argument, option
from gistpoint.tui.commands.output import print_json, print_table, print_text
from gistpoint.tui.commands.progress import ProgressLine, long_work
from gistpoint.tui.commands.studies import StudyCommand, StudyRequest


def simulate(study: StudyFolder, request: SimulateStudy, as_json: bool) -> int:
    """Fill a simulated study with attempts. Return the exit code."""
    with ProgressLine(quiet=as_json) as progress:
        run = RunContext(progress=progress.making)
        count = simulate_study(study, Locations.of_user(), request, run)
    return _print_count("gistpoint.study-simulate/1", study.named, count, as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStudy(StudyRequest):
    """A request to write the demo's study into a folder."""

    study: str = "demo-study"


def demo(request: DemoStudy) -> int:
    """Write the study of the demo. Return the exit code."""
    with ProgressLine(quiet=request.json) as progress:
        root, run = path_of(request.study).absolute(), RunContext(progress=progress.making)
        count = write_demo_study(root, request.study, Locations.of_user(), run)
    return _print_count("gistpoint.study-demo/1", request.study, count, as_json=request.json)


def _print_count(schema: str, folder: str, count: SimulationCount, *, as_json: bool) -> int:
    if as_json:
        print_json(schema, {"folder": folder, **asdict(count)})
        return DONE
    people = plural(count.people, "simulated person", "simulated people")
    print_text(
        f"{folder}: {people} made {plural(count.attempts, 'attempt')} and solved {count.solved}; "
        f"simulated models made {plural(count.runs, 'run')}. Nobody took part."
    )
    if count.withdrew:
        print_text(f"{count.withdrew} of the people withdrew before the end, as some real people do.")
    for problem in count.problems:
        print_text(problem)
    print_text(f"Next: gistpoint study report {folder}")
    return DONE


def power(study: StudyFolder, request: PowerOfStudy, as_json: bool) -> int:
    """Print the expected precision of the primary estimate, and the power if an effect is given; log both.

    Return the exit code.
    """
    with long_work(quiet=as_json, kept="Nothing was written.") as work:
        found = record_power(study, request, work.run)
    if as_json:
        forecast = found.recorded
        values = {
            "id": study.study.id,
            "what": forecast.what,
            "assumed": forecast.assumed,
            "figures": list(forecast.figures),
        }
        print_json("gistpoint.study-power/1", values)
    else:
        _print_power(found, request)
    return DONE


def _print_power(found: StudyPower, request: PowerOfStudy) -> None:
    design, figures = found.design, found.figures
    width = "known to within a factor" if design.of_times else "half-width"
    effect = figures[0].power is not None
    whose = "runs of both models" if design.models else "attempts of people that it uses"
    print_text(
        f"Primary estimate: {design.what}. This is for all {whose}; for a single mode, the interval is wider."
    )
    print_table(
        ["people", "tasks each", "tasks", "attempts", width, *(["detected"] if effect else [])],
        [
            [
                str(figure.people),
                str(figure.each),
                str(figure.tasks),
                str(figure.attempts),
                "no interval" if figure.half_width is None else f"{figure.half_width:.2f}",
                *([percent_words(figure.power or 0.0)] if effect else []),
            ]
            for figure in figures
        ],
    )
    print_text(
        f"Assumed: {request.rate:g} solved, standard deviation of persons {request.ability:g} and of tasks "
        f"{request.task:g} logits"
        + (f", of log times {request.sigma:g}" if design.of_times else "")
        + (f", effect {request.effect:g}" if effect else "")
        + ". Saved in the study's log."
    )


def _number(name: str, help: str) -> Option:
    return option(help, name, metavar="X")


SIMULATE = StudyCommand(
    SimulateStudy,
    simulate,
    {
        "people": option("number of people (default: {default})", metavar="N"),
        "seed": option("default: the study's own", metavar="S"),
        "ability": _number("--ability", "standard deviation of persons, in logits (default: {default})"),
        "task": _number("--task", "standard deviation of tasks, in logits (default: {default})"),
        "sigma": _number(
            "--sigma",
            "standard deviation of the logarithm of the time that one person needs for one task (default:"
            " {default})",
        ),
        "give_up": _number(
            "--give-up", "share of attempts in which patience ends before the time limit (default: {default})"
        ),
        "assist_ratio": _number(
            "--assist-ratio", "ratio of the time with assistance to the time alone (default: {default})"
        ),
    },
    about=(
        "Fills a study that is declared with `simulated = true`: simulated people take part from"
        " beginning to end, and simulated models make the runs of each [[solver]]. The real engine makes"
        " the attempts; the clock and the test results are made up. The same seed makes the same"
        " study."
    ),
)
DEMO = CliCommand(
    DemoStudy,
    demo,
    {"study": argument("DIR", "default: ./{default}"), "json": JSON},
    about=(
        "Writes a simulated study of the library that comes with gistpoint, to see what a report contains:"
        f" {DEMO_PEOPLE} simulated people, two simulated models, two conditions. Nobody took part, and the"
        " report says so."
    ),
)
POWER = StudyCommand(
    PowerOfStudy,
    power,
    {
        "people": option("only for this many people", metavar="N"),
        "effect": option("the difference in rates, or ratio of times, to be detected", metavar="D"),
        "rate": _number("--rate", "the share solved (default: {default}, which makes the interval widest)"),
        "ability": _number("--ability", "standard deviation of persons, in logits"),
        "task": _number("--task", "standard deviation of tasks, in logits"),
        "sigma": _number("--sigma", "standard deviation of the logarithm of a person's time"),
        "repeats": option("runs of a model at each task (default: {default})", metavar="K"),
    },
    about=(
        "Predicts the width of the 95% interval of the primary estimate, for the design of the study and"
        " several numbers of people, before anybody takes part. Outcomes are simulated and analysed like the"
        " study's."
    ),
)
