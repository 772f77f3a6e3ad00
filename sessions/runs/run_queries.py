"""The fields with which queries select recorded runs, and the search for content only in the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any, Protocol

from gistpoint.core.folding import contains_folded, folded
from gistpoint.core.queries import (
    ContentTerm,
    QueryField,
    QueryLanguage,
    Row,
    RowQuery,
    known_numbers,
    number_of,
)
from gistpoint.core.query_grammar import KeptQueries
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.model import Run, Step, TextScope
from gistpoint.sessions.runs.blind_view import search_blind
from gistpoint.sessions.runs.digest import Happening, RunDigest, went_wrong
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.happened import answer_words, happened_words
from gistpoint.sessions.runs.kept import KeptRun
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.profile import test_run_of
from gistpoint.sessions.runs.run_index import RunIndex
from gistpoint.sessions.runs.searching import Query, SearchError, search_document


class AskedRun(Protocol):
    """A run that may match a query."""

    @property
    def name(self) -> str:
        """The name that opens the run."""
        ...

    @property
    def header(self) -> Run:
        """The header."""
        ...

    @property
    def kept(self) -> KeptRun | None:
        """The kept part of the run; None until it was read to its end."""
        ...

    @property
    def hides(self) -> bool:
        """Whether model and outcome are hidden."""
        ...


def _text(
    name: str, text: Callable[[AskedRun], str], *former: str, everywhere: bool = True
) -> QueryField[AskedRun]:
    """Return a field that is compared as text; words without a field also match it if `everywhere`."""
    return QueryField(
        name,
        texts=lambda row, key: (text(row),),
        shown=text,
        former_names=former,
        has_words=everywhere,
    )


def _number(name: str, number: Callable[[AskedRun], float | None], *former: str) -> QueryField[AskedRun]:
    def shown(row: AskedRun) -> str:
        value = number(row)
        return "" if value is None else f"{value:g}"

    return QueryField(
        name,
        texts=lambda row, key: (shown(row),),
        numbers=lambda row, key: known_numbers(number(row)),
        shown=shown,
        former_names=former,
        has_words=False,
    )


def _digest(row: AskedRun) -> RunDigest | None:
    return None if row.kept is None or row.hides else row.kept.digest


def _of_digest(words: Callable[[RunDigest], str]) -> Callable[[AskedRun], str]:
    def text(row: AskedRun) -> str:
        digest = _digest(row)
        return "" if digest is None else words(digest)

    return text


def _count(number: Callable[[RunDigest], float | None]) -> Callable[[AskedRun], float | None]:
    def counted(row: AskedRun) -> float | None:
        return None if row.kept is None else number(row.kept.digest)

    return counted


def _happened(happening: Happening) -> Callable[[AskedRun], bool]:
    def holds(row: AskedRun) -> bool:
        digest = _digest(row)
        return digest is not None and digest.has(happening)

    return holds


def _tokens(row: AskedRun) -> float | None:
    tokens = row.header.tokens
    return float((tokens.prompt or 0) + (tokens.completion or 0)) or None


def _solver(row: AskedRun) -> str:
    run = row.header
    return run.model or ("person" if run.actor.value == "person" else run.agent)


def _tools(row: AskedRun, key: str) -> Iterable[str]:
    return () if row.kept is None else row.kept.digest.tools


def _calls_of_tool(row: AskedRun, key: str) -> list[float]:
    """Return the number of calls to the tools whose names contain a string; empty if the run was not read."""
    if row.kept is None:
        return []
    tools, wanted = row.kept.digest.tools, folded(key)
    return [float(sum(count for tool, count in tools.items() if contains_folded(tool, wanted)))]


def _meta(row: AskedRun, key: str) -> list[str]:
    """Return the harness's values whose keys are or end with `key`, or all; empty if hidden or not read."""
    if row.kept is None or row.hides:
        return []
    wanted = folded(key)
    found = (row.kept.meta or {}).items()
    return [value for name, value in found if not wanted or f".{folded(name)}".endswith(f".{wanted}")]


def _meta_numbers(row: AskedRun, key: str) -> list[float]:
    return known_numbers(*map(number_of, _meta(row, key)))


def _unless_hidden(text: Callable[[AskedRun], str]) -> Callable[[AskedRun], str]:
    return lambda row: "" if row.hides else text(row)


def _is(verdict: str) -> Callable[[AskedRun], bool]:
    return lambda row: not row.hides and row.header.verdict == verdict


CONTENT: dict[str, tuple[TextScope, ...]] = {
    "error": (TextScope.RESULT, TextScope.TEXT, TextScope.ALSO),
    "text": tuple(TextScope),
    "call": (TextScope.CALL,),
    "result": (TextScope.RESULT,),
    "thought": (TextScope.THOUGHT,),
}
"""The fields whose texts are only in the run itself, with the parts of the run to search."""
FURTHER: tuple[QueryField[AskedRun], ...] = (
    *(QueryField(name, is_content=True, has_words=False) for name in CONTENT),
    _text("final", _of_digest(lambda digest: digest.final), everywhere=False),
    QueryField("tool", texts=_tools, numbers=_calls_of_tool, is_counted=True, has_words=False),
    QueryField(
        "meta",
        texts=_meta,
        numbers=_meta_numbers,
        is_dotted=True,
        has_words=False,
    ),
    _text("last error", _of_digest(lambda digest: digest.error), everywhere=False),
    _text("agent", _unless_hidden(lambda row: row.header.agent), everywhere=False),
    _number("calls", _count(lambda digest: digest.calls)),
    _number("errors", _count(lambda digest: digest.errors)),
    _number("edits", _count(lambda digest: digest.edits)),
    _number("test runs", _count(lambda digest: digest.test_runs)),
    _number("failing", _count(lambda digest: digest.failing_count)),
    _number("loops", _count(lambda digest: digest.loop)),
    _number("seconds", lambda row: row.header.duration_s),
    _number("score", lambda row: None if row.hides else row.header.score),
)
"""The fields that are not columns of any list."""
FIELDS: tuple[QueryField[AskedRun], ...] = (
    _text("task", lambda row: row.header.task or PurePath(row.name).name),
    _text("solver", _unless_hidden(_solver), "model"),
    QueryField(
        "outcome",
        texts=lambda row, key: () if row.hides else (row.header.verdict,),
        words={"solved": _is("solved"), "unsolved": _is("unsolved")},
    ),
    _text("end reason", _unless_hidden(lambda row: row.header.exit_status), "ending"),
    _number("steps", lambda row: row.header.step_count),
    _number("subm", lambda row: row.header.submissions, "submissions"),
    _number("tokens", _tokens),
    _number("cost", lambda row: None if row.hides else row.header.cost),
    _number("time", lambda row: row.header.duration_s),
    _text("format", lambda row: row.header.format),
    _text("file", lambda row: row.name),
    _text("cause", _of_digest(lambda digest: digest.cause)),
    QueryField(
        "happened",
        texts=lambda row, key: (_of_digest(happened_words)(row),),
        words={happening.value: _happened(happening) for happening in Happening},
    ),
    _text("failing tests", _of_digest(lambda digest: " ".join(digest.failing))),
    _text("answer", _of_digest(answer_words)),
    *FURTHER,
)
"""The fields with which commands select runs: those shown as columns of lists, and the additional ones."""


def run_query(
    text: str, kept: KeptQueries | None = None, more: Sequence[QueryField[Any]] = ()
) -> RowQuery[Any]:
    """Return the query over runs that a string describes; `more` are fields that only some callers know.

    Raises `QueryError` if it can't be understood.
    """
    return QueryLanguage((*FIELDS, *more), kept).query(text)


class ContentFinder:
    """Determines whether runs contain content, from the index if possible, otherwise from the runs."""

    def __init__(self, index: RunIndex, cancel: CancelToken = NEVER) -> None:
        self._index, self._cancel = index, cancel
        self.opened = 0
        """The number of runs that had to be opened."""

    def find(self, row: AskedRun, term: ContentTerm) -> bool:
        """Return whether content is in a run; False for a run that can't be read.

        Raises `SearchError` if the search takes too long, and `CancelledError` if cancelled.
        """
        self._cancel.check()
        headers = not row.hides
        known = self._index.answer(row.name, term, headers=headers)
        if known is not None:
            return known
        self.opened += 1
        try:
            found = has_content(open_run(row.name), term, headers=headers, cancel=self._cancel)
        except SearchError:
            raise
        except RunFileError:
            return False
        self._index.put_answer(row.name, term, found, headers=headers)
        return found

    def decide(self, query: RowQuery[Row], row: Row) -> bool:
        """Return whether a run matches a query; the run is opened only if nothing else decides it."""
        decided = query.decide(row, lambda row, term: None)
        if decided is None:
            decided = query.decide(row, lambda row, term: self.find(row, term))  # type: ignore[arg-type]
        return decided is True


def has_content(
    document: RunDocument, term: ContentTerm, *, headers: bool, cancel: CancelToken = NEVER
) -> bool:
    """Return whether the string of a term is in the parts of a run that the term searches, ignoring case.

    For `error`, only steps in which something failed count. Without `headers`, only the parts that a blind
    reviewer may see are searched. Raises `SearchError` if the search takes too long, and `CancelledError` if
    cancelled.
    """
    name, text = term
    scopes: Iterable[TextScope] = CONTENT[name]
    if not headers:
        scopes = [scope for scope in scopes if scope is not TextScope.HEADER]
    search = search_document if headers else search_blind
    hits = search(document, Query(text, scopes=scopes, ignore_case=True), cancel=cancel)
    if name != "error":
        return next(hits, None) is not None
    looked_at: dict[int, bool] = {}
    for hit in hits:
        if hit.step is not None and hit.step not in looked_at:
            looked_at[hit.step] = _shows_failure(document.step(hit.step))
            if looked_at[hit.step]:
                return True
    return False


def _shows_failure(step: Step) -> bool:
    """Return whether something failed in a step, tests included."""
    if went_wrong(step) or any(result.is_error or result.returncode for result in step.results):
        return True
    return bool(step.results) and test_run_of(step).went_well is False
