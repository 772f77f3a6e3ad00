"""Brings a study's folder up to date with this machine's journals, another copy, and pending erasures."""

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
class SyncEffects:
    """The effects of a synchronisation."""

    published: Mapping[Publication, int] = field(default_factory=dict)
    """The number of journals on this machine, by outcome."""
    taken: Mapping[Publication, int] = field(default_factory=dict)
    """The number of journals in the other copy of the folder, by outcome."""
    lines: int = 0
    """The number of lines that were merged from side files of the other copy."""
    erased: Erasure = field(default_factory=Erasure)
    """The data of erased people that were deleted."""
    problems: tuple[str, ...] = ()


def synchronise(study: StudyFolder, other: Path | None = None) -> SyncEffects:
    """Publish this machine's journals of a study, and delete data of erased people; return the effects.

    The lines and journals of `other`, another copy of the folder, are merged into the study. Data missing
    from a team's store are sent to it. A repetition changes nothing. Raises `StudyError` if `other` is not a
    study, an attempt that has to be deleted is open, or files can't be read or written, and `UserError` if
    the store can't be reached or refuses.
    """
    try:
        return _synchronised(study, other)
    except OSError as error:
        name = error.filename or "A file of the study"
        raise StudyError(
            f"{name} can't be used: {error.strerror or error}.",
            hint="What has been done is kept. Repair the file or move it away, and synchronise again.",
        ) from error


def _synchronised(study: StudyFolder, other: Path | None) -> SyncEffects:
    lines, taken, problems = 0, Counter[Publication](), list[str]()
    study.reload()
    if other is not None:
        if not (other / STUDY_FILE).is_file():
            raise StudyError(
                f"{other.name} is not the folder of a study.", hint=f"It should contain {STUDY_FILE}."
            )
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
        # The program may have been stopped between withdrawal and erasure.
        if who.withdrawn is not None and who.withdrawn.data == ERASE:
            erased.append(study.erase(code))
    done = Counter(study.publish(attempt.folder) for attempt in study.local_attempts())
    study.store.send()
    return SyncEffects(dict(done), dict(taken), lines, Erasure.of_all(erased), tuple(problems))


def _lines_taken(other: Path, own: Path, store: SideFileStore[Any, Any], problems: list[str]) -> int:
    """Merge the lines of the file `other` into its copy `own`, and return how many are new.

    If one copy is the beginning of the other, the lines keep their order.
    """
    there = read_log(other, store.codec.log).lines
    own.parent.mkdir(parents=True, exist_ok=True)
    with AppendLog(own, replace(store.codec.log, header=b""), wait_for(own)) as log:
        here = log.read().lines
        if here[: len(there)] == there:
            return 0
        if there[: len(here)] == here:
            new = there[len(here) :]
            log.append(b"".join(line + b"\n" for line in new))
            return len(new)
    merged = store.merge([other])
    problems += merged.problems
    return merged.added
