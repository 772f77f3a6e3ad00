"""Failed submissions for a library's functions, which their authors believed to be right (decision 141)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.attempts.parts import Submission
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.code.index import DefinitionKind, FileIndex, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import SourceError
from gistpoint.core.generation.earlier import EarlierBody
from gistpoint.core.logs import replace_file
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.text import plural
from gistpoint.core.tools.declaration import Replacement
from gistpoint.core.trees import SourceTree

ATTEMPT = "attempt"
"""The family of bodies from failed submissions."""
SUBMISSIONS_FILE = "submissions-{}.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class FailedSubmission:
    """A function in a submission that the suite refused. Nothing in it identifies the author."""

    function: str
    """The function, as `path::qualname`."""
    text: str
    """The definition at the left margin."""
    file: str
    """The text of the original file with the submitted definition."""
    planted: str
    """The corrupted text that the author was given; empty if the function was not corrupted."""
    attempt: str
    number: int
    """The number of the submission in the attempt."""
    by: str
    """The driver of the attempt: `person`, `model`, or `mixed`."""
    study: str = ""
    """The id of the attempt's study; empty if there is none."""

    @property
    def origin(self) -> dict[str, Any]:
        """The origin of the body, as the answer of a task states it."""
        of_study = {"study": self.study} if self.study else {}
        return {"id": self.attempt, "submission": self.number, "by": self.by, **of_study}


@dataclass(frozen=True, slots=True)
class FailedSubmissions:
    """The failed submissions for a library's functions, by function; implements `EarlierBodies`."""

    by_function: Mapping[str, tuple[FailedSubmission, ...]] = field(default_factory=dict)

    @classmethod
    def collected(cls, found: Iterable[FailedSubmission]) -> FailedSubmissions:
        """Return submissions by function: the newest attempts and their last submissions first."""
        newest = sorted(found, key=lambda item: (item.attempt, item.number), reverse=True)
        grouped = groupby(sorted(newest, key=lambda item: item.function), key=lambda item: item.function)
        return cls({function: tuple(items) for function, items in grouped})

    def of(self, path: str, qualname: str, current: str) -> Iterator[EarlierBody]:
        """Yield the submitted versions of a function that differ from `current` and from each other."""
        seen = {current}
        for item in self.by_function.get(f"{path}::{qualname}", ()):
            if item.text not in seen:
                seen.add(item.text)
                yield EarlierBody(item.text, item.file, ATTEMPT, item.origin, item.planted)

    @property
    def versions(self) -> dict[str, str]:
        """A hash of the submissions for each function, which changes if another submission is made."""
        return {
            function: sha256_of_json([[item.attempt, item.number, item.text] for item in items])
            for function, items in self.by_function.items()
        }


def failed_submissions(
    state: AttemptState, task: Task, answer: Answer, library: SourceTree, study: str = ""
) -> list[FailedSubmission]:
    """Return the functions of `library` in the submissions of an attempt that failed the suite.

    A function is left out if the task was made from another version of it: the submitted body would then
    differ from the current one in more than the author's mistake. The result is empty for an attempt that is
    still running or was not driven by a person or a model, and if the answer does not fit the task's tree.
    """
    believed = [item for item in state.submissions if _is_believed(state, item)]
    if not believed or not state.ended or not set(state.drivers) <= {PERSON, MODEL}:
        return []
    given = SourceTree.open(task.tree_path)
    try:
        original = repaired_tree(given, answer.targets)
    except (CodeError, FileNotFoundError):
        return []
    planted = {target.name: target.corrupted for target in answer.targets}
    by = "mixed" if state.mixed else state.header.actor
    return [
        FailedSubmission(
            name, text, file, planted.get(name, ""), state.attempt_id, submission.number, by, study
        )
        for submission in believed
        for name, text, file in _functions_in(submission.replacement, original, library)
        if text != planted.get(name)
    ]


def _is_believed(state: AttemptState, submission: Submission) -> bool:
    """Return whether a submission failed the suite, and its author believed it to be right.

    Four kinds of submissions are left out: passes that were contradicted later, which did not fail;
    submissions that were given back, which have no verdict; those that the program handed in at a limit,
    which were not finished; and suspicious ones, which may be attempts to deceive.
    """
    call = next((call for call in state.calls if call.call_id == submission.call_id), None)
    failed = submission.status == RunStatus.FINISHED and not submission.solved and bool(submission.failing)
    handed_in = call is not None and not call.automatic and submission.counts
    is_honest = not submission.suspicious
    return failed and handed_in and is_honest


def _functions_in(
    replacement: Replacement, original: SourceTree, library: SourceTree
) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the text and the file of each function that a replacement changes.

    If a class is replaced, these are its methods whose text differs. A function is left out if its original
    text differs from that in `library`.
    """
    path = replacement.path
    try:
        before = index_source(path, original.read(path))
        after = index_source(path, replacement.on(original).read(path))
        current = index_source(path, library.read(path))
        written = after.get(replacement.qualname)
    except (CodeError, FileNotFoundError):
        return
    inside = [item for item in after.definitions if item.parent == written.qualname]
    is_class = written.kind is DefinitionKind.CLASS
    for definition in inside if is_class else [written]:
        text = definition.dedented
        known = _text_in(before, definition.qualname)
        is_changed = known not in ("", text) and definition.kind is not DefinitionKind.CLASS
        if is_changed and _text_in(current, definition.qualname) == known:
            yield f"{path}::{definition.qualname}", text, after.text


def _text_in(index: FileIndex, qualname: str) -> str:
    """Return the text of a definition; empty if the file does not contain it."""
    try:
        return index.get(qualname).dedented
    except CodeError:
        return ""


def origins_in(provenance: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the study and the attempt of each failed submission from which a task was made."""
    parts = provenance.get("parts")
    origins = (
        [part.get(ATTEMPT) for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    )
    return {
        (str(origin.get("study", "")), str(origin.get("id", "")))
        for origin in origins
        if isinstance(origin, Mapping)
    }


# The submissions in the folder of a library, where the workers of a campaign find them


class _Stored(msgspec.Struct):
    version: int
    submissions: tuple[FailedSubmission, ...]


def _file_of(folder: Path, studies: tuple[str, ...]) -> Path:
    return folder / SUBMISSIONS_FILE.format(sha256_of_json(list(studies))[:12])


def write_submissions(folder: Path, studies: tuple[str, ...], found: FailedSubmissions) -> None:
    """Store the submissions of some studies, and those outside of studies, in the folder of a library."""
    items = tuple(item for items in found.by_function.values() for item in items)
    stored = msgspec.to_builtins(_Stored(_VERSION, items))
    replace_file(_file_of(folder, studies), json.dumps(stored, separators=(",", ":")).encode("ascii"))


def read_submissions(folder: Path, studies: tuple[str, ...] = ()) -> FailedSubmissions:
    """Return the submissions that `write_submissions` stored; empty if none can be read."""
    try:
        stored = msgspec.json.decode(_file_of(folder, studies).read_bytes(), type=decodable(_Stored))
    except (OSError, msgspec.MsgspecError, RecursionError):
        return FailedSubmissions()
    return FailedSubmissions.collected(stored.submissions if stored.version == _VERSION else ())


def require_submissions(
    found: FailedSubmissions, source: str, skipped: Mapping[str, int]
) -> FailedSubmissions:
    """Return the submissions. Raises `SourceError`, with what was skipped and why, if there are none."""
    if found.by_function:
        return found
    raise SourceError(
        f"No attempt has a failed submission at a function of {source} as it is in this version."
        f"{_left_out(skipped)}",
        hint=(
            "`gistpoint attempt list` shows the attempts here; --study FOLDER adds those of a study whose"
            " participants agreed to it."
        ),
    )


def submissions_in_words(found: FailedSubmissions, skipped: Mapping[str, int]) -> str:
    """Return a summary of the failed submissions, and of the attempts left out for each reason."""
    number = sum(map(len, found.by_function.values()))
    functions = plural(len(found.by_function), "function")
    return f"{plural(number, 'failed submission')} at {functions}.{_left_out(skipped)}"


def _left_out(skipped: Mapping[str, int]) -> str:
    """Return a sentence on the attempts that were left out, after a space; empty if there are none."""
    reasons = [f"{plural(count, 'attempt')} {reason}" for reason, count in skipped.items() if count]
    return f" Left out: {', '.join(reasons)}." if reasons else ""
