"""What a campaign made, as tables for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gistpoint.core.generation.campaign.counts import SourceResult
from gistpoint.core.generation.campaign.settings import Batch, Settings
from gistpoint.tui.commands.output import print_table, print_text

COLUMNS = (
    "source", "functions", "candidates", "tried", "kept", "learning s", "making s", "probes", "median/suite",
    "confirming s", "saved s", "control",
)  # fmt: skip


def print_results(results: Sequence[SourceResult]) -> None:
    """Print the table of sources, why candidates and corruptions were dropped, and the ids of the tasks."""
    print_table(COLUMNS, [_row(result) for result in results])
    dropped = [
        [result.spec.source, what, reason, str(count)]
        for result in results
        for what, counted in (("candidate", result.counts.reasons), ("corruption", result.counts.fates))
        for reason, count in counted.items()
    ]
    if dropped:
        print_table(("source", "of", "came to", "count"), dropped)
    for result in results:
        if result.refused is not None:
            print_text(f"{result.spec.source}: {result.refused[1]}")
        for comparison in result.comparisons:
            if not comparison["agrees"]:
                print_text(f"{result.spec.source}: probe and suite differ on {', '.join(comparison['targets'])}")
    for result in results:
        for id in result.tasks:
            print(id)


def _row(result: SourceResult) -> list[str]:
    told = result.to_json()
    costs = told["costs"] or {}
    share = costs.get("median_share_of_suite")
    agreement = told["control"]["agreement"]
    stars = "" if result.spec.stars is not None else " (stars unknown)"
    return [
        result.spec.source + stars,
        str(told["functions"]),
        str(told["candidates"]),
        str(told["tried"]),
        str(told["kept"]) if result.refused is None else f"refused: {result.refused[0]}",
        f"{result.learning_seconds:.1f}",
        f"{result.making_seconds:.1f}",
        f"{costs.get('probes', 0)}",
        "" if share is None else f"1/{1 / share:.0f}" if share else "0",
        f"{costs.get('confirming_seconds', 0.0):.1f}",
        f"{costs.get('saved_seconds', 0.0):.1f}",
        "" if agreement is None else f"{100 * agreement:.0f} % of {told['control']['tried']}",
    ]


def results_json(settings: Settings, batch: Batch, results: Sequence[SourceResult]) -> dict[str, Any]:
    """Return the results as the values of a JSON document."""
    return {
        "settings": settings.to_json(),
        "sources": [result.to_json() for result in results],
        "too_few_stars": [spec.source for spec in batch.left_out],
        "min_stars": batch.min_stars,
    }
