"""`gistpoint study compare` and `read`: what passing repairs do beyond the tests, and whether they would be merged."""

from __future__ import annotations

import argparse
import getpass
from collections import Counter

from gistpoint.core.analysis.running import missing_extra
from gistpoint.core.errors import UserError
from gistpoint.core.running import RunContext
from gistpoint.core.study.data import MergeDecision
from gistpoint.core.study.operations import StudyError
from gistpoint.core.tasks.equivalence import Equivalence
from gistpoint.core.text import plural
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import load_study
from gistpoint.sessions.studies.repairs import (
    PassingAttempt,
    ReadingItem,
    compare_attempt,
    equivalences,
    journals_of,
    passing_attempts,
    reading_queue,
    record_reading,
)
from gistpoint.tui.commands.arguments import add_isolation, isolation_of
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_table, print_text, require_terminal
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.object_graph import build_equivalence_tester
from gistpoint.tui.study_opening import FOLDER_HELP, open_study


def compare_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study compare`."""
    parser.description = (
        "Compares every repair that passed with the original: on the calls that the tests make of it, and on inputs "
        "varied from them. Results go into the study's log; attempts that have one are left out. Exit code 1 if a "
        "repair differs."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--again", action="store_true", help="also attempts that were compared before")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)
    return compare


def compare(options: argparse.Namespace) -> int:
    """Compare what was not compared yet, and print all results."""
    folder = open_study(options.dir)
    if folder.study.simulated:
        raise StudyError(f"{folder.study.id} is simulated: its repairs are made up, and nothing can be compared.")
    passing = _passing(folder)
    known = {found.attempt for found in equivalences(folder.ledger, passing)}
    wanted = [one for one in passing if options.again or one.id not in known]
    with long_work(
        quiet=getattr(options, "json", False), kept="What was compared is kept: the same command goes on from there."
    ) as work:
        tester = build_equivalence_tester(isolation_of(options)) if wanted else None
        for number, one in enumerate(wanted, start=1):
            assert tester is not None
            work.progress.count(number - 1, len(wanted), one.id)
            try:
                compare_attempt(folder, one, tester, run=RunContext(cancel=work.cancel))
            except ModuleNotFoundError as error:
                raise missing_extra(error) from error
            except UserError as error:
                if work.cancel.cancelled:
                    raise
                work.progress.line(f"{one.id}: {error}")
    found = equivalences(folder.ledger, passing)
    counts = Counter(result.verdict for result in found)
    if options.json:
        rows = [{name: getattr(row, name) for name in type(row).__slots__} for row in found]
        print_json("gistpoint.study-compare/1", {"study": folder.study.id, "attempts": rows})
    else:
        rows_shown = [(row.attempt, row.task[:12], row.verdict, str(row.inputs), row.example) for row in found]
        print_table(["attempt", "task", "verdict", "calls", "smallest difference"], rows_shown)
        words = ", ".join(f"{counts[kind]} {kind.replace('_', ' ')}" for kind in Equivalence if counts[kind])
        print_text(f"{plural(len(passing), 'attempt')} passed with a repair. {words or 'None was compared'}.")
    return NEGATIVE if counts[Equivalence.DIFFERS] else DONE


def read_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study read`."""
    parser.description = (
        "Shows every change that passed, one after the other, without telling whose it is; the originals are among "
        "them. Say of each whether you would merge it. What you say goes into a file of yours in the study's log."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--reader", default="", metavar="NAME", help="who reads: a pseudonym (default: the login)")
    return read


def read(options: argparse.Namespace) -> int:
    """Open the changes for reading."""
    from gistpoint.core.locations import Locations
    from gistpoint.tui.screens.study.reading import Said, ShownChange
    from gistpoint.tui.study_reading_app import BlindReadingApp

    folder = open_study(options.dir)
    require_terminal("reading", hint="`gistpoint study report DIR` has what readers said.")
    reader = options.reader or getpass.getuser()
    items = reading_queue(folder, _passing(folder), reader)
    if not items:
        raise StudyError("Nothing has passed yet, so there is nothing to read.")
    readings = folder.ledger.readings()
    said = {}
    for place, item in enumerate(items):
        last = readings.get(item.repair.key, {}).get(reader)
        if last is not None and last.decision in set(MergeDecision):
            said[place] = Said(MergeDecision(last.decision), last.why)

    def shown(item: ReadingItem) -> ShownChange:
        failing = tuple(failure.id for failure in item.task.brief.failing)
        return ShownChange(item.task.source.name, failing, item.repair.change(SourceTree.open(item.task.tree_path)))

    def keep(place: int, said: Said) -> None:
        record_reading(folder, reader, items[place], said.decision, said.why)

    return BlindReadingApp(Locations.of_user(), [shown(item) for item in items], said, keep).run_to_exit_code()


def _passing(folder: StudyFolder) -> list[PassingAttempt]:
    return list(passing_attempts(journals_of(folder, load_study(folder).solvers)))
