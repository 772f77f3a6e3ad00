"""Bringing a study's folder up to date: journals of this machine, another copy of the folder, and what was erased."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gistpoint.core.locations import read_regular
from gistpoint.core.logs import AppendLog, read_log, wait_for
from gistpoint.core.study.operations import ERASE, StudyError
from gistpoint.core.study.ports import Erasure, Publication
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.side_files import SideFileStore
from gistpoint.sessions.studies.erasing import ATTEMPTS, LOG, REVIEWS
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.publishing import PublishedNote, published, put, read_note
from gistpoint.sessions.studies.store import refuse_links


@dataclass(frozen=True, slots=True)
class Synced:
    """What a synchronisation did."""

    published: Mapping[Publication, int] = field(default_factory=dict)
    """Journals of this machine, by what became of them."""
    taken: Mapping[Publication, int] = field(default_factory=dict)
    """Journals of the other copy of the folder."""
    lines: int = 0
    """Lines of side files that came from the other copy."""
    erased: Erasure = field(default_factory=Erasure)
    """What turned up again of people who were erased, and is deleted."""
    problems: tuple[str, ...] = ()


def synchronise(study: StudyFolder, other: Path | None = None) -> Synced:
    """Publish this machine's journals of a study and delete what came back of who was erased.

    `other` is another copy of the folder, whose lines and journals are taken in. Doing it again changes nothing.
    Raises `StudyError`.
    """
    lines, taken, problems = 0, Counter[Publication](), list[str]()
    study.reload()
    if other is not None:
        if not (other / STUDY_FILE).is_file():
            raise StudyError(f"{other.name} is no folder of a study.", hint=f"It would hold {STUDY_FILE}.")
        refuse_links(other)
        for name, store in (
            (LOG, study.files.log),
            (REVIEWS, ReviewStore(study.root / REVIEWS, study.clock)),
        ):
            for path in sorted((other / name).glob("*.jsonl")):
                lines += _lines_taken(path, study.root / name / path.name, store, problems)
        for attempt in published(other / ATTEMPTS):
            journal = read_regular(attempt.journal, links=False)
            note = read_note(attempt.folder) or PublishedNote()
            taken[put(journal, note, attempt.id, study.files.published)] += 1
        study.reload()
    erased = [study.sweep()]
    for code, who in study.ledger.people.items():
        if who.withdrawn is not None and who.withdrawn.data == ERASE:  # the program was stopped between the two
            erased.append(study.erase(code))
    done = Counter(study.publish(attempt.folder) for attempt in study.local_attempts())
    study.store.send()
    both = Erasure(
        tuple(log for erasure in erased for log in erasure.logs),
        tuple(attempt for erasure in erased for attempt in erasure.attempts),
    )
    return Synced(dict(done), dict(taken), lines, both, tuple(problems))


def _lines_taken(theirs: Path, ours: Path, store: SideFileStore[Any, Any], problems: list[str]) -> int:
    """Take in the lines of another copy of a file, at their places if one copy is the beginning of the other."""
    there = read_log(theirs, store.codec.log).lines
    ours.parent.mkdir(parents=True, exist_ok=True)
    with AppendLog(ours, replace(store.codec.log, header=b""), wait_for(ours)) as log:
        here = log.read().lines
        if here[: len(there)] == there:
            return 0
        if there[: len(here)] == here:
            new = there[len(here) :]
            log.append(b"".join(line + b"\n" for line in new))
            return len(new)
    merged = store.merge([theirs])
    problems += merged.problems
    return merged.added
