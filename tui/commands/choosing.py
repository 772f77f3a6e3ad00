"""The options by which `task generate` chooses functions on purpose, and the settings that they make."""

from __future__ import annotations

import argparse
from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.core.generation.choice import (
    PLANE,
    REACH,
    Choice,
    GroupRules,
    read_bars,
    read_functions,
    read_sizes,
)
from gistpoint.core.metrics.bars import HARD
from gistpoint.tui.commands.arguments import counted, require_not_empty
from gistpoint.tui.commands.options import number
from gistpoint.tui.commands.output import cause

CONDITION_HELP = "such as 'code_lines >= 12 and harmonic_out > p90', or a part of the name; several must all hold"
_DEFAULT_COUNT = 20
_MOST_BYTES = 16 << 20


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose functions, and those of groups."""
    group = parser.add_argument_group(
        "choosing functions", "Metrics are the columns of `gistpoint code`; without options every function may come."
    )
    group.add_argument("--where", action="append", default=[], metavar="CONDITION", help=CONDITION_HELP)
    group.add_argument("--functions", metavar="FILE", help="only those listed, one path::qualname a line")
    group.add_argument("--hard", action="store_true", help="only functions high in cyclomatic and in degree")
    group.add_argument(
        "--hard-by", metavar="METRICS", help="high, or low, in these instead, such as cyclomatic,degree:low"
    )
    group.add_argument("--percentile", type=number, metavar="P", help="of --hard among the candidates (default: 90)")
    group.add_argument(
        "--spread", metavar="METRICS", help=f"tasks evenly over the quantiles of two, such as {','.join(PLANE)}"
    )
    group.add_argument("--bins", type=counted, metavar="N", help="quantiles of each of the two (default: 4)")
    group.add_argument(
        "--quadrants", action="store_true", help="two quantiles of each (or of code_lines,harmonic_out), equal numbers"
    )
    groups = parser.add_argument_group("groups of --mode multi")
    groups.add_argument("--size", metavar="SIZES", help="3, 1..8, 1,2,4, or with tasks of each 1:10,2:10,4:5")
    groups.add_argument("--chain", action="store_true", help="each near to the one before it, not every two")
    groups.add_argument(
        "--distance", type=counted, default=REACH, metavar="N", help=f"most calls between those near (default: {REACH})"
    )
    groups.add_argument("--tell-count", action="store_true", help="the brief tells how many functions are corrupted")


def choice_of(options: argparse.Namespace) -> Choice:
    """Return the choice that the options make; raises `UserError`."""
    require_not_empty(options, "functions", "hard_by", "spread")
    if options.bins is not None and options.quadrants:
        raise UserError("--quadrants has two quantiles of each metric.", hint="Leave --bins or --quadrants out.")
    if options.bins is not None and not options.spread:
        raise UserError("--bins divides the plane of --spread.", hint=f"Add --spread {','.join(PLANE)}.")
    if options.percentile is not None and not hard(options):
        raise UserError("--percentile is that of --hard or --hard-by.", hint="Add one of them.")
    bars = read_bars(options.hard_by) if options.hard_by else HARD if options.percentile is not None else ()
    plane = tuple(part.strip() for part in options.spread.split(",")) if options.spread else ()
    return Choice(
        functions=_listed(Path(options.functions)) if options.functions else {},
        where=tuple(options.where),
        bars=bars,
        percentile=90.0 if options.percentile is None else options.percentile,
        plane=plane or (PLANE if options.quadrants else ()),
        bins=2 if options.quadrants else options.bins or 4,
        equal=options.quadrants,
    )


def hard(options: argparse.Namespace) -> bool:
    """Whether only functions at one end of some metrics are wanted."""
    return bool(options.hard or options.hard_by)


def groups_of(options: argparse.Namespace) -> GroupRules:
    """Return the rules of groups that the options make; raises `UserError`."""
    require_not_empty(options, "size")
    sizes, wanted = read_sizes(options.size) if options.size else ((), ())
    return GroupRules(sizes, wanted, options.chain, options.distance, options.tell_count)


def tasks_wanted(count: int | None, choice: Choice, groups: GroupRules) -> int:
    """Return how many tasks of each source are wanted; raises `UserError` if `count` does not go with the choice."""
    if groups.wanted:
        if count not in (None, sum(groups.wanted)):
            raise UserError(f"--size asks for {sum(groups.wanted)} tasks, and --count for {count}.")
        return sum(groups.wanted)
    wanted = _DEFAULT_COUNT if count is None else count
    cells = choice.bins**2 * max(1, len(groups.sizes))
    if choice.equal and wanted % cells:
        raise UserError(f"{wanted} tasks can't be divided among {cells} cells.", hint=f"Give a multiple of {cells}.")
    return wanted


def _listed(path: Path) -> dict[str, int]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{path} is larger than {_MOST_BYTES >> 20} MiB.")
        return read_functions(path.read_text("utf-8-sig"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} can't be read: {cause(error)}.",
            hint="--functions takes a list of functions.",
        ) from error
