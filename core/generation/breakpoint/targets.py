"""From a record to the function that it means, corrupted as it says, in the source that is here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.code.compare import same_program
from gistpoint.core.code.definitions import Definition, Kind
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import FileIndex, index_source
from gistpoint.core.code.names import LOCALS, normalised
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.corruption.replacements import new_comments, replaced_target, same_signature
from gistpoint.core.errors import UserError
from gistpoint.core.generation.breakpoint.records import Record
from gistpoint.core.generation.intake import NoTaskError
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.tasks.model import Mode, Target
from gistpoint.core.trees import SourceTree


class Refusal(StrEnum):
    """Why a sound record makes no task here, before any test ran."""

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
    """A record makes no task here, and why."""

    def __init__(self, reason: Refusal, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RecordTarget:
    """The target of a record, and what was odd about it."""

    target: Target
    marks: tuple[str, ...] = ()


def target_of(record: Record, tree: SourceTree, test_files: frozenset[str] = frozenset()) -> RecordTarget:
    """Return the target that a record means. Raises `RefusedRecordError` where it means none, or more than one."""
    if not tree.is_file(record.path):
        raise RefusedRecordError(Refusal.NO_SUCH_FILE, f"There is no file {record.path} in the source.")
    if is_protected(record.path, test_files):
        raise RefusedRecordError(Refusal.TEST_FILE, f"{record.path} belongs to the tests.")
    try:
        index = index_source(record.path, tree.read(record.path))
    except CodeError as error:
        raise RefusedRecordError(Refusal.UNREADABLE_FILE, str(error)) from error
    definition = _meant(index, record.function)
    if definition.kind is Kind.CLASS:
        raise RefusedRecordError(Refusal.CLASS, f"{definition.ref} is a class; functions and methods are corrupted.")
    if record.mode is Mode.REMOVE:
        return RecordTarget(_removed(tree, definition, test_files))
    return _corrupted(record, tree, definition)


def _meant(index: FileIndex, name: str) -> Definition:
    """Return the one definition of that name; the data's own rule, the first that is found, is not followed."""
    asked = normalised(name)
    found = [item for item in index.definitions if item.ref.plain == asked]
    found = found or [
        item for item in index.definitions if item.ref.plain.replace(f"{LOCALS}.", "").endswith(f".{asked}")
    ]
    if not found:
        raise RefusedRecordError(Refusal.NO_SUCH_FUNCTION, f"{index.path} defines no {name}.")
    if len(found) > 1:
        listed = ", ".join(f"{item.label} (line {item.def_line})" for item in found[:10])
        raise RefusedRecordError(Refusal.AMBIGUOUS, f"{name} names {len(found)} definitions in {index.path}: {listed}.")
    return found[0]


def _removed(tree: SourceTree, definition: Definition, test_files: frozenset[str]) -> Target:
    try:
        return removal_target(tree, str(definition.ref), test_files)
    except (NoTaskError, CodeError) as error:
        raise RefusedRecordError(Refusal.NOT_REMOVABLE, error.message) from error


def _corrupted(record: Record, tree: SourceTree, definition: Definition) -> RecordTarget:
    """Return the target with the file's own decorators: those that the data lost are kept, and the loss is marked."""
    try:
        target = replaced_target(tree, definition.ref, record.corruption)
        lost = bool(definition.decorators) and not read_snippet(record.corruption).definition.decorators
        unchanged = same_program(target.original, target.corrupted)
        comments = new_comments(target)
    except CodeError as error:
        raise RefusedRecordError(Refusal.NO_DEFINITION, f"corruption.code can't be used: {error}") from error
    if unchanged:
        without = ", its lost decorators aside" if lost else ""
        raise RefusedRecordError(Refusal.UNCHANGED, f"corruption.code does what the original does{without}.")
    if not same_signature(target):
        raise RefusedRecordError(Refusal.SIGNATURE, "corruption.code changes the signature of the function.")
    if comments:
        raise RefusedRecordError(
            Refusal.COMMENT, f"corruption.code brings a comment that the original lacks: {comments[0][:100]!r}."
        )
    return RecordTarget(target, ("decorators_lost_in_data",) if lost else ())
