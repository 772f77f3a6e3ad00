"""Finds the runs of declared models below a study's folder, matches them to tasks, and returns rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.identity import PERSON, REPLAY, SIMULATED
from gistpoint.core.csv_text import csv_table, text_of_cell
from gistpoint.core.errors import UserError
from gistpoint.core.locations import LARGEST_SETTINGS, read_regular
from gistpoint.core.study.declaration import DeclaredSolver, StudyTask
from gistpoint.core.study.evidence import AttemptEvidence
from gistpoint.core.study.exclusions import TRAINING_TASK
from gistpoint.core.study.measuring import measured
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import training_tasks
from gistpoint.core.text import plural
from gistpoint.sessions.annotations.keys import attempt_key, run_key
from gistpoint.sessions.annotations.reviews import ReviewBook
from gistpoint.sessions.annotations.settling import ruling_on, settle
from gistpoint.sessions.journal import JOURNAL, JournalContent, read_journal
from gistpoint.sessions.records.model import OWN_FORMAT
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import ListedRun, list_runs, open_run, split_name
from gistpoint.sessions.runs.own import journal_of
from gistpoint.sessions.studies.expected_hashes import ExpectedHashes
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.foreign import foreign_row

FILE_OF_MAP = "file:"
"""The prefix of a declared map that is a file."""
_BY_ID = "task_id"
_ID = re.compile(r"[0-9a-f]{12,64}")


@dataclass(frozen=True)
class MatchedRun:
    """A run of a declared model, with its row, or the reason why it has no row."""

    name: str
    """The path of its file in the study's folder, with `#ID` if the file contains several runs."""
    task: str = ""
    row: AttemptRow | None = None
    why_not: str = ""
    sha256: str = ""
    """The hash of its journal's last line, or of its file."""
    opened_as: str = ""
    """The name with which `open_run` opens it."""


@dataclass(frozen=True)
class SolverRuns:
    """The runs of a declared model that were found."""

    solver: DeclaredSolver
    runs: tuple[MatchedRun, ...] = ()
    notes: tuple[str, ...] = ()
    """A sentence for each pattern without a match, and for settings that differ from people's."""

    @property
    def rows(self) -> tuple[AttemptRow, ...]:
        """The rows of the runs that were matched."""
        return tuple(run.row for run in self.runs if run.row is not None)

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each run that was not matched, and the notes."""
        unmatched = (f"{self.solver.name}: {run.name}: {run.why_not}" for run in self.runs if run.row is None)
        return (*unmatched, *(f"{self.solver.name}: {note}" for note in self.notes))


@dataclass
class _TakenRuns:
    """The runs that were already read, so that no run counts twice."""

    solvers: dict[str, str] = field(default_factory=dict)
    """The solver's name for each run, by the run's name."""
    names: dict[str, str] = field(default_factory=dict)
    """The name of each run, by the key of its attempt."""


def runs_by_attempt(found: Iterable[SolverRuns]) -> Mapping[str, str]:
    """Return the names with which `open_run` opens the matched runs, by the `attempt` of their rows."""
    return {run.row.attempt: run.opened_as for solver in found for run in solver.runs if run.row is not None}


def runs_of_solvers(
    folder: StudyFolder, tasks: Mapping[str, StudyTask], book: ReviewBook, expected: ExpectedHashes
) -> Iterator[SolverRuns]:
    """Yield the runs of each declared model.

    Raises `StudyError` if simulated runs and others are mixed, or if a pattern or a map can't be used.
    """
    taken = _TakenRuns()
    for solver in folder.study.solver:
        yield _runs_of(folder, tasks, solver, book, expected, taken)


def with_differences(found: Iterable[SolverRuns], people: Iterable[AttemptRow]) -> Iterator[SolverRuns]:
    """Yield the solvers with notes if their settings differ from people's in the same condition.

    The settings are budgets, tools and briefs.
    """
    keys: dict[tuple[str, str], set[str]] = {}
    for row in people:
        if row.counted:
            keys.setdefault((row.condition, row.mode), set()).add(row.budget_key)
    for solver in found:
        notes = []
        for (condition, mode), of_people in sorted(keys.items()):
            own = {row.budget_key for row in solver.rows if (row.condition, row.mode) == (condition, mode)}
            for other in sorted(own - of_people):
                count = sum((row.budget_key, row.mode) == (other, mode) for row in solver.rows)
                notes.append(
                    f"{plural(count, 'run')} ({mode}) had different settings from people under"
                    f" {condition!r}: {other}; people had {'; or '.join(sorted(of_people))}."
                )
        yield replace(solver, notes=(*solver.notes, *notes))


def _runs_of(
    folder: StudyFolder,
    tasks: Mapping[str, StudyTask],
    solver: DeclaredSolver,
    book: ReviewBook,
    expected: ExpectedHashes,
    taken: _TakenRuns,
) -> SolverRuns:
    given, training = _map_of(folder.root, solver), set(training_tasks(folder.study, tasks))
    runs: list[MatchedRun] = []
    notes: list[str] = []
    for pattern in solver.runs:
        paths = paths_of_runs(folder.root, pattern)
        if not paths:
            notes.append(f"{pattern!r} matches no file below the study's folder.")
        for listed in list_runs(paths):
            name = _relative(listed.name, folder.root)
            if name in taken.solvers:
                other = taken.solvers[name]
                why = f"Its run is already counted for {other!r}." if other != solver.name else ""
                runs += [MatchedRun(name, why_not=why)] if why else []
                continue
            taken.solvers[name] = solver.name
            if listed.header is None:
                runs.append(MatchedRun(name, why_not=_without_root(listed.problem, folder.root)))
                continue
            try:
                found = _matched(folder, tasks, solver, book, expected, given, listed, name)
            except StudyError:
                raise
            except UserError as error:
                found = MatchedRun(name, why_not=_without_root(str(error), folder.root))
            if found.row is not None and (same := taken.names.setdefault(found.row.attempt, name)) != name:
                found = MatchedRun(name, why_not=f"It is the same run as {same}, which is counted.")
            runs.append(_without_training(found, training))
    return SolverRuns(solver, tuple(runs), tuple(notes))


def _without_training(run: MatchedRun, training: Collection[str]) -> MatchedRun:
    """Return the run; if its task is for training, its row does not count, like those of people."""
    if run.row is None or not run.row.counted or run.task not in training:
        return run
    row = msgspec.structs.replace(run.row, counted=False, exclusion=TRAINING_TASK)
    return replace(run, row=row)


def _matched(
    folder: StudyFolder,
    tasks: Mapping[str, StudyTask],
    solver: DeclaredSolver,
    book: ReviewBook,
    expected: ExpectedHashes,
    given: Mapping[str, str] | None,
    listed: ListedRun,
    name: str,
) -> MatchedRun:
    own = _own_journal(listed)
    if own is not None:
        return _matched_attempt(folder, tasks, solver, book, expected, given, listed, name, own)
    _require_alike(folder.study.simulated, "model", name)
    document = open_run(listed.name, known=listed.format)
    task, why_not = _task_of(tasks, given, name, document.header.id, _own_task(document, listed.name))
    if task is None:
        return MatchedRun(name, why_not=why_not)
    settle(document, book)
    row = foreign_row(document, run_key(document), folder.study, solver, task, folder.task(task.id))
    return MatchedRun(name, task.id, row, sha256=_sha256(document), opened_as=listed.name)


@dataclass(frozen=True, slots=True)
class _OwnJournal:
    """A run that gistpoint itself recorded, with the header of its attempt."""

    content: JournalContent
    header: AttemptStarted


def _own_journal(listed: ListedRun) -> _OwnJournal | None:
    """Return a listed run's journal; None if another program recorded it, or it has no header."""
    if listed.format is None or listed.format.name != OWN_FORMAT:
        return None
    # The journal is read directly, because opening the run would read it again for its check.
    path = Path(listed.name)
    is_file = path.name == JOURNAL and path.is_file()
    content = read_journal(path) if is_file else journal_of(open_run(listed.name, known=listed.format))
    header = content.events[0].data if content.events else None
    return _OwnJournal(content, header) if isinstance(header, AttemptStarted) else None


def _matched_attempt(
    folder: StudyFolder,
    tasks: Mapping[str, StudyTask],
    solver: DeclaredSolver,
    book: ReviewBook,
    expected: ExpectedHashes,
    given: Mapping[str, str] | None,
    listed: ListedRun,
    name: str,
    own: _OwnJournal,
) -> MatchedRun:
    header = own.header
    _require_alike(folder.study.simulated, header.actor, name)
    if header.actor in (PERSON, REPLAY):
        return MatchedRun(name, why_not=f"It is an attempt by a {header.actor}, not a model's.")
    task, why_not = _task_of(tasks, given, name, header.attempt_id, header.task_id)
    if task is None:
        return MatchedRun(name, why_not=why_not)
    if header.task_id != task.id:
        return MatchedRun(
            name, why_not=f"It is an attempt at task {header.task_id[:12]}, not at {task.id[:12]}."
        )
    accepted = ruling_on(book, attempt_key(header.attempt_id))
    recorded = expected.recorded(own.content, solver.condition, accepted=accepted)
    row = measured(AttemptEvidence(folder.study, task, recorded, folder.ledger, solver))
    return MatchedRun(name, task.id, row, sha256=own.content.head, opened_as=listed.name)


def _require_alike(simulated_study: bool, actor: str, name: str) -> None:
    if simulated_study != (actor == SIMULATED):
        origin = "is simulated" if actor == SIMULATED else "was made by a real solver"
        raise StudyError(
            f"{name} {origin}, and the study is {'simulated' if simulated_study else 'not simulated'}.",
            hint="Take it out of [[solver]]: a study is either simulated or not.",
        )


def _sha256(document: RunDocument) -> str:
    digest = hashlib.sha256()
    for blob in document.blobs:
        at = 0
        while piece := blob.read(at, 1 << 20):
            digest.update(piece)
            at += len(piece)
    return digest.hexdigest()


# Matching


def _task_of(
    tasks: Mapping[str, StudyTask], given: Mapping[str, str] | None, name: str, identity: str, recorded: str
) -> tuple[StudyTask | None, str]:
    """Return a run's task and an empty reason, or None and the reason why there is no task.

    `given` is the declared map, `identity` the id of the run, and `recorded` the name of the task in the run.
    """
    if given is not None:
        keys = (name, Path(name).name, Path(name.partition("#")[0]).stem, identity)
        mapped = next((given[key] for key in keys if key in given), None)
        if mapped is None:
            return None, "The map contains no line for it."
        recorded = mapped
    if not recorded:
        return None, 'It does not name its task; a map can (`map = "file:map.csv"`).'
    return _task_named(tasks, recorded)


def _task_named(tasks: Mapping[str, StudyTask], name: str) -> tuple[StudyTask | None, str]:
    """Return the task with this name and an empty reason, or None and the reason why there is no task.

    A name contains the task's id or at least its first 12 digits, or is the name of a function corrupted in
    the task.
    """
    if name in tasks:
        return tasks[name], ""
    ids = {id for part in _ID.findall(name) for id in tasks if id.startswith(part)}
    if len(ids) == 1:
        return tasks[ids.pop()], ""
    wanted = name.strip()
    found = [
        task
        for task in tasks.values()
        if wanted and any(_is_named(target, wanted) for target in task.targets)
    ]
    if len(found) == 1:
        return found[0], ""
    if found:
        ids_of = ", ".join(sorted(task.id[:12] for task in found))
        return None, f"{name[:80]!r} is ambiguous: tasks {ids_of} contain a function of that name."
    return None, f"Its task {name[:80]!r} does not belong to this study."


def _is_named(target: str, name: str) -> bool:
    qualname = target.rpartition("::")[2]
    return name in (target, qualname) or qualname.endswith(f".{name}")


def _map_of(root: Path, solver: DeclaredSolver) -> Mapping[str, str] | None:
    """Return the task of each run, by name, in a solver's map; None if the runs themselves name tasks.

    Raises `StudyError` if the map is unknown, can't be read, or has a column missing.
    """
    if solver.map in ("", _BY_ID):
        return None
    if not solver.map.startswith(FILE_OF_MAP):
        raise StudyError(
            f"study.toml: the map {solver.map[:80]!r} of the solver {solver.name!r} is unknown.",
            hint=f"Use {_BY_ID!r}, or 'file:map.csv' with the columns run and task.",
        )
    path = root / solver.map.removeprefix(FILE_OF_MAP)
    try:
        rows = csv_table(read_regular(path, LARGEST_SETTINGS).decode("utf-8-sig")).rows
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise StudyError(
            f"The map {path.name} of the solver {solver.name!r} can't be read: {why}."
        ) from error
    if any(row.get("run") is None or row.get("task") is None for row in rows):
        raise StudyError(
            f"The map {path.name} of the solver {solver.name!r} does not have the columns run and task.",
            hint="Its first line is `run,task`; a run is the name of its file, or its id.",
        )
    return {text_of_cell(row["run"].strip()): text_of_cell(row["task"].strip()) for row in rows}


def paths_of_runs(root: Path, pattern: str) -> list[Path]:
    """Return the files and folders below a study's folder that a pattern of runs matches.

    Raises `StudyError` for an invalid pattern.
    """
    try:
        return sorted(root.glob(pattern))
    except (ValueError, NotImplementedError) as error:
        raise StudyError(
            f"study.toml: {pattern[:80]!r} is not a valid pattern of runs.",
            hint="It is relative to the study's folder, as in 'runs/model-x/*'.",
        ) from error


def _relative(name: str, root: Path) -> str:
    path, identity = split_name(name)
    try:
        shown = path.relative_to(root).as_posix()
    except ValueError:
        shown = path.name
    return f"{shown}#{identity}" if identity else shown


def _without_root(text: str, root: Path) -> str:
    return text.replace(f"{root}/", "")


def _own_task(document: RunDocument, path: str) -> str:
    """Return the recorded name of a run's task, or the name of its file if it has no id; otherwise empty."""
    header = document.header
    if header.task and "task" not in header.derived:
        return header.task
    return _listed_task(path) if not header.id else ""


def _listed_task(path: str) -> str:
    """Return the task that `list_runs` finds for a file; empty if there is none."""
    for listed in list_runs([path]):
        if listed.header is not None:
            return listed.header.task
    return ""
