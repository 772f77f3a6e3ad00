"""`gistpoint findings`: have a model look for labels in recorded runs, label a part by hand, and report."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from gistpoint.core.errors import UserError
from gistpoint.core.estimates import tokens_in
from gistpoint.core.judging.answers import RunAnswer
from gistpoint.core.judging.pieces import CHARACTERS_AROUND, LEAST_PIECE
from gistpoint.core.judging.rubric import Coding, Rubric, read_rubric
from gistpoint.core.locations import Locations
from gistpoint.core.login import login_name
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.requests import Count, Natural, Positive, Request, ValueBounds
from gistpoint.core.running import NEVER, CancelToken, RunContext
from gistpoint.core.text import plural, shortened, visible, visible_line
from gistpoint.sandbox.endpoints.settings import EndpointSettings, endpoint_settings
from gistpoint.sessions.annotations.glances import MODEL
from gistpoint.sessions.annotations.rows import Row, csv_lines
from gistpoint.sessions.judging.hand_labels import HandReader
from gistpoint.sessions.judging.judgements import JudgementBook, JudgementStore
from gistpoint.sessions.judging.judging import REPLY_TOKENS_OF_LABEL, Judging, JudgingPlan, RunJudge
from gistpoint.sessions.judging.report import (
    CLAIM_COLUMNS,
    ROW_COLUMNS,
    CodedRun,
    FindingsReport,
    LabelRow,
    claim_values,
    coded_run,
    report_json,
    report_of,
    row_values,
)
from gistpoint.sessions.judging.run_texts import FACTS, RunText, computed, run_text
from gistpoint.sessions.records.model import OWN_FORMAT, Run
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import ListedRun
from gistpoint.sessions.studies.reuse import attempts_for_models
from gistpoint.tui.commands.arguments import JSON
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.merging import counts_of, merge_files
from gistpoint.tui.commands.model_options import chat_model
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import for_output, print_json, print_records, print_table, require_terminal
from gistpoint.tui.commands.progress import ProgressLine, interruptible
from gistpoint.tui.study_opening import open_study
from gistpoint.tui.tables import Column

_MOST_CLAIMS = 10
"""The maximum number of findings of a label that are printed; JSON and CSV contain all."""
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedRuns(Request):
    """A rubric, and the runs that it is applied to."""

    rubric: Path
    runs: tuple[str, ...]
    judge: str | None = None
    """The model's name; None for the user's setting, or, when reading or reporting, for the only judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRuns(Request):
    """A request to have a model judge runs."""

    of: CodedRuns
    context: Annotated[int, ValueBounds(least=2_000)] = 32_000
    max_cost: Positive | None = None
    dry_run: bool = False
    yes: bool = False
    study: tuple[str, ...] = ()


def judge(request: JudgeRuns) -> int:
    """Have a model judge the runs, and print what it found. Return 1 if some answers are missing.

    Raises `UserError` if there is no run, if the rubric has no label for a model, or if sending was not
    confirmed.
    """
    locations, rubric = Locations.of_user(), _rubric(request.of)
    if not rubric.asked:
        raise UserError("All labels of this rubric are computed.", hint="See `gistpoint findings report`.")
    settings = endpoint_settings(
        locations.config, os.environ, request.of.judge, key_needed=not request.dry_run
    )
    worker = RunJudge(_store(locations), settings.model, rubric, _characters(request, rubric))
    allowed = frozenset(id for name in request.study for id in attempts_for_models(open_study(name)))
    with ProgressLine() as progress, interruptible(progress) as cancel:
        plan = worker.plan(_texts(request.of, cancel, allowed, quiet=False), cancel=cancel)
    _print_plan(plan, settings, request)
    if request.dry_run:
        _print_first(worker, request, allowed)
        return DONE
    if not plan.requests:
        return DONE
    if not request.yes and not _agreed(settings.place):
        raise UserError("Nothing was sent.", hint="Without a terminal, confirm with --yes.")
    cap = request.max_cost if request.max_cost is not None else settings.max_cost_usd
    with ProgressLine() as progress, interruptible(progress) as cancel:
        run = RunContext(cancel, progress.making)
        # In random order, so that the texts judged before the cap ends the call are a random part of all.
        texts = _texts(replace(request.of, runs=tuple(plan.names)), cancel, allowed)
        done = worker.judge(texts, chat_model(settings), plan.requests, max_cost_usd=cap, run=run)
    _print_work(done)
    return DONE if done.complete else NEGATIVE


def _rubric(request: CodedRuns) -> Rubric:
    return read_rubric(request.rubric, FACTS)


def _characters(request: JudgeRuns, rubric: Rubric) -> int:
    """Return the maximum length of a piece, in characters, with which a request and its reply fit.

    Raises `UserError` if the codebook leaves too little room.
    """
    codebook = sum(len(label.id) + len(label.words) for label in rubric.asked)
    reply = REPLY_TOKENS_OF_LABEL * len(rubric.asked)
    left = request.context - reply - tokens_in(codebook + CHARACTERS_AROUND)
    # `tokens_in` counts three characters a token.
    if left * 3 < LEAST_PIECE:
        raise UserError(
            f"The codebook alone takes up most of a context of {request.context} tokens.",
            hint="Give a larger --context, or fewer labels.",
        )
    return left * 3


def _print_plan(plan: JudgingPlan, settings: EndpointSettings, request: JudgeRuns) -> None:
    cost = ""
    if settings.prices is not None:
        sent, received = plan.prompt_tokens, plan.reply_tokens
        dollars = (sent * settings.prices.prompt + received * settings.prices.completion) / 1e6
        cost = f", at most about ${dollars:.4f}"
    print(
        f"{plural(plan.requests, 'request')} about {len(plan.missing)} of {plural(plan.runs, 'run')}: at most"
        f" about {plan.prompt_tokens:,} tokens to send and {plan.reply_tokens:,} to receive{cost}.",
        file=sys.stderr,
    )
    where = f"The runs' texts are sent to {settings.place} ({visible_line(settings.model)})."
    print(where if plan.requests else "Everything has already been judged.", file=sys.stderr)
    if plan.addressing:
        print(
            f"Text that seems to address a judge is in {plural(plan.addressing, 'run')}; see the report.",
            file=sys.stderr,
        )
    if request.max_cost is None and settings.max_cost_usd is None and plan.requests:
        print("No limit on the cost is set (--max-cost).", file=sys.stderr)


def _print_first(worker: RunJudge, request: JudgeRuns, allowed: frozenset[str]) -> None:
    """Print the number of requests of each run, and the whole first request, as it would be sent."""
    first, rows = None, list[tuple[str, str, str]]()
    for text in _texts(request.of, NEVER, allowed):
        requests = list(worker.missing(text))
        characters = sum(request.piece.characters for request in requests)
        rows.append((visible_line(text.name), str(len(requests)), f"{characters:,}"))
        first = first or next(iter(requests), None)
    print_table(["run", "requests", "characters"], rows)
    if first is not None:
        for message in first.messages:
            print(f"\n[{message.role}]\n{visible(message.content)}")


def _agreed(place: str) -> bool:
    """Return whether the user confirms on the terminal that text may be sent to a host."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"Send them to {place}? Type yes: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


def _print_work(done: Judging) -> None:
    usage = done.result.usage
    cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
    print(
        f"{done.result.answered} of {plural(done.planned, 'answer')}, {usage.tokens:,} tokens{cost};"
        f" {plural(done.claims, 'claim')}, {done.unproven} without a quote that proves it;"
        f" {plural(len(done.refused), 'quote')} refused"
    )
    for quote in done.refused[:_MOST_NAMED]:
        print(f"  refused: {visible_line(shortened(quote, 100))}")
    if done.result.detail:
        print(f"gistpoint: {visible_line(done.result.detail)}", file=sys.stderr)
    if not done.complete:
        print("The answers so far are kept; the same command asks for the others.", file=sys.stderr)


# Opening runs


def _store(locations: Locations) -> JudgementStore:
    store = JudgementStore(locations.judgements, SystemTime())
    for problem in store.problems:
        print(f"gistpoint: {visible_line(problem)}", file=sys.stderr)
    return store


def _opened(
    request: CodedRuns, cancel: CancelToken, *, quiet: bool = True
) -> Iterator[tuple[RunText, RunDocument, Run]]:
    """Yield the runs, each once; unreadable files are reported, with `quiet` only if there is no run.

    Raises `UserError` if there is none.
    """
    from gistpoint.tui.commands.run_files import print_problems
    from gistpoint.tui.commands.run_list import read_runs

    problems, seen, copies = list[ListedRun](), set[str](), list[str]()
    for listed, document, header in read_runs(request.runs, problems):
        text = run_text(listed.name, document, header, cancel=cancel)
        if text.own_key in seen:
            copies.append(listed.name)
        else:
            seen.add(text.own_key)
            yield text, document, header
    if copies and not quiet:
        names = visible_line(", ".join(copies[:_MOST_NAMED]))
        print(
            f"gistpoint: {plural(len(copies), 'run')} left out as copies of another one, such as {names}.",
            file=sys.stderr,
        )
    if not quiet or not seen:
        print_problems(problems, request.runs, DONE)
    if not seen:
        raise UserError(f"There is no recorded run in {visible_line(', '.join(request.runs))}.")


def _texts(
    request: CodedRuns, cancel: CancelToken, allowed: frozenset[str], *, quiet: bool = True
) -> Iterator[RunText]:
    """Yield the runs that may be sent. Those of a study are left out unless their ids are in `allowed`."""
    withheld = 0
    for text, _, header in _opened(request, cancel, quiet=quiet):
        if of_study(header) and header.id not in allowed:
            withheld += 1
        else:
            yield text
    if withheld and not quiet:
        print(
            f"gistpoint: Not sent: {plural(withheld, 'attempt')} of studies, as no consent to reading by a"
            " model is known. --study FOLDER looks it up.",
            file=sys.stderr,
        )


def of_study(header: Run) -> bool:
    """Return whether a run is an attempt of a study."""
    return header.format == OWN_FORMAT and bool(header.extra.get("study"))


def _judge_name(request: CodedRuns, book: JudgementBook) -> str:
    """Return the stored name of the judge that was named, or of the only one; empty if there is none.

    Raises `UserError` if none was named and there are several.
    """
    names = [name for name in book.reviewers if name.startswith(MODEL)]
    if request.judge is not None:
        return f"{MODEL}{request.judge}"
    if len(names) > 1:
        judges = ", ".join(name.removeprefix(MODEL) for name in names)
        raise UserError(f"Several models have judged runs: {judges}.", hint="Choose one with --judge-model.")
    return names[0] if names else ""


def _reader_name(name: str) -> str:
    return name or login_name()


# Labelling by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFindings(Request):
    """A request to label runs by hand: a random part blind, some of it again, then disputed claims."""

    of: CodedRuns
    reader: str = ""
    sample: Count = 30
    again: Natural = 0
    seed: Natural = 0


def read(request: ReadFindings) -> int:
    """Open the screen on which a person labels runs. Return its exit code.

    Raises `UserError` if there is no terminal, or no run.
    """
    require_terminal("labelling", hint="gistpoint findings report prints what was found.")
    from gistpoint.tui.base_app import OneScreenApp
    from gistpoint.tui.screens.findings.labelling import LabellingScreen

    locations, rubric = Locations.of_user(), _rubric(request.of)
    store = _store(locations)
    reader = HandReader(store, _reader_name(request.reader), request.seed)
    judged = _judge_name(request.of, store.book)
    texts, answers, addressing = dict[str, RunText](), dict[tuple[str, str], RunAnswer](), set[str]()
    with ProgressLine() as progress, interruptible(progress) as cancel:
        for text, coded in _coded(request.of, rubric, store.book, judged, reader.name, cancel):
            texts[text.own_key] = text
            addressing |= {text.own_key} if coded.addressing else set()
            answers |= {(text.own_key, id): answer for id, answer in coded.answers.items()}
    blind = reader.blind(texts, rubric.label, request.sample)
    again = reader.again(texts, rubric.label, request.again)

    def first() -> LabellingScreen:
        return LabellingScreen(texts, reader, [*blind, *again], answers, rubric.label, addressing)

    return OneScreenApp(locations, "screens/findings/findings.tcss", first).run_to_exit_code()


def _coded(
    request: CodedRuns, rubric: Rubric, book: JudgementBook, judge: str, reader: str, cancel: CancelToken
) -> Iterator[tuple[RunText, CodedRun]]:
    names = tuple(label.fact for label in rubric.computed)
    for text, document, _ in _opened(request, cancel, quiet=False):
        facts = computed(document, names, cancel=cancel)
        yield text, coded_run(text, rubric, facts, book, judge, reader)


# Printing the report


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFindings(Request):
    """A request to print what was found, and how often."""

    of: CodedRuns
    reader: str = ""
    json: bool = False
    csv: Literal["labels", "findings"] | None = None
    merge: tuple[str, ...] = ()
    """Files of judgements from elsewhere, which are merged first."""


def report(request: ReportFindings) -> int:
    """Print the report. Return the exit code.

    Raises `UserError` if there is no run, or if the extra `study` is not installed.
    """
    locations, rubric = Locations.of_user(), _rubric(request.of)
    store = _store(locations)
    _merge(store, request.merge)
    book = store.book
    judged, reader = _judge_name(request.of, book), _reader_name(request.reader)
    with ProgressLine(quiet=request.json) as progress, interruptible(progress) as cancel:
        runs = [coded for _, coded in _coded(request.of, rubric, book, judged, reader, cancel)]
    try:
        found = report_of(runs, rubric, judged, reader)
    except ModuleNotFoundError as error:
        from gistpoint.core.analysis.running import missing_extra

        raise missing_extra(error) from error
    if request.json:
        print_json("gistpoint.findings/1", report_json(found))
    elif request.csv == "labels":
        _print_csv(map(row_values, found.rows), ROW_COLUMNS)
    elif request.csv == "findings":
        _print_csv(map(claim_values, found.claims), CLAIM_COLUMNS)
    else:
        _print_report(found, len(runs))
    return DONE


def _merge(store: JudgementStore, paths: tuple[str, ...]) -> None:
    if not paths:
        return
    print(counts_of(merge_files(store, map(Path, paths))), file=sys.stderr)


def _print_csv(rows: Iterable[Row], columns: tuple[str, ...]) -> None:
    sys.stdout.writelines(for_output(csv_lines(rows, columns)))


def _print_report(found: FindingsReport, runs: int) -> None:
    print(f"{plural(runs, 'run')}, rubric {found.rubric}, judge {visible_line(found.judge) or '-'}")
    print(f"labels by {visible_line(found.reader)}, given blind on a random part")
    print_records(_COLUMNS, found.rows)
    for row in found.rows:
        if row.prevalence.too_few:
            print(f"{row.label}: too few: {row.prevalence.too_few}")
        if row.not_judged:
            print(f"{row.label}: not judged, and not counted: {plural(row.not_judged, 'run')}")
    _print_claims(found)
    if found.addressing:
        kinds = ", ".join(f"{what} ({count})" for what, count in sorted(found.kinds.items()))
        print(f"\nSeem to address a judge: {plural(len(found.addressing), 'place')}: {kinds}")
        for run, what, step in found.addressing[:_MOST_CLAIMS]:
            print(f"  {visible_line(run)}, step {step}: {what}")


def _print_claims(found: FindingsReport) -> None:
    for row in found.rows:
        claims = [claim for claim in found.claims if claim.label == row.label]
        if claims:
            print(f"\n{row.label}")
        for claim in claims[:_MOST_CLAIMS]:
            where = " ".join(filter(None, (f"step {claim.step}" if claim.step else "", claim.place)))
            person = f" [{claim.person}]" if claim.person else ""
            quote = f": {visible_line(shortened(claim.quote, 80))}" if claim.quote else ""
            print(f"  {visible_line(claim.run)}, {where or 'whole run'}{person}{quote}")
        if len(claims) > _MOST_CLAIMS:
            print(f"  and {len(claims) - _MOST_CLAIMS} more (--csv findings)")


def _share(row: LabelRow) -> str:
    value, too_few = row.prevalence.value, row.prevalence.too_few
    return "-" if value is None or too_few else f"{100 * value:.1f}%"


def _interval(row: LabelRow) -> str:
    low, high = row.prevalence.low, row.prevalence.high
    return "too few" if low is None or high is None else f"{100 * low:.1f}-{100 * high:.1f}%"


def _kappa(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _more(row: LabelRow) -> str:
    found = row.prevalence
    is_fact = row.coded == Coding.COMPUTED and not found.labels
    if is_fact or not found.runs:
        return "-"
    return "more runs" if found.more_labels is None else f"{found.more_labels:,}"


_COLUMNS: tuple[Column[LabelRow], ...] = (
    Column("label", lambda row: row.label),
    Column("judge", lambda row: f"{row.prevalence.judged} of {row.prevalence.runs}"),
    Column("unproven", lambda row: str(row.unproven)),
    Column("refused", lambda row: str(row.refused)),
    Column("labels", lambda row: f"{row.prevalence.present} of {row.prevalence.labels}"),
    Column("kappa", lambda row: _kappa(row.prevalence.kappa)),
    Column("again", lambda row: _kappa(row.prevalence.kappa_again)),
    Column("share", _share),
    Column("95%", _interval),
    Column("more labels", _more),
)

_RUNS = OptionTable(
    {
        "rubric": argument("RUBRIC", "a TOML file with the labels and their definitions"),
        "runs": argument("RUNS", "files and folders of runs"),
        "judge": option("the model that judges", "--judge-model", metavar="NAME"),
    }
)
_READER = option("the reader's pseudonym (default: the login)", metavar="NAME")
JUDGE = CliCommand(
    JudgeRuns,
    judge,
    {
        "of": _RUNS,
        "context": option(
            "the model's context in tokens; runs are read in pieces (default: {default})", metavar="N"
        ),
        "max_cost": option("cost limit for this command; needs a price, see the guide", metavar="USD"),
        "dry_run": option("show what would be sent, and where, and send nothing"),
        "yes": option("send without a question"),
        "study": option("send attempts of this study whose authors have agreed to it", metavar="FOLDER"),
    },
    about=(
        "Has a model decide for each label whether a run shows it, with quotes that must be in the run. The"
        " endpoint is that of OPENAI_BASE_URL and OPENAI_API_KEY, or of the table [llm] of config.toml. It is"
        " named before anything is sent. Answers are kept; the same command asks only for missing ones."
    ),
)
READ = CliCommand(
    ReadFindings,
    read,
    {
        "of": _RUNS,
        "reader": _READER,
        "sample": option("runs to label blind, drawn at random (default: {default})", metavar="N"),
        "again": option("label this many of them again, blind", metavar="N"),
        "seed": option("seed for drawing the runs (default: {default})", metavar="N"),
    },
    about=(
        "Shows runs drawn at random, and asks for each label with one key, without the judge's answers. Only"
        " these labels feed the estimates. Disputed claims follow, with their quotes."
    ),
)
REPORT = CliCommand(
    ReportFindings,
    report,
    OptionTable(
        {
            "of": _RUNS,
            "reader": _READER,
            "json": JSON,
            "csv": option("a table as CSV: a row for each label, or for each finding", metavar="TABLE"),
            "merge": option("first merge a reader's or a judge's .jsonl", metavar="PATH"),
        },
        one_of=(("json", "csv"),),
    ),
    about=(
        "Prints for each label how often the judge found it, the labels given by hand, their agreement, and"
        " the share of runs with a 95% interval, or why there are too few labels for one."
    ),
)
