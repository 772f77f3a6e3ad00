"""The part of a run that is stored after reading it to its end, for lists and queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.building import Tally
from gistpoint.sessions.records.model import Actor, CutText, Json, Run, Step, Tokens, settled_verdict
from gistpoint.sessions.runs.cut_files import says_cut
from gistpoint.sessions.runs.digest import RunDigest, digest_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import ListedRun, doubt_of, open_run

_LONGEST_VALUE = 300
_MOST_VALUES = 100
_DEEPEST = 4
_MOST_WARNINGS = 5
_NOT_KEPT = frozenset({"prompt", "also", "not_shown", "links", "extra", "submission"})
_TUPLES = frozenset({"suspicious", "warnings"})


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run that was read to its end, without its steps."""

    run: Run
    """The header, without the texts that only the page of a run shows."""
    digest: RunDigest
    key: str = ""
    """The key of the run's beginning, under which reviews refer to it; empty if it was not requested."""
    warnings: tuple[str, ...] = ()
    doubt: str = ""
    """Why the run is probably not in its format; empty if there is no reason."""
    meta: Mapping[str, str] | None = None
    """The short values that the harness recorded about the run, by their keys joined with dots."""

    def settled(self, accepted: bool | None) -> Run:
        """Return the header with the verdict after a ruling on its pass; `accepted` is None without one."""
        return replace(self.run, verdict=settled_verdict(self.run, accepted))


def read_to_its_end(
    listed: ListedRun,
    key_of: Callable[[RunDocument], str] = lambda document: "",
    *,
    cancel: CancelToken = NEVER,
    rest: Callable[[object], None] = lambda progress: None,
    see: Callable[[Step], object] = lambda step: None,
    see_header: Callable[[Run], object] = lambda run: None,
) -> KeptRun:
    """Read a listed run to its end, and return the part to store.

    `rest` is called from time to time, `see` with each step, and `see_header` with the whole header. Raises
    `RunFileError` if the run can't be read, and `CancelledError` if cancelled.
    """
    if listed.header is None:
        raise RunFileError(listed.problem)
    document = open_run(listed.name, known=listed.format)
    document.build(rest, cancel)

    def each(step: Step) -> None:
        rest(step)
        see(step)

    kept = kept_of(document, listed.header, key_of, cancel=cancel, see=each)
    see_header(document.header)
    return kept


def kept_of(
    document: RunDocument,
    early: Run,
    key_of: Callable[[RunDocument], str] = lambda document: "",
    *,
    cancel: CancelToken = NEVER,
    see: Callable[[Step], object] = lambda step: None,
) -> KeptRun:
    """Read an open run to its end, and return the part to store.

    `early` is the header that the list read, which may name the task if the run does not. `see` is called
    with each step. Raises `CancelledError` if cancelled.
    """
    spent = Tally()

    def each(step: Step) -> None:
        spent.add_usage(step.tokens, step.cost)
        see(step)

    digest = digest_of(document, cancel=cancel, see=each)
    run = spent.completed(document.header)
    derived = run.derived | (early.derived & {"task"})
    if early.task and not run.task:
        run = replace(run, task=early.task, derived=derived)
    return KeptRun(
        header_of(header_values(run)),  # so that the result is the same with and without an index
        digest,
        key_of(document),
        tuple(dict.fromkeys((*document.warnings[:_MOST_WARNINGS], *filter(says_cut, document.warnings)))),
        doubt_of(document),
        meta_of(run, document.members),
    )


def meta_of(run: Run, recorded: Mapping[str, Json]) -> dict[str, str]:
    """Return the short values that the harness recorded about a run, by their keys joined with dots.

    They are the extra values of its header, then the `recorded` members of its own object. Long strings and
    lists of objects are left out, and at most `_MOST_VALUES` are returned.
    """
    found: dict[str, str] = {}
    for members in (run.extra, recorded):
        for key, value in _values(members, "", 0):
            if len(found) >= _MOST_VALUES:
                return found
            found.setdefault(key, value)
    return found


def _values(members: Mapping[str, Json], prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    for name, value in members.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            if depth < _DEEPEST:
                yield from _values(value, f"{key}.", depth + 1)
        elif isinstance(value, list):
            words = [_word(item) for item in value[:_MOST_VALUES]]
            if words and all(words):
                yield key, " ".join(words)[:_LONGEST_VALUE]
        elif word := _word(value):
            yield key, word


def _word(value: Json) -> str:
    """Return a value as a short string; empty if it is missing, an object, a list or a long string."""
    if value is None or isinstance(value, dict | list | CutText):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else ""


# The form in the index


def header_values(run: Run) -> dict[str, Any]:
    """Return the stored part of a header as data."""
    values = {field.name: getattr(run, field.name) for field in fields(run) if field.name not in _NOT_KEPT}
    values["tokens"] = [run.tokens.prompt, run.tokens.completion, run.tokens.cached, run.tokens.reasoning]
    values["derived"] = sorted(run.derived)
    values["warnings"] = run.warnings[:_MOST_WARNINGS]
    return values


def header_of(values: Mapping[str, Any]) -> Run:
    """Return the header from which `header_values` made the data.

    Raises `KeyError`, `TypeError` or `ValueError` for other data.
    """
    known = dict(values)
    known["actor"] = Actor(known["actor"])
    known["tokens"] = Tokens(*known["tokens"])
    known["derived"] = frozenset(known["derived"])
    for name in _TUPLES:
        known[name] = tuple(known[name])
    return Run(**known)
