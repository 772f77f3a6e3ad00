"""Prints the results of making a set of tasks, by source."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from gistpoint.core.generation.empty_sets import retry_of_empty_set
from gistpoint.core.generation.pipeline import SourceResult
from gistpoint.core.generation.settings import Batch, CampaignSettings
from gistpoint.core.generation.verdicts import Reason
from gistpoint.core.readable import percent_words
from gistpoint.core.text import plural
from gistpoint.tui.commands.output import print_table, print_text

COLUMNS = (
    "source",
    "functions",
    "candidates",
    "tried",
    "kept",
    "learning s",
    "making s",
    "reading s",
    "probes",
    "median/suite",
    "confirming s",
    "saved s",
    "control",
)


SAVED = (
    "saved s: the time that the whole suite would have taken on each probed corruption, minus the time"
    " of the probes. Confirming is not included. The value is negative if many corruptions hang."
)


def print_results(
    results: Sequence[SourceResult], count: int, settings: CampaignSettings, called: Sequence[str]
) -> None:
    """Print the table of sources, why candidates were dropped, the tasks, and how to get more of them.

    `called` are the words of the command. The line of a task begins with its id.
    """
    print_table(COLUMNS, [_row(result) for result in results])
    print_strata(results)
    dropped = [
        [result.spec.source, what, reason, str(count)]
        for result in results
        for what, counted in (("candidate", result.counts.reasons), ("corruption", result.counts.fates))
        for reason, count in counted.items()
    ]
    if any(result.counts.tried for result in results):
        print_text(SAVED)
    if dropped:
        print_table(("source", "of", "came to", "count"), dropped)
    _print_confirmable(results)
    _print_failing(results)
    _print_expected(results)
    _print_read(results)
    for result in results:
        _print_notes(result, count)
    for result in results:
        for id in result.tasks:
            print_text(f"{id}  {result.titles.get(id, '')}".rstrip())
    for result in results:
        _print_retry(result, settings, called)


def _print_retry(result: SourceResult, settings: CampaignSettings, called: Sequence[str]) -> None:
    """For a source of which nothing was kept, print the reason and a command that tries more, if any."""
    if result.kept or result.refused is not None or result.stopped is not None:
        return
    source = result.spec.source
    has_history = "==" in source or source.startswith("git+")
    retry = retry_of_empty_set(
        result.counts.reasons, settings, candidates=str(result.plan), has_history=has_history
    )
    if retry is None:
        print_text(f"{source}: nothing was kept. Its tests don't notice enough; choose another library.")
        return
    print_text(f"{source}: nothing was kept ({retry.why}). This tries more:\n{retry.command(called)}")


def _print_notes(result: SourceResult, count: int) -> None:
    """Print why a source was refused, where probe and suite differ, and how to get more tasks."""
    source = result.spec.source
    if result.refused is not None:
        print_text(f"{source}: {result.refused[1]}")
        if result.advice:
            print_text(result.advice)
    for comparison in result.comparisons:
        if not comparison["agrees"]:
            print_text(f"{source}: probe and suite differ on {', '.join(comparison['targets'])}")
    seen = result.counts.reasons.get(Reason.AT_A_GLANCE, 0)
    if seen and 0 < result.kept < count:
        print_text(
            f"{source}: readers are expected to see every corruption of {plural(seen, 'function')}, so none"
            " was tried. Give a higher --max-glance to try them: 0.5, or more than before."
        )


def _print_expected(results: Sequence[SourceResult]) -> None:
    """Print the share of each set's faults that readers are expected to name at a glance."""
    for result in results:
        scores = [score for task in result.tasks if (score := result.glance.get(task)) is not None]
        if scores:
            print_text(
                f"{result.spec.source}: readers are expected to name {percent_words(mean(scores))} of the"
                f" faults at a glance ({min(scores):.2f} to {max(scores):.2f})"
            )


def _print_read(results: Sequence[SourceResult]) -> None:
    """Print how often a blind reader named the faults of each set, and untouched functions."""
    for result in results:
        records = [result.readings[task] for task in result.tasks if task in result.readings]
        read, named, alarms = (sum(record[key] for record in records) for key in ("read", "named", "alarms"))
        from_text = sum(record.get("from_text", record["named"]) for record in records)
        if read:
            print_text(
                f"{result.spec.source}: {records[0]['model']} named {percent_words(named / read)} of the"
                f" faults in {plural(read, 'reading')}, {percent_words(from_text / read)} from the text alone"
                f" ({alarms} named an untouched function)"
            )


def _print_confirmable(results: Sequence[SourceResult]) -> None:
    """Print for how many corruptions passes can be confirmed, and why they can't be for the others."""
    rows = [
        [result.spec.source, known, str(count)]
        for result in results
        for known, count in result.counts.confirmable.items()
    ]
    if rows:
        print_table(("source", "passes can be confirmed", "count"), rows)


def _print_failing(results: Sequence[SourceResult]) -> None:
    """Print how many tasks of each set are in each stratum of failing tests."""
    rows = [
        [result.spec.source, stratum, str(count)]
        for result in results
        for stratum, count in result.counts.failing.items()
    ]
    if rows:
        print_table(("source", "failing tests", "tasks"), rows)


def print_strata(results: Sequence[SourceResult]) -> None:
    """Print how many candidates and tasks each stratum has; nothing if no set is stratified."""
    rows = [
        [result.spec.source, name, str(offered), str(kept)]
        for result in results
        for name, offered, kept in result.strata
    ]
    if rows:
        print_table(("source", "stratum", "candidates", "kept"), rows)


def share_words(share: float | None) -> str:
    """Return a probe's share of the suite's time, as `1/20` or, from 2/3 on, as `1.5`; empty if unknown."""
    if not share:
        return "" if share is None else "0"
    return f"1/{1 / share:.0f}" if share < 2 / 3 else f"{share:.1f}"


def _row(result: SourceResult) -> list[str]:
    values = result.to_json()
    costs = values["costs"] or {}
    share = costs.get("median_share_of_suite")
    agreement = values["control"]["agreement"]
    stars = "" if result.spec.stars is not None else " (stars unknown)"
    return [
        result.spec.source + stars,
        str(values["functions"]),
        str(values["candidates"]),
        str(values["tried"]),
        str(values["kept"]) if result.refused is None else f"refused: {result.refused[0]}",
        f"{result.learning_seconds:.1f}",
        f"{result.making_seconds:.1f}",
        f"{costs.get('reading_seconds', 0.0):.1f}",
        f"{costs.get('probes', 0)}",
        share_words(share),
        f"{costs.get('confirming_seconds', 0.0):.1f}",
        f"{costs.get('saved_seconds', 0.0):.1f}",
        "" if agreement is None else f"{percent_words(agreement)} of {values['control']['tried']}",
    ]


def results_json(settings: CampaignSettings, batch: Batch, results: Sequence[SourceResult]) -> dict[str, Any]:
    """Return the results as JSON data."""
    return {
        "settings": settings.to_json(),
        "sources": [result.to_json() for result in results],
        "too_few_stars": [spec.source for spec in batch.left_out],
        "min_stars": batch.min_stars,
    }
