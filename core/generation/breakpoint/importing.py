"""Makes a task from a record: finds the source, corrupts the function, and runs the suite as proof.

The question in a record is trusted, but none of its test results (decision 35).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from gistpoint.core.code.compare import same_program
from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_source
from gistpoint.core.code.names import LOCALS, normalised
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.corruption.corruptions import new_comments, replaced_target, same_signature
from gistpoint.core.errors import SourceError, TaskError, UserError
from gistpoint.core.generation.breakpoint.records import BreakpointRecord, normal_url
from gistpoint.core.generation.intake import DEFAULT_MIN_FAILING, Intake, NoTaskError, prove
from gistpoint.core.generation.making import ControlsOf, write_proven
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.generation.settings import SOURCE_KEYS, SourceSpec, read_source
from gistpoint.core.kinds.folder import add_provenance, read_answer
from gistpoint.core.locations import parsed_toml
from gistpoint.core.ports import Runner
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.model import Rules, Target, Task
from gistpoint.core.trees import SourceTree

_KEYS = SOURCE_KEYS - {"stars"} | {"repository", "commit"}
_HINT = (
    "Each source is a table [[source]] with the keys 'repository' (its address or name, as in the records)"
    " and 'source' (name==version, a folder, or PATH@COMMIT), and may have commit, pytest_args,"
    " extra_requirements, exclude_newer and build_steps."
)


@dataclass(frozen=True, slots=True)
class MappedSource:
    """The source that the user gives for a repository."""

    repository: str
    commit: str
    spec: SourceSpec


@dataclass(frozen=True, slots=True)
class RecordSources:
    """The sources that the user gives for the repositories of records."""

    mapped: tuple[MappedSource, ...] = ()

    def spec_of(self, record: BreakpointRecord) -> SourceSpec:
        """Return the source of a record's repository; if several match, the one with the longest commit.

        If none matches, return the record's own address and commit. Raises `SourceError` if that address does
        not begin with `https://`.
        """
        fitting = [
            item
            for item in self.mapped
            if item.repository in (normal_url(record.url), record.repository)
            and record.commit.startswith(item.commit)
        ]
        if fitting:
            return max(fitting, key=lambda item: len(item.commit)).spec
        if not record.url.startswith("https://"):
            raise SourceError(
                f"{record.url[:200]} is not an address from which gistpoint fetches automatically.",
                hint="Give its location with --sources.",
            )
        return SourceSpec(f"{record.url}@{record.commit}")


def read_sources(text: str, file: str) -> RecordSources:
    """Return the sources in a TOML document.

    Raises `SourceError`, which names `file`, if the text is not TOML or a key is wrong.
    """
    try:
        fields = Fields(parsed_toml(text), file)
        fields.only(("source",))
        return RecordSources(tuple(_source(table) for table in fields.tables("source")))
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{file} is not valid TOML: {error}.", hint=_HINT) from error
    except TaskError as error:
        raise SourceError(error.message, hint=_HINT) from error


def _source(fields: Fields) -> MappedSource:
    spec, repository = read_source(fields, _KEYS), fields.get("repository", str)
    if not repository.strip():
        raise TaskError(f"{fields.file}: the key {fields.name('repository')!r} is empty.")
    known = normal_url(repository) if "/" in repository else repository
    return MappedSource(known, fields.get("commit", str, "").lower(), spec)


class Refusal(StrEnum):
    """A reason why a sound record can't become a task, before any test runs."""

    NO_SUCH_FILE = "no_such_file"
    UNREADABLE_FILE = "unreadable_file"
    NO_SUCH_FUNCTION = "no_such_function"
    AMBIGUOUS = "ambiguous_name"
    CLASS = "names_a_class"
    TEST_FILE = "belongs_to_the_tests"
    NOT_REMOVABLE = "body_not_removable"
    NO_DEFINITION = "corruption_is_no_single_definition"
    UNCHANGED = "corruption_changes_nothing"
    SIGNATURE = "corruption_changes_the_signature"
    COMMENT = "corruption_brings_a_comment"


class RefusedRecordError(UserError):
    """A record can't become a task; the message gives the reason."""

    def __init__(self, reason: Refusal, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RecordTarget:
    """The target of a record, and peculiarities of the record that are only visible in the source."""

    target: Target
    marks: tuple[str, ...] = ()


def target_of(
    record: BreakpointRecord, tree: SourceTree, test_files: frozenset[str] = frozenset()
) -> RecordTarget:
    """Return the target that a record names.

    Raises `RefusedRecordError` if it names no function, more than one, or one that can't be a target, or if
    its corruption can't be used.
    """
    if not tree.is_file(record.path):
        raise RefusedRecordError(Refusal.NO_SUCH_FILE, f"There is no file {record.path} in the source.")
    if is_protected(record.path, test_files):
        raise RefusedRecordError(Refusal.TEST_FILE, f"{record.path} belongs to the tests.")
    try:
        index = index_source(record.path, tree.read(record.path))
    except CodeError as error:
        raise RefusedRecordError(Refusal.UNREADABLE_FILE, str(error)) from error
    definition = _only_definition(index, record.function)
    if definition.kind is DefinitionKind.CLASS:
        raise RefusedRecordError(
            Refusal.CLASS, f"{definition.ref} is a class; only functions and methods can be corrupted."
        )
    if record.corruption:
        return _corrupted(record, tree, definition)
    return RecordTarget(_removed(tree, definition, test_files))


def _only_definition(index: FileIndex, name: str) -> Definition:
    """Return the only definition with that name, or else the only one whose qualified name ends with it.

    Raises `RefusedRecordError` if there is none, or more than one, because the data set's own code would use
    the first (decision 35).
    """
    asked = normalised(name)
    found = [item for item in index.definitions if item.ref.plain == asked]
    found = found or [
        item for item in index.definitions if item.ref.plain.replace(f"{LOCALS}.", "").endswith(f".{asked}")
    ]
    if not found:
        raise RefusedRecordError(Refusal.NO_SUCH_FUNCTION, f"{index.path} defines no {name}.")
    if len(found) > 1:
        listed = ", ".join(f"{item.label} (line {item.def_line})" for item in found[:10])
        raise RefusedRecordError(
            Refusal.AMBIGUOUS, f"{name} names {len(found)} definitions in {index.path}: {listed}."
        )
    return found[0]


def _removed(tree: SourceTree, definition: Definition, test_files: frozenset[str]) -> Target:
    try:
        return removal_target(tree, str(definition.ref), test_files)
    except (NoTaskError, CodeError) as error:
        raise RefusedRecordError(Refusal.NOT_REMOVABLE, error.message) from error


def _corrupted(record: BreakpointRecord, tree: SourceTree, definition: Definition) -> RecordTarget:
    """Return the target with the file's own decorators, and with a mark if the record's code has lost them.

    Raises `RefusedRecordError` if the record's code can't be used.
    """
    try:
        target = replaced_target(tree, definition.ref, record.corruption)
        # No brief mentions a lost decorator, so the task must not ask for it (decision 35).
        lost = bool(definition.decorators) and not read_snippet(record.corruption).definition.decorators
        unchanged = same_program(target.original, target.corrupted)
        comments = new_comments(target)
    except CodeError as error:
        raise RefusedRecordError(Refusal.NO_DEFINITION, f"corruption.code can't be used: {error}") from error
    if unchanged:
        without = ", apart from its lost decorators" if lost else ""
        raise RefusedRecordError(Refusal.UNCHANGED, f"corruption.code does what the original does{without}.")
    if not same_signature(target):
        raise RefusedRecordError(Refusal.SIGNATURE, "corruption.code changes the signature of the function.")
    if comments:
        raise RefusedRecordError(
            Refusal.COMMENT,
            f"corruption.code adds a comment that is not in the original: {comments[0][:100]!r}.",
        )
    return RecordTarget(target, ("decorators_lost_in_data",) if lost else ())


DATA_SET = "breakpoint"


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """The task that was made from a record."""

    task: Task
    marked: bool = False
    """Whether the task existed already and was only marked with the record; its rules are unchanged."""


def import_record(
    record: BreakpointRecord,
    intake: Intake,
    runner: Runner,
    into: Path,
    *,
    min_failing: int = DEFAULT_MIN_FAILING,
    provenance: Mapping[str, Any] | None = None,
    controls_of: ControlsOf = lambda task, answer: None,
    run: RunContext = UNATTENDED,
) -> ImportedRecord:
    """Prove a record, write its task below `into`, and return the task.

    Refused submissions cost an attempt, as in the paper. The record is stored verbatim in the answer, next to
    the failing tests of this run. Since the id does not depend on rules, an existing task with the same
    corruption keeps its own rules and is marked with the record, unless it is already marked with one. Raises
    `RefusedRecordError` if the record can't become a task, `NoTaskError` if the tests do not confirm it,
    `InfrastructureError` if the suite could not be run, and `CancelledError` when stopped.
    """
    found = target_of(record, intake.repository.tree, frozenset(intake.test_files))
    proof = prove(intake, (found.target,), runner, min_failing=min_failing, run=run)
    source = intake.repository.source
    marks = [*record.marks, *found.marks]
    if source.kind != "git" or not source.revision.startswith(record.commit):
        marks.append("not_from_the_commit")
    origin = {
        "data_set": DATA_SET,
        "id": record.id,
        "url": record.url,
        "commit": record.commit,
        "line": record.line,
        "marks": marks,
        "record": record.text,
    }
    task = write_proven(
        intake,
        proof,
        record.mode,
        runner.backend.name,
        into,
        rules=Rules(refused_costs_attempt=True, min_failing=min_failing),
        provenance={"import": origin, **(provenance or {})},
        controls_of=controls_of,
    )
    if "import" in read_answer(task).provenance:
        return ImportedRecord(task)
    add_provenance(task, {"import": {**origin, "marks": [*marks, "made_here_before"]}})
    return ImportedRecord(task, marked=True)
