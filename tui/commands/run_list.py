"""`gistpoint runs`: recorded runs as a table, as groups, as JSON or as CSV."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Literal

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.requests import Request
from gistpoint.core.text import plural, shortened, visible_line
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.happened import (
    answer_words,
    cause_group,
    digest_record,
    failing_group,
    failing_words,
    happened_words,
)
from gistpoint.sessions.runs.kept import KeptRun
from gistpoint.sessions.runs.opening import ListedRun, doubt_of, list_runs, open_run
from gistpoint.tui.commands.arguments import JSON, READ_AS, WHERE, read_files_as
from gistpoint.tui.commands.command import DONE, NEGATIVE, readable
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import for_output, print_json, print_records, print_table, print_text
from gistpoint.tui.commands.run_files import (
    print_problems,
    problem_record,
    review_book,
    settled_document,
)
from gistpoint.tui.tables import Column

if TYPE_CHECKING:
    from gistpoint.core.queries import RowQuery
    from gistpoint.core.query_grammar import KeptQueries
    from gistpoint.sessions.annotations.reviews import Review


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run of the list, read to its end; `run` is its header with the reviewers' ruling on its pass."""

    listed: ListedRun
    kept: KeptRun
    run: Run
    reviews: tuple[Review, ...] = ()
    """The reviews of the run by all reviewers."""

    hides = False

    @property
    def name(self) -> str:
        """The name that opens the run."""
        return self.listed.name

    @property
    def header(self) -> Run:
        """The header of the run, under the name that queries use."""
        return self.run


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRuns(Request):
    """A request to list the runs in files, folders and archives."""

    paths: tuple[str, ...] = ()
    where: str = ""
    group: Literal["task", "solver", "outcome", "end", "cause", "failing", "happened", "answer"] | None = None
    """What to group the runs by; None for no groups."""
    json: bool = False
    times: bool = False
    """Whether the JSON has the times of each run, for which each is read again."""
    csv: bool = False
    profile: bool = False
    sort: Literal["outcome", "steps", "cost"] = "outcome"
    read_as: str = ""
    save_query: str = ""
    """The name under which `where` is kept; empty to keep nothing."""
    forget_query: str = ""
    """The name of a kept query that is removed; empty to remove none."""
    queries: bool = False
    """Whether to print the kept queries."""


def listing(request: ListRuns) -> int:
    """Print the runs of files, folders and archives, reading each run to its end for a complete row.

    Return 2 if a named path can't be read, and 1 if nothing could be read or a run is doubtful. Raises
    `UserError` if no path is given, and for options that exclude each other.
    """
    if _change_queries(request) and not request.paths:
        return DONE
    if not request.paths:
        raise UserError("No runs were named.", hint="Name files or folders: gistpoint runs PATH.")
    read_files_as(request.read_as)
    _check_options(request)
    if request.profile:
        return _print_profiles(request)
    problems: list[ListedRun] = []
    found = list(found_runs(request.paths, problems, request.where))
    read = {item.name for item in found}
    not_read = len({item.name for item in problems} - read)
    _print_runs(request, found, problems, not_read)
    for item in found:
        for warning in item.kept.warnings[:1]:
            print(f"gistpoint: {readable(f'{item.name}: {warning}')}", file=sys.stderr)
    nothing_read = bool(problems) and not found
    code = print_problems(problems, request.paths, NEGATIVE if nothing_read else DONE)
    if not_read > (1 if nothing_read else 0):  # a single unread file has already been reported by name
        print(f"gistpoint: {plural(not_read, 'file')} not read.", file=sys.stderr)
    return code


def _check_options(request: ListRuns) -> None:
    """Raise `UserError` if options exclude each other."""
    if request.times and (request.profile or not request.json):
        raise UserError("--times adds times to the JSON only.", hint="Give --json too, without --profile.")
    if request.profile and (request.group or request.csv):
        raise UserError("Profiles are grouped by task.", hint="Leave out --group and --csv, or --profile.")


def _change_queries(request: ListRuns) -> bool:
    """Keep, remove or print queries, and return whether that was requested.

    Raises `UserError` if a query can't be understood, kept or removed, if the file of the kept queries can't
    be read, and if kept queries are requested as JSON or CSV.
    """
    if not (request.save_query or request.forget_query or request.queries):
        return False
    if request.queries and (request.json or request.csv):
        raise UserError("--queries prints a table, which is neither JSON nor CSV.", hint="Give it alone.")
    from gistpoint.core.kept_queries import forget_query, keep_query, kept_queries

    config = Locations.of_user().config
    if request.save_query:
        if not request.where:
            raise UserError("There is no query to keep.", hint="Give it with --where.")
        parsed_query(request.where)
        keep_query(config, request.save_query, request.where, parsed_query)
        print(f"gistpoint: Kept as @{request.save_query}.", file=sys.stderr)
    if request.forget_query:
        forget_query(config, request.forget_query)
    if request.queries:
        kept = kept_queries(config)
        print_table(["name", "query"], [[f"@{name}", query] for name, query in kept.texts.items()])
        for name, fault in kept.faults.items():
            shown = readable(f"@{name} can't be used: {fault}")
            print(f"gistpoint: {shown}", file=sys.stderr)
        if kept.unreadable:
            raise UserError(kept.unreadable, hint="Correct it, or move it away.")
    return True


def parsed_query(where: str, kept: KeptQueries | None = None) -> RowQuery[FoundRun]:
    """Return the query over runs that `--where` gives; `kept` are by default the user's kept queries.

    Raises `UserError` if it can't be understood.
    """
    from gistpoint.core.kept_queries import kept_queries
    from gistpoint.core.queries import QueryField
    from gistpoint.sessions.annotations.reviews import WHOLE_VERDICTS
    from gistpoint.sessions.runs.run_queries import run_query

    def texts(words: Callable[[Review], Iterable[str]]) -> Callable[[FoundRun, str], Iterable[str]]:
        return lambda found, key: (text for review in found.reviews for text in words(review))

    def is_given(name: str) -> Callable[[FoundRun], bool]:
        return lambda found: any(
            review.verdict is not None and review.verdict.is_named(name) for review in found.reviews
        )

    given = QueryField(
        "verdict",
        texts=texts(_verdict_words),
        own_words={name: is_given(name) for name in WHOLE_VERDICTS},
        has_words=False,
    )
    labels = QueryField("labels", texts=texts(_label_words), has_words=False)
    known = kept_queries(Locations.of_user().config) if kept is None else kept
    return run_query(where, known, (given, labels))


def _verdict_words(review: Review) -> list[str]:
    return [] if review.verdict is None else [review.verdict.in_words]


def _label_words(review: Review) -> list[str]:
    return [given.label for given in review.labels]


def _print_runs(request: ListRuns, found: list[FoundRun], problems: list[ListedRun], not_read: int) -> None:
    groups = _groups(found, GROUPS[request.group]) if request.group else None
    if request.json:
        _print_json(groups, found, problems, not_read, with_times=request.times)
    elif request.csv:
        _print_csv(groups, found)
    elif groups is not None:
        headings = [request.group or "", "runs", "solved", "unsolved", "median steps"]
        print_table(headings, [_group_row(name, members) for name, members in groups.items()])
    elif found and sys.stdout.isatty():
        _print_for_people(found)
    elif found:
        print_records(COLUMNS, found)
    else:
        print_nothing_found(request.paths, request.where, problems)


def _print_for_people(found: Sequence[FoundRun]) -> None:
    """Print a row for each run, with as much of its name as distinguishes it from the others."""
    shared = commonprefix([item.name for item in found])  # noqa: RUF071 (ids may differ within a name)
    folder = shared[: shared.rfind("/") + 1] if len(found) > 1 else ""
    if folder:
        print_text(f"in {folder}")
    name: Column[FoundRun] = Column("run", lambda item: shortened(item.name[len(folder) :], _NAME))
    print_records([name, *COLUMNS[1:]], found, whole=1)


_NAME = 32
"""The maximum length of a run's name on a terminal; a longer one is cut in the middle."""


def print_nothing_found(paths: Sequence[str], where: str, problems: Sequence[ListedRun]) -> None:
    """Print why no run was found, unless the problems say so."""
    if where:
        print("No run matches the query.")
    elif not problems:
        print(f"There is no recorded run in {visible_line(', '.join(paths))}.")


def _print_json(
    groups: dict[str, list[FoundRun]] | None,
    found: list[FoundRun],
    problems: list[ListedRun],
    not_read: int,
    *,
    with_times: bool,
) -> None:
    rows = (_row(item) | _times_of(item) if with_times else _row(item) for item in found)
    values: dict[str, Any] = {"runs": list(rows)}
    if groups is not None:
        values["groups"] = [_group_record(name, members) for name, members in groups.items()]
    values["problems"] = [problem_record(item) for item in problems]
    values["files_not_read"] = not_read
    print_json("gistpoint.runs/1", values)


def _times_of(found: FoundRun) -> dict[str, Any]:
    """Return a run's `times` as JSON data; they are None if its file is gone or can't be read any more."""
    from gistpoint.sessions.runs.times import times_of
    from gistpoint.tui.commands.times import parts_record

    try:
        return {"times": parts_record(times_of(open_run(found.name, known=found.listed.format)))}
    except RunFileError:
        return {"times": None}


def _print_csv(groups: dict[str, list[FoundRun]] | None, found: list[FoundRun]) -> None:
    """Print a row for each run; if runs are grouped, with the name of its group, group after group."""
    from gistpoint.sessions.annotations.rows import csv_lines

    columns = CSV_COLUMNS if groups is None else ("group", *CSV_COLUMNS)
    members = [("", item) for item in found]
    if groups is not None:
        members = [(name, item) for name, group in groups.items() for item in group]
    rows = ({"group": name} | _csv_row(item) for name, item in members)
    sys.stdout.writelines(for_output(csv_lines(rows, columns)))


def _print_profiles(request: ListRuns) -> int:
    from gistpoint.tui.commands.profiles import print_profiles, profiled

    problems: list[ListedRun] = []
    runs = [
        profiled(listed.name, document, run)
        for listed, document, run in read_runs(request.paths, problems, request.where)
    ]
    unread = [problem_record(item) for item in problems]
    print_profiles(runs, unread, order=request.sort, as_json=request.json)
    return print_problems(problems, request.paths, NEGATIVE if problems and not runs else DONE)


# Reading


def found_runs(paths: Iterable[str], problems: list[ListedRun], where: str = "") -> Iterator[FoundRun]:
    """Yield the runs of files and folders that match a query, read to their ends.

    Runs that can't be read are added to `problems`. So are doubtful runs, which are also yielded. Raises
    `UserError` for a query that can't be understood.
    """
    from gistpoint.sessions.annotations.settling import first_key, key_of_kept, ruling_on
    from gistpoint.sessions.runs.run_index import RunIndex, read_run
    from gistpoint.sessions.runs.run_queries import ContentFinder

    query, book = parsed_query(where), review_book()
    with closing(RunIndex(Locations.of_user().cache)) as index:
        finder = ContentFinder(index)
        for listed in list_runs(paths, with_unread=True, known=index):
            if listed.header is None:
                problems.append(listed)
                continue
            try:
                kept = read_run(listed, index, first_key)
                key = key_of_kept(kept, book, partial(open_run, listed.name))
                reviews = tuple(book.review(key, reviewer) for reviewer in book.reviewers)
                found = FoundRun(listed, kept, kept.settled(ruling_on(book, key)), reviews)
                if not finder.decide(query, found):
                    continue
            except RunFileError as error:
                problems.append(ListedRun(listed.name, listed.size, None, str(error)))
                continue
            if kept.doubt:
                problems.append(ListedRun(listed.name, listed.size, None, kept.doubt, is_verdict=True))
            yield found


def read_runs(
    paths: Iterable[str], problems: list[ListedRun], where: str = ""
) -> Iterator[tuple[ListedRun, RunDocument, Run]]:
    """Yield the runs of files and folders that match a query, as open documents that were read to their ends.

    Runs that can't be read are added to `problems`. So are doubtful runs, which are also yielded. Raises
    `UserError` for a query that can't be understood.
    """
    if where:
        for found in found_runs(paths, problems, where):
            yield found.listed, settled_document(open_run(found.name)), found.run
        return
    for listed in list_runs(paths, with_unread=True):
        if listed.header is None:
            problems.append(listed)
            continue
        try:
            document = settled_document(open_run(listed.name, known=listed.format))
        except RunFileError as error:
            problems.append(ListedRun(listed.name, listed.size, None, str(error)))
            continue
        doubt = doubt_of(document)
        if doubt:
            problems.append(ListedRun(listed.name, listed.size, None, doubt, is_verdict=True))
        yield listed, document, _completed(listed.header, document.header)


def _completed(early: Run, run: Run) -> Run:
    """Return the complete header of a run; if it names no task, with the task of the header read first."""
    derived = run.derived | (early.derived & {"task"})
    return run if run.task or not early.task else replace(run, task=early.task, derived=derived)


# Columns


def _read_off(heading: str, field: str, text: Callable[[Run], str]) -> Column[FoundRun]:
    """Return a column with a field of the header. `~` marks values derived from the steps."""

    def shown(found: FoundRun) -> str:
        run = found.run
        value = text(run)
        return f"~{value}" if value and field in run.derived else value

    return Column(heading, shown)


def _tokens(run: Run) -> str:
    tokens = [n for n in (run.tokens.prompt, run.tokens.completion) if n is not None]
    return str(sum(tokens)) if tokens else ""


def _solver(run: Run) -> str:
    return run.model or ("person" if run.actor.value == "person" else run.agent)


COLUMNS: tuple[Column[FoundRun], ...] = (
    Column("run", lambda found: found.name),
    _read_off("format", "format", lambda run: f"{run.format} {run.format_version}".strip()),
    _read_off("task", "task", lambda run: run.task),
    _read_off("solver", "model", _solver),
    _read_off("outcome", "verdict", lambda run: run.verdict),
    _read_off("end reason", "exit_status", lambda run: run.exit_status),
    _read_off("steps", "step_count", lambda run: "" if run.step_count is None else str(run.step_count)),
    _read_off("tokens", "tokens", _tokens),
    _read_off("cost", "cost", lambda run: "" if run.cost is None else f"${run.cost:.4f}"),
    Column("cause", lambda found: found.kept.digest.cause),
    Column("happened", lambda found: happened_words(found.kept.digest)),
    Column("failing tests", lambda found: failing_words(found.kept.digest)),
    Column("answer", lambda found: answer_words(found.kept.digest)),
)
"""The columns of `gistpoint runs`."""
GROUPS: dict[str, Callable[[FoundRun], str]] = {
    "task": lambda found: found.run.task or "not known",
    "solver": lambda found: _solver(found.run) or "not known",
    "outcome": lambda found: found.run.verdict or "not known",
    "end": lambda found: found.run.exit_status or "not known",
    "cause": lambda found: cause_group(found.kept.digest),
    "failing": lambda found: failing_group(found.kept.digest),
    "happened": lambda found: happened_words(found.kept.digest),
    "answer": lambda found: answer_words(found.kept.digest),
}
"""What runs can be grouped by, with the name of a run's group."""


def _groups(found: Iterable[FoundRun], name: Callable[[FoundRun], str]) -> dict[str, list[FoundRun]]:
    """Return the runs by group, in order of decreasing size, and groups of the same size by name."""
    groups: dict[str, list[FoundRun]] = {}
    for item in found:
        groups.setdefault(name(item), []).append(item)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def _group_record(name: str, members: list[FoundRun]) -> dict[str, Any]:
    verdicts = [item.run.verdict for item in members]
    counts = {word: verdicts.count(word) for word in ("solved", "unsolved")}
    return {"name": name, "count": len(members), **counts, "runs": [item.name for item in members]}


def _group_row(name: str, members: list[FoundRun]) -> list[str]:
    from statistics import median

    record = _group_record(name, members)
    steps = median(item.run.step_count or 0 for item in members)
    return [name, *(str(record[key]) for key in ("count", "solved", "unsolved")), f"{steps:.0f}"]


def _row(found: FoundRun) -> dict[str, Any]:
    run, tokens = found.run, found.run.tokens
    return {
        "run": found.name,
        "bytes": found.listed.size,
        "format": run.format,
        "format_version": run.format_version,
        "id": run.id,
        "task": run.task,
        "model": run.model,
        "agent": run.agent,
        "actor": run.actor.value,
        "verdict": run.verdict,
        "suspicious": list(run.suspicious),
        "confirmation": run.confirmation,
        "score": run.score,
        "exit_status": run.exit_status,
        "steps": run.step_count,
        "submissions": run.submissions,
        "tokens": {"prompt": tokens.prompt, "completion": tokens.completion, "cached": tokens.cached},
        "cost_usd": run.cost,
        "duration_s": run.duration_s,
        **digest_record(found.kept.digest),
        "meta": dict(found.kept.meta or {}),
        "derived": sorted(run.derived),
        "warnings": list(run.warnings),
    }


CSV_COLUMNS = (
    *("run", "format", "task", "model", "agent", "verdict", "exit_status", "steps", "submissions"),
    *(
        "prompt_tokens",
        "completion_tokens",
        "cost_usd",
        "duration_s",
        "calls",
        "errors",
        "edits",
        "test_runs",
    ),
    *("cause", "error", "error_step", "failing_tests", "failing_test_count", "answer", "happened"),
    *("same_call_and_result", "derived"),
)
"""The columns of the CSV; lists, such as the names of derived values, are joined with spaces."""


def _csv_row(found: FoundRun) -> dict[str, Any]:
    tokens = found.run.tokens
    return {
        **_row(found),
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
    }


LIST = CliCommand(
    ListRuns,
    listing,
    OptionTable(
        {
            "paths": argument("PATH", "a file, a folder or an archive"),
            "where": WHERE,
            "group": option("count the runs by what they have in common"),
            "json": JSON,
            "times": option("with --json, also the seconds of the model, of tools and of the user"),
            "csv": option("a row for each run as CSV"),
            "profile": option("what each run did when, and where runs of a task diverge"),
            "sort": option("with --profile, the order of a task's runs", only_with=("profile",)),
            "read_as": READ_AS,
            "save_query": option(
                "keep the query of --where under this name, to write it as @NAME", metavar="NAME"
            ),
            "forget_query": option("remove a kept query", metavar="NAME"),
            "queries": option("print the kept queries"),
        },
        one_of=(("json", "csv"),),
    ),
)
