"""`gistpoint study compare`, `confirm` and `read`: passing repairs compared, confirmed, and read blind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gistpoint.core.login import login_name
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.study.operations import StudyError
from gistpoint.core.tasks.equivalence import Equivalence
from gistpoint.core.text import plural
from gistpoint.core.trees import SourceTree
from gistpoint.object_graph import build_equivalence_tester, build_services
from gistpoint.sessions.confirming import AskedPass
from gistpoint.sessions.studies.confirming import PassesToConfirm, confirm_study, passes_to_confirm
from gistpoint.sessions.studies.course import outcomes_hidden, require_unblinded
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import load_study
from gistpoint.sessions.studies.repairs import (
    CompareRepairs,
    PassingAttempt,
    ReadingItem,
    compare_repairs,
    decided_before,
    journals_of,
    passing_attempts,
    reading_queue,
    record_reading,
)
from gistpoint.sessions.studies.writers import checked_code
from gistpoint.tui.commands.arguments import ISOLATION, JSON
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.confirming import needs_attention, outcome_row, outcome_words
from gistpoint.tui.commands.options import CliCommand, OptionTable, option
from gistpoint.tui.commands.output import print_json, print_table, print_text, require_terminal
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.commands.studies import STUDY, UNBLIND, NamedStudy, StudyRequest
from gistpoint.tui.study_opening import open_study


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairComparison(StudyRequest):
    """A request to compare the passing repairs of a study with the originals."""

    repairs: CompareRepairs
    isolation: IsolationChoice
    unblind: bool = False


def compare(request: RepairComparison) -> int:
    """Compare repairs with the originals, and print all results. Return 1 if one differs.

    Repairs that were compared earlier are left out unless requested. Raises `StudyError` for a simulated
    study, and while outcomes are hidden.
    """
    folder = open_study(request.study)
    if folder.study.simulated:
        raise StudyError(
            f"{folder.study.id} is simulated: its repairs are made up, so there is nothing to compare."
        )
    require_unblinded(folder, unblind=request.unblind)
    passing = _passing(folder)
    with long_work(
        quiet=request.json, kept="Comparisons so far are kept: the same command continues from there."
    ) as work:
        found = compare_repairs(
            folder, passing, request.repairs, lambda: build_equivalence_tester(request.isolation), work.run
        )
    counts = Counter(result.verdict for result in found)
    if request.json:
        rows = [{name: getattr(row, name) for name in type(row).__slots__} for row in found]
        print_json("gistpoint.study-compare/1", {"study": folder.study.id, "attempts": rows})
    else:
        rows_shown = [
            (row.attempt, row.task[:12], row.verdict, str(row.inputs), row.example) for row in found
        ]
        print_table(["attempt", "task", "verdict", "calls", "smallest difference"], rows_shown)
        words = ", ".join(f"{counts[kind]} {kind.replace('_', ' ')}" for kind in Equivalence if counts[kind])
        print_text(f"{plural(len(passing), 'attempt')} passed with a repair. {words or 'None was compared'}.")
    return NEGATIVE if counts[Equivalence.DIFFERS] else DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmStudy(StudyRequest):
    """A request to confirm the passes of a study."""

    isolation: IsolationChoice
    unblind: bool = False


def confirm(request: ConfirmStudy) -> int:
    """Confirm the passes whose journals are on this machine, and print each result.

    Return 1 if one needs a person's attention, or if other machines have journals. While outcomes are hidden,
    nothing is printed that depends on them, not even their number (decision 171), and 0 is returned. Raises
    `StudyError` for a simulated study.
    """
    folder = open_study(request.study)
    folder.require_people()
    if outcomes_hidden(folder, unblind=request.unblind):
        return _confirm_unseen(request, folder)
    waiting = passes_to_confirm(folder)
    found: list[AskedPass] = []
    with long_work(
        quiet=request.json, kept="Confirmations so far are in the journals: the same command continues."
    ) as work:
        for one in confirm_study(build_services(request.isolation), folder, waiting.here, work.run):
            found.append(one)
            if not request.json:
                print_text(f"{one.attempt_id}: {outcome_words(one)}")
    if request.json:
        rows = [outcome_row(one) for one in found]
        values = {"study": folder.study.id, "attempts": rows, "elsewhere": list(waiting.elsewhere)}
        print_json("gistpoint.study-confirm/1", values)
    else:
        _print_waiting(waiting)
    return NEGATIVE if waiting.elsewhere or any(map(needs_attention, found)) else DONE


def _confirm_unseen(request: ConfirmStudy, folder: StudyFolder) -> int:
    with long_work(
        quiet=True, kept="Confirmations so far are in the journals: the same command continues."
    ) as work:
        for _ in confirm_study(
            build_services(request.isolation), folder, passes_to_confirm(folder).here, work.run
        ):
            pass
    if request.json:
        print_json("gistpoint.study-confirm/1", {"study": folder.study.id, "hidden": True})
    else:
        print_text(
            "The passes with a journal on this machine, if any, are confirmed. Results are hidden until the"
            " study is closed. Run the command on each machine that has journals."
        )
    return DONE


def _print_waiting(waiting: PassesToConfirm) -> None:
    if not waiting.here:
        print_text("No pass with a journal on this machine has to be confirmed.")
    if waiting.elsewhere:
        count = plural(len(waiting.elsewhere), "pass", "passes")
        print_text(
            f"Other machines have the journals of {count}, and only they add to these. Run the command there."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindReading(NamedStudy):
    """A request to read the passing changes of a study blind."""

    reader: str = ""
    unblind: bool = False


def read_changes(request: BlindReading) -> int:
    """Open the passing changes of a study for reading. Return the exit code.

    Raises `StudyError` if nothing has passed yet, while outcomes are hidden, and for an invalid pseudonym.
    """
    from gistpoint.core.locations import Locations
    from gistpoint.tui.base_app import OneScreenApp
    from gistpoint.tui.screens.study.reading import BlindReadingScreen, MergeAnswer, ShownChange

    folder = open_study(request.study)
    require_unblinded(folder, unblind=request.unblind)
    require_terminal("reading", hint="`gistpoint study report DIR` contains readers' answers.")
    reader = _reader_name(request.reader or login_name())
    items = reading_queue(folder, _passing(folder), reader)
    if not items:
        raise StudyError("Nothing has passed yet, so there is nothing to read.")
    answers = {
        place: MergeAnswer(decision, why)
        for place, (decision, why) in decided_before(folder, items, reader).items()
    }

    def shown(item: ReadingItem) -> ShownChange:
        failing = tuple(failure.id for failure in item.task.brief.failing)
        files = item.repair.change(SourceTree.open(item.task.tree_path))
        return ShownChange(item.task.source.name, failing, files, f"{folder.study.id} {item.repair.key}")

    def keep(place: int, answer: MergeAnswer) -> None:
        record_reading(folder, reader, items[place], answer.decision, answer.why)

    changes = [shown(item) for item in items]

    def first() -> BlindReadingScreen:
        return BlindReadingScreen(changes, answers, keep, reader=reader)

    return OneScreenApp(Locations.of_user(), "screens/study/reading.tcss", first).run_to_exit_code()


def _reader_name(name: str) -> str:
    try:
        return checked_code(name)
    except StudyError as error:
        raise StudyError(
            f"{name[:60]!r} can't be the pseudonym of a reader.", hint=f"{error.hint} --reader sets another."
        ) from error


def _passing(folder: StudyFolder) -> list[PassingAttempt]:
    return list(passing_attempts(journals_of(folder, load_study(folder).solvers)))


COMPARE = CliCommand(
    RepairComparison,
    compare,
    {
        "study": STUDY,
        "repairs": OptionTable({"again": option("also compare attempts that were compared before")}),
        "json": JSON,
        "isolation": ISOLATION,
        "unblind": UNBLIND,
    },
    about=(
        "Compares every repair that passed with the original: on the calls that the tests make, and"
        " on inputs varied from them. Results are written to the study's log; attempts that have a"
        " result are left out. The exit code is 1 if a repair differs."
    ),
)
CONFIRM = CliCommand(
    ConfirmStudy,
    confirm,
    {"study": STUDY, "json": JSON, "isolation": ISOLATION, "unblind": UNBLIND},
    about=(
        "Runs the suite once more for each pass, with the submitted functions in a separate process"
        " that contains no tests, writes the result to the journal, and publishes the journal again."
        " Each machine does this for its own journals. The exit code is 1 if a pass is contradicted, could"
        " not be checked, or is on another machine. While the study is open, results are hidden."
    ),
)
READ = CliCommand(
    BlindReading,
    read_changes,
    {
        "study": STUDY,
        "reader": option("the reader's pseudonym (default: the login)", metavar="NAME"),
        "unblind": UNBLIND,
    },
    about=(
        "Shows every change that passed, one after another, without its author; the originals are"
        " among them. Say for each whether you would merge it. Your answers are written to a file of"
        " yours in the study's log."
    ),
)
