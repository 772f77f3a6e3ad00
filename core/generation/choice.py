"""Reads and checks the settings for a campaign's functions and groups, and for the spread of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.errors import UserError, cause
from gistpoint.core.metrics.bars import HARD, MetricBar, MetricEnd
from gistpoint.core.metrics.conditions import read_condition
from gistpoint.core.metrics.table import CENTRALITY, COMPLEXITY, ColumnError
from gistpoint.core.requests import LOCAL, Count, Request

METRICS = (*COMPLEXITY, *CENTRALITY)
PLANE = ("code_lines", "harmonic_out")
"""The metrics of figures 4 and 5 of the Breakpoint paper."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of candidates among functions that are long enough and seen by enough tests.

    `functions`, `where` and `bars` are applied in this order; tasks are then spread over the rest.
    """

    functions: Mapping[str, int] = field(default_factory=dict)
    """A list of `path::qualname`, each with its line in the list's file; empty for all functions."""
    where: tuple[str, ...] = ()
    """Conditions that functions must all meet.

    Percentiles are those of all library functions, the same as in `gistpoint code` (decision 91).
    """
    bars: tuple[MetricBar, ...] = ()
    """Metrics for which a function must be at one end of the range; percentiles are over candidates."""
    percentile: float = 90.0
    """The percentile at high ends; at low ends, 100 minus this value applies."""
    plane: tuple[str, ...] = ()
    """Two metrics over whose quantiles the tasks are spread; empty if they are not spread."""
    bins: int = 4
    """The number of quantiles of each of the two metrics."""
    equal: bool = False
    """Whether each cell has the same number of tasks, and no more if another can't be filled."""

    def __post_init__(self) -> None:
        for condition in self.where:
            read_condition(condition)
        self._require_metrics()
        if not 0 < self.percentile < 100:
            raise UserError(f"--percentile must be between 0 and 100, but is {self.percentile:g}.")
        if self.plane and (len(self.plane) != 2 or len(set(self.plane)) != 2):
            raise UserError(
                "Tasks can only be spread over two different metrics.", hint=f"Such as {','.join(PLANE)}."
            )
        if not 2 <= self.bins <= 10:
            raise UserError(f"--bins must be 2 to 10, but is {self.bins}.")

    def _require_metrics(self) -> None:
        """Raise `UserError` if a name is not a metric, or if a metric has two bars."""
        barred = [bar.metric for bar in self.bars]
        for metric in (*barred, *self.plane):
            if metric not in METRICS:
                raise ColumnError(f"There is no metric {metric!r}.", hint=f"Metrics: {', '.join(METRICS)}.")
        twice = [metric for metric in barred if barred.count(metric) > 1]
        if twice:
            raise UserError(
                f"--hard-by names {twice[0]} twice.",
                hint="Name each metric once, for its high or its low end.",
            )

    def to_json(self) -> dict[str, Any]:
        """Return the choice as a JSON object, without unused parts."""
        values: dict[str, Any] = {}
        if self.functions:
            values["functions"] = sorted(self.functions)
        if self.where:
            values["where"] = list(self.where)
        if self.bars:
            values["hard_by"] = [str(bar) for bar in self.bars]
            values["percentile"] = self.percentile
        if self.plane:
            values |= {"plane": list(self.plane), "bins": self.bins, "equal": self.equal}
        return values


def read_bars(text: str) -> tuple[MetricBar, ...]:
    """Return the bars in a string such as `cyclomatic,degree:low`; the end is `high` if none is given.

    Raises `UserError` for an end other than `high` and `low`.
    """
    bars = []
    for part in text.split(","):
        metric, colon, end = part.strip().partition(":")
        if colon and end not in tuple(MetricEnd):
            raise UserError(
                f"{part.strip()!r} is not a metric followed by :low or :high.",
                hint="For example degree:low; a metric alone means its high end.",
            )
        bars.append(MetricBar(metric, MetricEnd(end) if colon else MetricEnd.HIGH))
    return tuple(bars)


def read_functions(text: str, file: str) -> dict[str, int]:
    """Return the line number of each function in a list that has one `path::qualname` per line.

    Empty lines and lines that begin with `#` are ignored. Raises `UserError` for a line of another form, and
    for a list without functions.
    """
    named: dict[str, int] = {}
    for number, line in enumerate(physical_lines(text), 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        if "::" not in name:
            raise UserError(
                f"{file}, line {number}: {name[:200]!r} is not of the form path::qualname.", hint=_LISTED
            )
        named.setdefault(name, number)
    if not named:
        raise UserError(f"{file} does not name a function.", hint=_LISTED)
    return named


_LISTED = "`gistpoint code SOURCE --names` prints such a list."

REACH = 4
"""The maximum number of calls, in either direction, between two functions that count as near each other."""
SMALLEST, LARGEST = 1, 8
"""The bounds of a requested group size."""


@dataclass(frozen=True, slots=True)
class GroupRules:
    """The rules by which functions are corrupted together, and whether the brief states their number."""

    sizes: tuple[int, ...] = ()
    """Requested sizes, each with an equal share; if empty, the seed chooses a maximum size from 2 to 4."""
    wanted: tuple[int, ...] = ()
    """The number of tasks of each size; empty for equal shares."""
    chain: bool = False
    """Whether each function must only be near the one before it, not near all others."""
    distance: int = REACH
    """The maximum number of calls, in either direction, between two functions that count as near."""
    tell_count: bool = False
    """Whether the brief states the number of corrupted functions."""

    def __post_init__(self) -> None:
        if any(not SMALLEST <= size <= LARGEST for size in self.sizes):
            raise UserError(f"Groups have {SMALLEST} to {LARGEST} functions.", hint=_SIZES)
        if len(set(self.sizes)) != len(self.sizes):
            raise UserError("A size is given twice.", hint=_SIZES)
        if self.distance < 1:
            raise UserError(f"--distance must be 1 or more, but is {self.distance}.")

    def to_json(self) -> dict[str, Any]:
        """Return the values that are not defaults, as a JSON object."""
        default = GroupRules()
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key in self.__slots__
            if (value := getattr(self, key)) != getattr(default, key)
        }


_SIZES = (
    "For example: --size 3, --size 1..8 or --size 1,2,4; or, with a number of tasks for each size, --size"
    " 1:10,2:10,4:5."
)


def read_sizes(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes in a string, and the number of tasks of each size; the latter is empty if not given.

    Raises `UserError` for a string that is not in one of the forms of `--size`, for a range outside of
    `SMALLEST` to `LARGEST`, and for numbers of tasks that are below 1 or not given for every size.
    """
    try:
        if ".." in text:
            first, last = (int(end) for end in text.split(".."))
            if not SMALLEST <= first <= last <= LARGEST:
                raise UserError(f"{text!r} is not a range within {SMALLEST}..{LARGEST}.", hint=_SIZES)
            return tuple(range(first, last + 1)), ()
        pairs = [part.partition(":") for part in text.split(",")]
        sizes = tuple(int(size) for size, _, _ in pairs)
        wanted = tuple(int(count) for _, colon, count in pairs if colon)
    except ValueError as error:
        raise UserError(f"{text!r} does not specify the sizes of groups.", hint=_SIZES) from error
    if wanted and (len(wanted) != len(sizes) or min(wanted) < 1):
        raise UserError(
            f"{text!r} must specify a number of tasks (1 or more) for every size, or for none.", hint=_SIZES
        )
    return sizes, wanted


# User requests


_DEFAULT_COUNT = 20
_MOST_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseFunctions(Request):
    """A request to choose the functions of a library from which a set is made."""

    where: tuple[str, ...] = ()
    functions: Annotated[str | None, LOCAL] = None
    """The file with a list of the functions."""
    hard: bool = False
    hard_by: str | None = None
    percentile: float | None = None
    spread: str | None = None
    bins: Count | None = None
    quadrants: bool = False

    @property
    def only_hard(self) -> bool:
        """Whether only functions at one end of some metrics are wanted."""
        return bool(self.hard or self.hard_by)

    def choice(self) -> Choice:
        """Return the choice, after reading the list of functions.

        Raises `UserError` for invalid or contradictory options, and for a list that can't be read.
        """
        self._require_consistent()
        return Choice(
            functions=_listed(Path(self.functions)) if self.functions else {},
            where=self.where,
            bars=self._bars(),
            percentile=90.0 if self.percentile is None else self.percentile,
            plane=self._plane(),
            bins=2 if self.quadrants else self.bins or 4,
            equal=self.quadrants,
        )

    def _require_consistent(self) -> None:
        """Raise `UserError` for an empty option, and for options that need or exclude each other."""
        for name in ("functions", "hard_by", "spread"):
            _require_not_empty(name, getattr(self, name))
        if self.bins is not None and self.quadrants:
            raise UserError(
                "--quadrants uses two quantiles of each metric.", hint="Leave --bins or --quadrants out."
            )
        if self.bins is not None and not self.spread:
            raise UserError(
                "--bins needs --spread, whose metrics it divides into quantiles.",
                hint=f"Add --spread {','.join(PLANE)}.",
            )
        if self.percentile is not None and not self.only_hard:
            raise UserError("--percentile needs --hard or --hard-by.", hint="Add one of them.")

    def _bars(self) -> tuple[MetricBar, ...]:
        if self.hard_by:
            return read_bars(self.hard_by)
        return HARD if self.percentile is not None else ()

    def _plane(self) -> tuple[str, ...]:
        if self.spread:
            return tuple(part.strip() for part in self.spread.split(","))
        return PLANE if self.quadrants else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFunctions(Request):
    """A request to corrupt functions together, with the rules for a group."""

    size: str | None = None
    chain: bool = False
    distance: Count = REACH
    tell_count: bool = False

    def rules(self) -> GroupRules:
        """Return the rules for groups. Raises `UserError` if the sizes are invalid."""
        _require_not_empty("size", self.size)
        sizes, wanted = read_sizes(self.size) if self.size else ((), ())
        return GroupRules(sizes, wanted, self.chain, self.distance, self.tell_count)


def tasks_wanted(count: int | None, choice: Choice, groups: GroupRules) -> int:
    """Return the number of tasks wanted from each source.

    Raises `UserError` if `count` does not fit the choice or the groups.
    """
    if groups.wanted:
        if count not in (None, sum(groups.wanted)):
            raise UserError(f"--size requests {sum(groups.wanted)} tasks, but --count requests {count}.")
        return sum(groups.wanted)
    wanted = _DEFAULT_COUNT if count is None else count
    cells = choice.bins**2 * max(1, len(groups.sizes))
    if choice.equal and wanted % cells:
        raise UserError(
            f"{wanted} tasks can't be divided among {cells} cells.", hint=f"Give a multiple of {cells}."
        )
    return wanted


def _require_not_empty(name: str, value: str | None) -> None:
    """Raise `UserError` if the option `name` has an empty value, for example from an unset shell variable."""
    if value == "":
        raise UserError(f"--{name.replace('_', '-')} is empty.", hint="Give it a value, or leave it out.")


def _listed(path: Path) -> dict[str, int]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{path} is larger than {_MOST_BYTES >> 20} MiB.")
        return read_functions(path.read_text("utf-8-sig"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} can't be read: {cause(error)}.", hint="--functions requires a list of functions."
        ) from error
