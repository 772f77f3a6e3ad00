"""Creates a study's folder from a template, or opens it with its declaration, tasks, log and attempts."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.demo.tasks import demo_tasks
from gistpoint.core.kinds.folder import read_answer, read_task, read_task_with_answer
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.core.study.declaration import Study, StudyTask
from gistpoint.core.study.ledger import Ledger, person_sha256
from gistpoint.core.study.operations import Fact, StudyError, StudyOperation, StudyOperationKind
from gistpoint.core.study.ports import Erasure, Publication, PublishedAttempt, StudyStore
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.reading import protocol_sha256, read_study
from gistpoint.core.study.reuse import has_to_go
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.rules import Face, rules_text
from gistpoint.core.unfinished import whole_folder
from gistpoint.sessions.attempt_copies import AttemptCopies
from gistpoint.sessions.journal import JOURNAL, first_event
from gistpoint.sessions.machine import machine_of
from gistpoint.sessions.studies.drafts import drafts_folder
from gistpoint.sessions.studies.erasing import ATTEMPTS, delete_local, local_leftovers, refuse_open
from gistpoint.sessions.studies.store import FolderStore
from gistpoint.sessions.studies.tasks import StudyTasks, read_tasks
from gistpoint.sessions.tasks import TaskStore
from gistpoint.sessions.unsent_texts import UnsentTextFiles

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.glances import GlanceBook

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LocalAttempt:
    """An attempt of a study that is stored on this machine."""

    folder: Path
    header: AttemptStarted

    @property
    def id(self) -> str:
        """The id of the attempt."""
        return self.folder.name


class StudyFolder:
    """The folder of a study, with its declaration, tasks, log and attempts."""

    def __init__(
        self,
        root: Path,
        locations: Locations,
        clock: TimeSource,
        shared: Callable[[FolderStore], StudyStore] | None = None,
    ) -> None:
        """Open the study in `root`. Raises `StudyError`, with the file and key, if it can't be used.

        `shared` returns the store of which the folder is a copy, if there is one.
        """
        self.root = root.absolute()
        self.named = str(root)
        """The folder as named by the user, for commands recommended in messages."""
        self._locations = locations
        self.study: Study = read_study(self.root)
        self.files = FolderStore(self.root, machine_of(locations.data), clock)
        self.store: StudyStore = self.files if shared is None else shared(self.files)
        self._ledger: Ledger | None = None

    @property
    def clock(self) -> TimeSource:
        """The clock of the study's operations."""
        return self.files.clock

    @property
    def local(self) -> Path:
        """The folder of this machine's attempts."""
        return self._locations.attempts

    @property
    def glances(self) -> GlanceBook:
        """The blind readings that are now on this machine's disk."""
        from gistpoint.sessions.annotations.glance_reader import GlanceStore

        return GlanceStore(self._locations.glances, self.clock).book

    @property
    def machine(self) -> str:
        """The name of this machine, see `machine_of`."""
        return self.files.machine

    @cached_property
    def read(self) -> StudyTasks:
        """The study's tasks, and the problems of those that can't be read."""
        locations = self._locations
        store = TaskStore(locations.tasks, demo=locations.demo)
        return read_tasks(self.root, self.study.tasks, store, self._unpacked)

    def comes_with_program(self, task: Path) -> bool:
        """Return whether the folder of a task belongs to the demo, which every machine has."""
        return task.is_relative_to(self._locations.demo)

    def is_everywhere(self, identity: str) -> bool:
        """Return whether every machine with this folder has a task: a task in the folder or of the demo."""
        folder = self.read.folders[identity].absolute()
        from_archive = folder.is_relative_to(self._unpacked) and (self.root / self.study.tasks).is_dir()
        return folder.is_relative_to(self.root) or self.comes_with_program(folder) or from_archive

    @property
    def _unpacked(self) -> Path:
        """The folder into which archives of tasks in a study's folder are unpacked."""
        return self._locations.cache / "study-tasks"

    @property
    def tasks(self) -> Mapping[str, StudyTask]:
        """The facts about each task that assigning and analysing need, by full task id."""
        return self.read.by_id

    def task(self, identity: str) -> Task:
        """Return a task by its full id, after verifying it.

        Raises `StudyError` if the study does not have it on this machine, and `TaskError` if it can't be
        used.
        """
        return read_task(self._folder_of(identity))

    def task_with_answer(self, identity: str) -> tuple[Task, Answer]:
        """Return a task by its full id, after verifying it, and its answer. Raises as `task` does."""
        return read_task_with_answer(self._folder_of(identity))

    def _folder_of(self, identity: str) -> Path:
        folder = self.read.folders.get(identity)
        if folder is None:
            raise StudyError(
                f"The study has no task {identity[:12]} on this machine.",
                hint="Copy the study's folder again, with its tasks, or ask the organiser.",
            )
        return folder

    @cached_property
    def protocol(self) -> str:
        """The hash of the current declaration: study.toml, texts, questions and the ids of the tasks."""
        return protocol_sha256(self.study, self.tasks)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the log; the same object until something is recorded or `reload` is called."""
        if self._ledger is None:
            self._ledger = Ledger(self.store.operations())
        return self._ledger

    def reload(self) -> None:
        """Read the log again, because other writers may have added to it."""
        self.store.reload()
        self._ledger = None

    def exclusively(self, act: Callable[[], T]) -> T:
        """Read what others have written, then call `act` while nobody else plans or begins a task.

        `act` may be called again, after its records were withdrawn. Returns the result of `act`. Raises
        `UserError` if the store that others share can't be reached.
        """

        def act_on_current_log() -> T:
            self._ledger = None
            return act()

        try:
            return self.store.exclusively(act_on_current_log)
        finally:
            self._ledger = None

    def record(
        self, name: str, subject: str, kind: StudyOperationKind, data: Fact | None = None
    ) -> StudyOperation:
        """Append an operation with the current time and return it; it is on disk on return.

        `name` is the code of the participant whom the operation concerns, even if an organiser records it;
        otherwise it is `ORGANISER`. Erasing a person deletes all files of their code.
        """
        operation = self.store.record(name, subject, kind, data)
        self._ledger = None
        return operation

    def basis(self) -> Mapping[str, int]:
        """Return how many lines of each log file are in `ledger`, by the hash of the file's writer."""
        return self.store.basis()

    def publish(self, folder: Path) -> Publication:
        """Copy the current journal in an attempt's folder into the study, and return the outcome.

        Raises `StudyError` if the journal names no participant, or if the copy can't be written.
        """
        return self.store.publish(folder)

    def attempts(self) -> Iterator[PublishedAttempt]:
        """Yield the published attempts, oldest first; one in conflict occurs once for each journal."""
        return self.store.attempts()

    def attempt(self, identity: str) -> PublishedAttempt | None:
        """Return the published attempt with this id; None if there is none."""
        return self.store.attempt(identity)

    def local_attempts(self) -> Iterator[LocalAttempt]:
        """Yield the attempts of this study that are stored on this machine, oldest first, without copies."""
        copies = AttemptCopies(self.local)
        for folder in sorted(self.local.glob(f"*/{JOURNAL}")):
            event = first_event(folder)
            header = event.data if event is not None else None
            if not isinstance(header, AttemptStarted) or header.study != self.study.id:
                continue
            if header.participant and not copies.is_copy(folder.parent.name, header.attempt_id):
                yield LocalAttempt(folder.parent, header)

    def erase(self, code: str) -> Erasure:
        """Delete all data of a person, in the study and on this machine, and return what was deleted.

        Tasks made from the person's submissions are deleted too. Data that reappear are deleted by `sweep`.
        Raises `StudyError` if an attempt of the person is open, or tasks are being made from submissions.
        """
        here = local_leftovers(self.local, self.study.id, {person_sha256(code)})
        refuse_open(here)
        found = self.store.erase(code)
        self._ledger = None
        return self._erased(found, here, [person_sha256(code)])

    def sweep(self) -> Erasure:
        """Delete reappeared data of erased people, in the study and on this machine; return what was deleted.

        Tasks made from submissions of people who were erased, or who no longer consent to it, are deleted
        too. Raises `StudyError` if an attempt of such a person is open, or tasks are being made from
        submissions.
        """
        here = local_leftovers(self.local, self.study.id, self.ledger.erased.keys())
        refuse_open(here)
        found = self.store.sweep()
        self._ledger = None
        return self._erased(found, here, self.ledger.erased)

    def _erased(self, found: Erasure, here: Sequence[Path], people: Iterable[str]) -> Erasure:
        """Delete the data of erased people on this machine; return them with what was `found` in the study.

        The log records an erasure before anything is deleted, so `sweep` repeats what fails here.
        """
        # Not needed for the first page of a participant (decision 216).
        from gistpoint.sessions.studies.made_from import delete_made_from
        from gistpoint.sessions.studies.recruiting import forget

        hashes = set(people)
        self._forget_drafts(hashes)
        forget(self.root, hashes)
        attempts = tuple(sorted({*found.attempts, *delete_local(here)}))
        UnsentTextFiles(self._locations.unsent_texts).delete_if(
            lambda unsent: person_sha256(unsent.by) in hashes or self._is_about(unsent.about, attempts)
        )
        ledger, protocol = self.ledger, self.ledger.protocol
        tasks = delete_made_from(
            self._locations,
            self.study.id,
            lambda attempt: has_to_go(self.study, protocol, ledger, attempt),
        )
        return Erasure(found.logs, attempts, tasks)

    def _is_about(self, about: str, attempts: Collection[str]) -> bool:
        """Return whether text is about a deleted attempt, including one that another machine deleted."""
        place = Path(about)
        is_published = place.is_relative_to(self.root / ATTEMPTS)
        return any(identity in about for identity in attempts) or (is_published and not place.exists())

    def _forget_drafts(self, erased: Iterable[str]) -> None:
        for who in erased:
            shutil.rmtree(drafts_folder(self._locations.data, self.study.id, who), ignore_errors=True)

    def require_people(self) -> None:
        """Raise `StudyError` if the study is simulated, because people can't take part in such a study."""
        if self.study.simulated:
            raise StudyError(
                f"{self.study.id} is a simulated study: people can't take part.",
                hint="`gistpoint study new mine --tasks demo` makes one for people.",
            )

    def require_simulated(self) -> None:
        """Raise `StudyError` if the study is for people, because simulated data must not be mixed into it."""
        if not self.study.simulated:
            raise StudyError(
                f"{self.study.id} is a study of people: nothing simulated can be added.",
                hint="`gistpoint study simulate` with another folder makes a simulated one.",
            )


# The folder of a new study: a declaration from a template, texts to edit, and the tasks


TEXTS = ("welcome", "consent", "rules", "debrief")
DEMO_LIST = "tasks.txt"
_PER_PERSON = 4
_PER_SOURCE = 2
_LARGEST_SEED = 10**8


class StudyTemplate(StrEnum):
    """The template of a new study."""

    BASELINE = "baseline"
    ASSISTANCE = "assistance"
    GIST = "gist"
    BUDGETS = "budgets"
    BREAKPOINT = "breakpoint"
    """The paper's evaluation by people: 4 removals, 4 discoveries and 1 hard task, alone and assisted."""


def create_study(
    folder: Path, template: StudyTemplate, tasks: Sequence[Task] = (), *, demo: bool = False
) -> None:
    """Write a study into a new or empty folder, with copies of the tasks; the demo's tasks are only listed.

    The folder appears only when it is complete. Raises `StudyError` if it is not empty.
    """
    if folder.exists() and not _is_empty(folder):
        raise StudyError(f"{folder.name} already exists and is not an empty folder.", hint="Give a new name.")
    with whole_folder(folder) as part:
        _write_study(part, study_id(folder.absolute().name), template, tasks, demo=demo)


def _write_study(
    folder: Path, identity: str, template: StudyTemplate, tasks: Sequence[Task], *, demo: bool
) -> None:
    (folder / "texts").mkdir()
    for name in TEXTS:
        text = f"{rules_text(Face.PERSON)}\n" if name == "rules" else _template(f"texts/{name}.md")
        (folder / "texts" / f"{name}.md").write_text(text, encoding="utf-8")
    _write_tasks(folder, None if demo else tasks)
    number = len(demo_tasks()) if demo else len(tasks)
    sources = 1 if demo else len({task.source.name for task in tasks})
    values = {
        "ID": identity,
        "TITLE": identity,
        "SEED": str(1 + secrets.randbelow(_LARGEST_SEED)),
        "TASKS": DEMO_LIST if demo else "tasks",
        "PER_PERSON": str(min(_PER_PERSON, number) or _PER_PERSON),
        "PER_SOURCE": str(0 if number and sources * _PER_SOURCE < min(_PER_PERSON, number) else _PER_SOURCE),
    }
    values |= _quotas_of_paper(template, [] if demo else tasks)
    text = f"{_template('head.toml')}\n{_template(f'{template.value}.toml')}"
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    (folder / STUDY_FILE).write_text(text, encoding="utf-8")


_OF_PAPER = {"easy-remove": 4, "easy-discovery": 4, "hard": 1}
"""The number of tasks of each kind per person, as in section 4.4 of the Breakpoint paper."""
_HARD = ("cyclomatic", "degree")


def _quotas_of_paper(template: StudyTemplate, tasks: Sequence[Task]) -> dict[str, str]:
    """Return the values of the template `breakpoint`: tags by kind of task, and quotas that they can fill.

    Other templates have none.
    """
    if template is not StudyTemplate.BREAKPOINT:
        return {}
    kinds: dict[str, list[str]] = {name: [] for name in _OF_PAPER}
    for task in tasks:
        name = "hard" if _is_hard(task) else f"easy-{task.mode}"
        kinds.get(name, []).append(task.id)
    quota = {name: min(_OF_PAPER[name], len(ids)) for name, ids in kinds.items() if ids}
    tags = "".join(
        f'\n[[tag]]\nid = "{name}"\ntasks = {json.dumps(ids)}\n' for name, ids in kinds.items() if ids
    )
    listed = ", ".join(f"{name} = {number}" for name, number in quota.items())
    number = sum(quota.values()) or min(sum(_OF_PAPER.values()), len(tasks)) or sum(_OF_PAPER.values())
    return {"NINE": str(number), "QUOTA": f"{{{listed}}}", "TAGS": tags}


def _is_hard(task: Task) -> bool:
    """Return whether both metrics of a target are at or above the 90th percentile, as its answer records."""
    from gistpoint.core.metrics.table import standings_from_json  # loads the call graph

    answer = read_answer(task)
    for target in kind_of(task).targets(task, answer):
        ranks = {rank.metric: rank.percentile or 0.0 for rank in standings_from_json(answer.metrics, target)}
        if all(ranks.get(metric, 0.0) >= 90.0 for metric in _HARD):
            return True
    return False


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _write_tasks(folder: Path, tasks: Sequence[Task] | None) -> None:
    """Copy tasks into a study's folder; None for the demo's tasks, which are only listed there."""
    if tasks is None:
        named = "".join(f"{task.name}\n" for task in demo_tasks())
        text = f"# The tasks of the demo, which come with gistpoint\n{named}"
        (folder / DEMO_LIST).write_text(text, encoding="utf-8")
        return
    (folder / "tasks").mkdir()
    for task in tasks:
        shutil.copytree(task.folder, folder / "tasks" / task.id)


def study_id(name: str) -> str:
    """Return an id for a study from its folder's name: 3 to 40 lower-case letters, digits and hyphens."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return words if len(words) >= 3 else f"study-{words}".strip("-")


def _template(name: str) -> str:
    return files("gistpoint.core.study").joinpath("templates", name).read_text(encoding="utf-8")
