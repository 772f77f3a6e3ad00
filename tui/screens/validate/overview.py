"""The overview of a task under validation: lines that summarise the evidence for and against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.diffs import DiffLineKind, FileDiff
from gistpoint.core.generation.dossier import Dossier
from gistpoint.core.kinds.confirming import CAN_BE, confirmable_words
from gistpoint.core.kinds.kind import TrialSubject
from gistpoint.core.kinds.steadiness import Steadiness
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.metrics.table import MetricRank
from gistpoint.core.readable import moment, percent_words
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import failing_in_words, plural
from gistpoint.sessions.annotations.validations import CheckMade, TrialMade, Validation
from gistpoint.tui import signs
from gistpoint.tui.screens.validate.queue import look_of
from gistpoint.tui.test_names import unescaped
from gistpoint.tui.titles import mode_words
from gistpoint.tui.widgets.line_list import BAD, GOOD, HEADING, MUTED, ODD, Line, folded, line, parts_of

if TYPE_CHECKING:
    from gistpoint.tui.screens.validate.session import ValidationSession

DIFF_LINES = 16
FIRST_TESTS = 8
_MOST_ROWS = 6
_BETWEEN = 4
"""The number of cells between two blocks."""
_OBVIOUS = 0.5
"""The share of blind readings naming the fault above which a task is shown as obvious."""
_BAR, _SHORT_BAR = 14, 7
MAIN_METRICS = (
    "code_lines",
    "cyclomatic",
    "nesting",
    "halstead_difficulty",
    "degree",
    "harmonic_out",
    "pagerank",
    "betweenness",
)
_EIGHTHS = f" {signs.EIGHTHS_ACROSS}"
_SIGNS = {
    DiffLineKind.ADDED: ("+", GOOD),
    DiffLineKind.REMOVED: ("-", BAD),
    DiffLineKind.CONTEXT: (" ", MUTED),
}


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The facts that the overview of a task shows."""

    dossier: Dossier
    validation: Validation
    steadiness: Steadiness | None
    """How often each test passed on both trees; None if there is no baseline."""
    standings: Mapping[str, Sequence[MetricRank]]
    """The ranks of each target among the functions of its library."""
    trials: Sequence[TrialMade]
    """The trials that all validators have made."""
    others: Sequence[Validation] = ()
    """The validations of all who judged the task, if they may be seen."""
    glance_rate: float | None = None
    """The share of blind readings that named the fault; None if there are no readings."""

    @classmethod
    def of(cls, session: ValidationSession, dossier: Dossier) -> TaskFacts:
        """Return the facts known about a task so far."""
        return cls(
            dossier,
            session.validator.validation(dossier.task.id),
            session.steadiness(dossier),
            {target.name: session.standings(dossier, target.name) for target in dossier.answer.targets},
            session.validator.store.book.trials(dossier.task.id),
            session.shown_validations(dossier.task),
            session.glance_rates.get(dossier.task.id),
        )


def overview(known: TaskFacts, width: int) -> list[Line]:
    """Return the lines of the overview. Their links lead to pages, functions or tests, or name an action."""
    return [
        *_task(known),
        *(about_validators(known.others, width) or about_verdict(known.validation, width)),
        *(_about_targets(known, width) if known.standings else ()),
        *_check_and_subtlety(known, width),
        *about_runs(known.trials),
        *about_provenance(known.dossier.answer.provenance, width),
    ]


def _check_and_subtlety(known: TaskFacts, width: int) -> list[Line]:
    """Return the check's findings, next to the subtlety if there is room. Only the findings have links."""
    check, subtlety = about_check(known.validation.check), _subtlety(known)
    room = width - max((cell_len(row.text) for row in subtlety), default=0) - _BETWEEN
    if subtlety and room >= _BETWEEN * 10:
        check = [part for row in check for part in parts_of(row, room)]
    return side_by_side(check, subtlety, width)


def _about_targets(known: TaskFacts, width: int) -> list[Line]:
    return [
        *_diff(known.dossier.diff),
        *_tests(known),
        *(_steady(known.steadiness) if known.steadiness is not None else ()),
        *_metrics(known.standings, width),
    ]


def _task(known: TaskFacts) -> list[Line]:
    task, answer = known.dossier.task, known.dossier.answer
    found = [head(task, mode_words(task))]
    for target in answer.targets:
        found.append(Line((("function  ", MUTED), (target.name, "bold")), link=f"code:{target.name}"))
    uses = f"{plural(task.budgets.tool_uses, 'tool use')}, {plural(task.budgets.submissions, 'submission')}"
    suite = f"{plural(task.suite.tests, 'test')}, {task.suite.seconds:.1f} s"
    found.append(Line((("budget    ", MUTED), (uses, ""), ("   suite  ", MUTED), (suite, ""))))
    if task.suite.deselected:
        found.append(
            line(
                f"          {plural(len(task.suite.deselected), 'test')} flaky when the task was"
                " made, and left out",
                ODD,
            )
        )
    return [*found, *confirmable_line(task), *_glanced(known.glance_rate)]


def _glanced(rate: float | None) -> list[Line]:
    """Return a line on how often blind readers saw the fault; empty if nobody has read the function."""
    if rate is None:
        return []
    words = f"{percent_words(rate)} of blind readings named the fault in the right line"
    return [Line((("readers   ", MUTED), (words, ODD if rate > _OBVIOUS else "")))]


def confirmable_line(task: Task) -> list[Line]:
    """Return a line on whether passes of a task can be confirmed; empty if its kind has no confirmation."""
    words = confirmable_words(task)
    style = "" if words.startswith(CAN_BE) else ODD
    return [Line((("passes    ", MUTED), ("can be confirmed: ", ""), (words, style)))] if words else []


def head(task: Task, mode: str) -> Line:
    """Return a line with the title, mode, source and id of a task."""
    source = f"{mode}  {task.source.name} {task.source.revision[:12]}"
    return Line(((f"{author_title(task)}  ", HEADING), (source, ""), (f"  {task.short_id}", MUTED)))


def _runs_and_checks(evidence: Sequence[str]) -> str:
    return plural(len(evidence), "run or check", "runs and checks")


def about_validators(validations: Sequence[Validation], width: int) -> list[Line]:
    """Return lines on all validators' verdicts and comments, and on the decision; empty if there are none."""
    found: list[Line] = []
    for validation in validations:
        verdict, decision = validation.verdict, validation.adjudication
        for kind, given in (("", verdict), ("decided: ", decision)):
            if given is not None:
                sign, style = look_of(given.verdict)
                on = f", on {_runs_and_checks(given.evidence)}, {moment(given.utc_ms)}"
                words = f"{sign} {kind}{given.verdict.words}"
                found.append(Line(((f"{validation.reviewer}  ", "bold"), (words, style), (on, MUTED))))
        for comment in validation.comments:
            found += folded(f"{signs.COMMENT} {comment.text}", width, "$text-accent", indent="    ")
    return [*_heading("Verdicts of the validators"), *found] if found else []


def about_verdict(validation: Validation, width: int) -> list[Line]:
    """Return lines on the validator's verdict and comments."""
    found: list[Line] = []
    if validation.verdict is not None:
        sign, style = look_of(validation.verdict.verdict)
        words = f"{sign} {validation.verdict.verdict.words}, {moment(validation.verdict.utc_ms)}"
        evidence = f", on {_runs_and_checks(validation.verdict.evidence)}"
        found.append(Line((("verdict   ", MUTED), (words, style), (evidence, MUTED))))
    for comment in validation.comments:
        found += folded(f"{signs.COMMENT} {comment.text}", width, "$text-accent", indent="          ")
    return found


def side_by_side(left: Sequence[Line], right: Sequence[Line], width: int) -> list[Line]:
    """Return two blocks side by side if both fit into `width` cells, otherwise one below the other.

    Side by side, a line has the link of its left part.
    """
    room = max((cell_len(row.text) for row in left), default=0) + _BETWEEN
    if not left or not right or room + max(cell_len(row.text) for row in right) > width:
        return [*left, *right]
    found = []
    for one, other in zip_longest(left, right, fillvalue=Line()):
        gap = " " * (room - cell_len(one.text))
        found.append(Line((*one.pieces, (gap, ""), *other.pieces), link=one.link))
    return found


def _heading(text: str, link: str = "") -> list[Line]:
    return [Line(), line(text, HEADING, link=link)]


def _diff(files: Sequence[FileDiff]) -> list[Line]:
    shown: list[Line] = []
    for file in files:
        shown += [line(f"{file.path}  +{file.added} -{file.removed}", MUTED)] if len(files) > 1 else []
        for hunk in file.hunks:
            for entry in hunk.lines:
                sign, style = _SIGNS[entry.kind]
                shown.append(
                    Line(((f"{entry.old or entry.new or 0:>5} ", MUTED), (f"{sign} {entry.text}", style)))
                )
    changed = sum(file.added + file.removed for file in files)
    more = f", {len(shown) - DIFF_LINES} more lines" if len(shown) > DIFF_LINES else ""
    title = f"Original to corrupted: {changed} changed lines{more} (F4)"
    return [*_heading(title, "page:diff"), *shown[:DIFF_LINES]]


def _tests(known: TaskFacts) -> list[Line]:
    failing = known.dossier.task.brief.failing
    total = known.dossier.task.suite.tests
    found = _heading(f"{failing_in_words(len(failing), total)} (F5)", "page:tests")
    for failure in failing[:FIRST_TESTS]:
        message = next((part[1:].strip() for part in failure.text.splitlines() if part.startswith("E ")), "")
        message = message or next(iter(failure.text.strip().splitlines()), "")
        found.append(
            Line(
                (
                    (f"{signs.BAD} ", BAD),
                    (unescaped(failure.id), ""),
                    (f"  {message}" if message else "", MUTED),
                ),
                link=f"test:{failure.id}",
            )
        )
    if len(failing) > FIRST_TESTS:
        found.append(line(f"… and {len(failing) - FIRST_TESTS} more", MUTED, link="page:tests"))
    return found


def _steady(found: Steadiness) -> list[Line]:
    runs = (
        f"{plural(found.original_runs, 'run')} of the original, {found.corrupted_runs} of the corrupted tree"
    )
    flaky = found.flaky
    if not flaky:
        return [
            Line(
                ((f"{signs.GOOD} ", GOOD), (f"not flaky: every test had the same result in {runs}", "")),
                link="page:tests",
            )
        ]
    lines = _heading("Flakiness", "page:tests")
    lines.append(
        Line((("! ", BAD), (f"{plural(len(flaky), 'test')} did not have the same result in {runs}", BAD)))
    )
    for shown in flaky[:FIRST_TESTS]:
        counts = (
            f"  original {shown.original}/{shown.original_runs}, corrupted"
            f" {shown.corrupted}/{shown.corrupted_runs}"
        )
        lines.append(Line((("  ", ""), (shown.id, ""), (counts, ODD)), link=f"test:{shown.id}"))
    return lines


def _metrics(standings: Mapping[str, Sequence[MetricRank]], width: int) -> list[Line]:
    lines = _heading("Metrics, percentile in the library")
    for name, found in standings.items():
        if len(standings) > 1:
            lines.append(line(name, MUTED))
        if not found:
            lines.append(line("not in the task: % measures the library", MUTED, link="measure"))
        main = [standing for metric in MAIN_METRICS for standing in found if standing.metric == metric]
        others = [standing for standing in found if standing.metric not in MAIN_METRICS]
        lines += _in_columns(main, others, width)
        if found and not any(standing.percentile is not None for standing in found):
            lines.append(line("without percentiles: % measures the library", MUTED, link="measure"))
    return lines


def _in_columns(main: Sequence[MetricRank], others: Sequence[MetricRank], width: int) -> list[Line]:
    """Return a line for each metric, in two columns if both fit, otherwise with all bars below each other."""
    columns = side_by_side(_metric_lines(main), _metric_lines(others), width)
    if len(columns) < len(main) + len(others):
        return columns
    return _metric_lines([*main, *others])


def _metric_lines(standings: Sequence[MetricRank]) -> list[Line]:
    """Return a line for each metric, with names in a column that is as wide as the longest one."""
    cells = max((len(standing.metric) for standing in standings), default=0)
    return [_metric(standing, cells) for standing in standings]


def _metric(standing: MetricRank, cells: int) -> Line:
    metric = standing.metric.replace("_", " ")
    name = f"{metric:<{cells}} {standing.value:>9.4g} "
    if standing.percentile is None:
        return line(name)
    share = standing.percentile / 100
    return Line(
        ((name, ""), (bar(share, _SHORT_BAR), "$text-primary"), (f" {standing.percentile:5.1f}%", ""))
    )


def _subtlety(known: TaskFacts) -> list[Line]:
    """Return lines on each corruption's subtlety, from the provenance and from each of its `parts`."""
    provenance, targets = known.dossier.answer.provenance, list(known.standings)
    parts = provenance.get("parts")
    scored = [provenance, *(parts if isinstance(parts, list) else [])]
    scored = [
        item for item in scored if isinstance(item, Mapping) and isinstance(item.get("subtlety"), Mapping)
    ]
    lines: list[Line] = []
    for number, item in enumerate(scored):
        if len(scored) > 1 and number < len(targets):
            lines.append(line(targets[number], MUTED))
        lines += _scored_lines(item)
    return [*_heading("Subtlety"), *lines] if lines else []


def _scored_lines(scored: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the lines on one corruption: its glance score, its subtlety, and the parts of the subtlety."""
    glance, score = scored.get("glance"), scored["subtlety"]
    parts = score.get("parts")
    shares = [
        ("seen at a glance", glance.get("value") if isinstance(glance, Mapping) else None, "bold"),
        ("in all", score.get("value"), "bold"),
        *(
            (str(name).replace("_", " "), part, "")
            for name, part in (parts if isinstance(parts, Mapping) else {}).items()
        ),
    ]
    for name, value, style in shares:
        if (share := _number(value)) is not None:
            yield _share(name, share, style)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _share(name: str, share: float, style: str = "") -> Line:
    return Line(((f"{name:<18.18} {share:>5.2f}  ", style), (bar(share, _BAR), "$text-primary")))


def about_check(check: CheckMade | None) -> list[Line]:
    """Return lines on the check's findings, or on how to run it."""
    lines = _heading("What `task check` found (F6)", "page:runs")
    if check is None:
        return [*lines, line("not run here yet: ! runs it", MUTED, link="check")]
    return lines + findings(check)


def findings(check: CheckMade) -> list[Line]:
    """Return a line for each finding of a check."""
    found = []
    for name, passed, reduced, detail in check.findings:
        sign, style = ("~", ODD) if reduced else (signs.GOOD, GOOD) if passed else (signs.BAD, BAD)
        found.append(Line(((f"{sign} ", style), (f"{name:<20} ", ""), (detail, MUTED if passed else BAD))))
    return found


def about_runs(trials: Iterable[TrialMade]) -> list[Line]:
    """Return lines on the latest trials."""
    known = list(trials)
    lines = _heading(f"Requested runs: {len(known)} (F6)", "page:runs")
    return lines + [trial_line(trial) for trial in known[-FIRST_TESTS:]]


def trial_line(trial: TrialMade) -> Line:
    """Return the line for a trial and its result."""
    if not trial.finished:
        sign, style, words = "!", BAD, trial.status.replace("_", " ")
    elif trial.subject is TrialSubject.REFERENCE:
        sign, style = (signs.GOOD, GOOD) if trial.solved else (signs.BAD, BAD)
        words = "faithful" if trial.solved else f"not faithful, {trial.odd_count} differ"
    elif trial.subject is TrialSubject.FIX:
        sign, style = (signs.GOOD, GOOD) if trial.result is AttemptResult.SOLVED else (signs.BAD, ODD)
        words = f"score {trial.score:.3f}, {trial.failing} fail" if not trial.solved else "solves the task"
        if trial.suspicious:
            words += f", suspicious: {', '.join(trial.suspicious)}"
    else:
        sign, style = (signs.BAD, BAD) if trial.odd_count else (signs.GOOD, GOOD)
        odd_tests = plural(trial.odd_count, "test")
        words = f"{odd_tests} different from the task" if trial.odd_count else "as the task says"
        words += f": {trial.passing} pass, {trial.failing} fail"
    return Line(
        (
            (f"{sign} ", style),
            (f"{trial.subject.value:<10} ", ""),
            (words, style),
            (f"  {trial.seconds:.1f} s on {trial.backend}, {moment(trial.utc_ms)}, {trial.reviewer}", MUTED),
        )
    )


def about_provenance(provenance: Mapping[str, Any], width: int) -> list[Line]:
    """Return lines on the provenance of a task; empty if none is recorded."""
    lines: list[Line] = []
    for key, value in provenance.items():
        for number, item in enumerate(value if key == "parts" and isinstance(value, list) else [value], 1):
            name = f"corruption {number}" if key == "parts" else key
            lines += [] if key == "subtlety" else _field_lines(str(name), item, width)
    return [*_heading("Where it comes from"), *lines] if lines else []


def _field_lines(name: str, value: object, width: int) -> list[Line]:
    if not isinstance(value, Mapping):
        return [Line(((f"{name}  ", MUTED), (_spelled(value), "")))]
    lines = [line(name, MUTED)]
    for key, part in value.items():
        if key != "subtlety":
            lines += folded(f"{key}: {_spelled(part)}", width, indent="    ")[:_MOST_ROWS]
    return lines


def _spelled(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 400 else f"{text[:400]} …"


def bar(share: float, width: int = 20) -> str:
    """Return a bar of `width` cells, of which `share` (0 to 1) is filled, to an eighth of a cell."""
    filled = round(min(1.0, max(0.0, share)) * width * 8)
    whole, rest = divmod(filled, 8)
    text = _EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")
    return text.ljust(width, "·")
