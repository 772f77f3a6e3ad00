"""The options by which `task generate` chooses functions on purpose."""

from __future__ import annotations

from gistpoint.core.generation.choice import PLANE
from gistpoint.tui.commands.options import Words, option

CONDITION_HELP = "such as 'code_lines >= 12 and harmonic_out > p90', or a part of the name; several must all hold"
CHOICE = Words(
    {
        "where": option("--where", metavar="CONDITION", help=CONDITION_HELP),
        "functions": option("--functions", metavar="FILE", help="only those listed, one path::qualname a line"),
        "hard": option("--hard", help="only functions high in cyclomatic and in degree"),
        "hard_by": option(
            "--hard-by", metavar="METRICS", help="high, or low, in these instead, such as cyclomatic,degree:low"
        ),
        "percentile": option("--percentile", metavar="P", help="of --hard among the candidates (default: 90)"),
        "spread": option(
            "--spread", metavar="METRICS", help=f"tasks evenly over the quantiles of two, such as {','.join(PLANE)}"
        ),
        "bins": option("--bins", metavar="N", help="quantiles of each of the two (default: 4)"),
        "quadrants": option("--quadrants", help="two quantiles of each (or of code_lines,harmonic_out), equal numbers"),
    },
    title="choosing functions",
    description="Metrics are the columns of `gistpoint code`; without options every function may come.",
)
GROUPS = Words(
    {
        "size": option("--size", metavar="SIZES", help="3, 1..8, 1,2,4, or with tasks of each 1:10,2:10,4:5"),
        "chain": option("--chain", help="each near to the one before it, not every two"),
        "distance": option("--distance", metavar="N", help="most calls between those near (default: {default})"),
        "tell_count": option("--tell-count", help="the brief tells how many functions are corrupted"),
    },
    title="groups of --mode multi",
)
