"""The options by which `task generate` chooses functions."""

from __future__ import annotations

from gistpoint.core.generation.choice import PLANE
from gistpoint.tui.commands.options import OptionTable, option

CONDITION_HELP = (
    "such as 'code_lines >= 12 and harmonic_out > p90', or a part of the name; if there are several, a"
    " function must meet all of them"
)
CHOICE = OptionTable(
    {
        "where": option(CONDITION_HELP, metavar="CONDITION"),
        "functions": option("only the functions listed, one path::qualname per line", metavar="FILE"),
        "hard": option("only functions with high values of cyclomatic and degree"),
        "hard_by": option(
            "only functions with high (or low) values of these metrics, such as cyclomatic,degree:low",
            metavar="METRICS",
        ),
        "percentile": option("percentile for --hard among the candidates (default: 90)", metavar="P"),
        "spread": option(
            f"spread tasks evenly over the quantiles of two metrics, such as {','.join(PLANE)}",
            metavar="METRICS",
        ),
        "bins": option("number of quantiles of each of the two metrics (default: 4)", metavar="N"),
        "quadrants": option("split two metrics at their medians, with as many tasks from each quadrant"),
    },
    title="choosing functions",
    description="Metrics are the columns of `gistpoint code`; without options, any function may be chosen.",
)
GROUPS = OptionTable(
    {
        "size": option(
            "sizes, such as 3, 1..8 or 1,2,4; with a number of tasks for each, 1:10,2:10,4:5", metavar="SIZES"
        ),
        "chain": option("each function is near the previous one; otherwise, any two are near each other"),
        "distance": option(
            "the maximum number of calls between near functions (default: {default})", metavar="N"
        ),
        "tell_count": option("the brief states how many functions are corrupted"),
    },
    title="groups of --mode multi",
)
