"""The candidates of a campaign in an order that depends only on the seed, and how often each is tried."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TypeVar

from gistpoint import __version__
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.code.index import Definition
from gistpoint.core.code.names import LOCALS, split_number
from gistpoint.core.errors import UserError
from gistpoint.core.generation.choice import Choice, GroupRules
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.removal import MIN_LINES, definitions
from gistpoint.core.generation.settings import CampaignSettings, FaultSource
from gistpoint.core.metrics.bars import MetricBar, at_bars
from gistpoint.core.metrics.conditions import filter_rows
from gistpoint.core.metrics.table import percentile
from gistpoint.core.text import plural

LOCATED = 5
"""The number of top-ranked functions of a spectrum-based localisation that a solver would look at first."""
SUBTLE = 0.8
"""The minimum subtlety of a corruption that is accepted before all candidates have been decided.

A corruption of the function that localisation ranks first is never more subtle (decision 33).
"""


@dataclass(frozen=True, slots=True)
class Effort:
    """The number of tries for a function."""

    singles: int
    give_up: int
    """The number of tries without a good corruption after which to stop."""


WITH_HIDING_PLACES, USUAL, EXPENSIVE = Effort(32, 16), Effort(16, 9), Effort(4, 3)
"""The effort for a function with enough hiding places, for any other, and for one that runs at imports."""


def effort_for(library: SourceLibrary, name: str, least: int) -> Effort:
    """Return the effort for a function of whose tests at least `least` must fail.

    For a function that runs while modules are imported, each try is a run of the tests in a separate process.
    """
    if name in library.test_map.at_import:
        return EXPENSIVE
    return WITH_HIDING_PLACES if hiding_places(library, name, least) >= LOCATED else USUAL


def hiding_places(library: SourceLibrary, name: str, least: int) -> int:
    """Return how many other functions are entered by `least` or more tests that all enter this one too.

    If exactly the tests of such a function fail, a localisation by Ochiai ranks that function above this one.
    """
    own = library.entering(name)
    return sum(
        len(tests) >= least and tests <= own for other, tests in library.entered.items() if other != name
    )


LEAST_CODE_LINES = 6
"""Functions with fewer code lines come last, because a fault in them is obvious."""
LEAST, MOST = 2, 4
"""The bounds of a group's size if no size is requested."""
_TRIED_PARTNERS = 8
_TRIED_A_PLACE = 4
"""The number of partners tried for each function of a group whose size is requested."""


@dataclass(frozen=True, slots=True)
class CorruptionCandidate:
    """A function to corrupt; for a group, its first function, with possible partners in trial order."""

    name: str
    key: str
    """The hash of everything that the verdict depends on."""
    partners: tuple[str, ...] = ()
    size: int = 1
    """The number of functions wanted."""
    stratum: str = ""
    """The part of a stratified set that the candidate belongs to."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Strata:
    """The strata of a campaign's candidates, in a fixed order; none if the set is not stratified.

    Each gets an equal share of the tasks; if they can't be divided evenly, the first strata get one more. A
    stratum without candidates leaves the rest of its share to the others (decision 91).
    """

    names: tuple[str, ...] = ()
    fixed: Mapping[str, int] = field(default_factory=dict)
    """The number of tasks wanted from each stratum; if set, no stratum makes up for another."""
    equal: bool = False
    """Whether all strata have equal shares, and a stratum without candidates leaves none of its share."""

    def share(
        self, stratum: str, count: int, kept: Mapping[str, int], exhausted: Collection[str] = ()
    ) -> int:
        """Return how many of `count` tasks may be of this stratum.

        `kept` contains the number of tasks so far by stratum, `exhausted` the strata without candidates.
        """
        if not self.names:
            return count
        if self.fixed:
            return self.fixed.get(stratum, 0)
        if self.equal:
            return count // len(self.names)
        if stratum in exhausted or stratum not in self.names:
            return kept.get(stratum, 0)
        left = [name for name in self.names if name not in exhausted]
        base, over = divmod(max(0, count - sum(kept.get(name, 0) for name in exhausted)), len(left))
        return base + (left.index(stratum) < over)

    def has_room(
        self, stratum: str, count: int, kept: Mapping[str, int], exhausted: Collection[str] = ()
    ) -> bool:
        """Return whether another task of this stratum may be kept, so its candidates are worth trying."""
        return kept.get(stratum, 0) < self.share(stratum, count, kept, exhausted)


def round_robin(groups: Iterable[Sequence[T]]) -> list[T]:
    """Return the items of all groups: the first of each, then the second of each, and so on."""
    rows = zip_longest(*([(item,) for item in group] for group in groups), fillvalue=())
    return [item for row in rows for cell in row for item in cell]


@dataclass(frozen=True, slots=True)
class CandidatePlan:
    """The candidates of a campaign in order, and the numbers of functions left out, by reason."""

    candidates: tuple[CorruptionCandidate, ...]
    functions: int
    too_short: int
    seen_by_too_few: int
    not_hard: int
    not_chosen: int = 0
    without_submission: int = 0
    """The number of functions without a failed submission, for a set from failed submissions."""
    strata: Strata = field(default_factory=Strata)

    @property
    def left_out(self) -> dict[str, int]:
        """The number of functions that are not candidates, by reason."""
        reasons = {
            "too_short": self.too_short,
            "seen_by_too_few_tests": self.seen_by_too_few,
            "not_in_the_hard_set": self.not_hard,
        }
        rare = {"not_chosen": self.not_chosen, "without_submission": self.without_submission}
        return reasons | {reason: count for reason, count in rare.items() if count}

    def __str__(self) -> str:
        """Return the number of candidates, and the reasons why there are not more."""
        reasons = [f"{count} {reason.replace('_', ' ')}" for reason, count in self.left_out.items() if count]
        total = f"{len(self.candidates)} candidates of {self.functions} functions"
        return "; ".join(filter(None, (total, ", ".join(reasons))))

    def filled(self, kept: Iterable[str] = ()) -> list[tuple[str, int, int]]:
        """Return each stratum's name, its number of candidates, and how many of their keys are in `kept`."""
        keys = frozenset(kept)
        offered = Counter(candidate.stratum for candidate in self.candidates)
        taken = Counter(candidate.stratum for candidate in self.candidates if candidate.key in keys)
        return [(name, offered[name], taken[name]) for name in sorted(self.strata.names)]


def plan(
    library: SourceLibrary, settings: CampaignSettings, submissions: Mapping[str, str] | None = None
) -> CandidatePlan:
    """Return the candidates: the chosen functions that are long enough and seen by enough tests.

    `submissions` maps each function with failed submissions to their hash, on which its verdict depends; if
    given, other functions are not candidates.

    Except in remove mode, functions with few code lines come after the others. Functions that run while
    modules are imported come last: each corruption of them costs a run of every test in a separate process,
    and their faults show at once. In a stratified set, both rules apply within each stratum. Raises
    `UserError` if a named function is unknown.
    """
    choice = settings.choice
    found = _definitions(library, settings)
    require_defined(choice, {str(definition.ref) for definition in found})
    named = _definitions_named(found, choice.functions or None)
    listed = _definitions_named(named, submissions)
    is_named = bool(choice.functions)
    known = [str(item.ref) for item in listed if _is_long_enough(item, named=is_named)]
    needed = settings.part_band[0] if settings.mode.in_groups else settings.min_failing
    seen = sorted(name for name in known if len(library.seeing((name,))) >= needed)
    met = meeting(library, seen, choice)
    hard = beyond(library, met, settings.bars, choice.percentile)
    cell = cells(library, hard, choice)
    names = _ordered(library, settings, [name for name in hard if name in cell])
    strata = _strata(library, settings, {name: cell[name] for name in names}, seen, submissions or {})
    order = _order_of_strata(settings, list(strata))
    not_listed, not_matching = len(found) - len(named), len(seen) - len(met)
    in_no_cell = len(hard) - len(names)
    return CandidatePlan(
        tuple(round_robin(strata[name] for name in order)),
        len(found),
        too_short=len(listed) - len(known),
        seen_by_too_few=len(known) - len(seen),
        not_hard=len(met) - len(hard),
        not_chosen=not_listed + not_matching + in_no_cell,
        without_submission=len(named) - len(listed),
        strata=_strata_of(settings, order),
    )


def _definitions_named(found: list[Definition], names: Collection[str] | None) -> list[Definition]:
    """Return the definitions with any of the names, or all definitions if there are no names."""
    return found if names is None else [item for item in found if str(item.ref) in names]


def _definitions(library: SourceLibrary, settings: CampaignSettings) -> list[Definition]:
    """Return the functions of a library, and its classes if bodies are removed from them too."""
    classes = settings.mode.removes and (settings.classes or bool(settings.choice.functions))
    return list(definitions(library.intake.repository.tree, library.test_files, classes=classes))


def _ordered(library: SourceLibrary, settings: CampaignSettings, names: Sequence[str]) -> list[str]:
    """Return the functions in the order in which they are tried; the seed alone decides it (decision 32)."""
    shuffled = _shuffled(library, names, random.Random(settings.seed))
    return shuffled if settings.mode.removes else _long_first(library, shuffled)


def _order_of_strata(settings: CampaignSettings, names: list[str]) -> list[str]:
    """Return the strata in the order in which they take turns."""
    if settings.choice.plane:
        random.Random(f"strata {settings.seed}").shuffle(names)
    return names


def _strata_of(settings: CampaignSettings, order: Sequence[str]) -> Strata:
    """Return the strata of a set; none if its tasks are not spread and its groups have no sizes."""
    choice, groups = settings.choice, settings.groups
    if not choice.plane and not groups.sizes:
        return Strata()
    sizes = {_size_words(size): count for size, count in zip(groups.sizes, groups.wanted, strict=False)}
    return Strata(tuple(order), sizes, choice.equal)


def _strata(
    library: SourceLibrary,
    settings: CampaignSettings,
    cell: Mapping[str, str],
    pool: Sequence[str],
    submissions: Mapping[str, str],
) -> dict[str, list[CorruptionCandidate]]:
    """Return the candidates by stratum: one per function, or one per requested size that it can reach."""
    strata: dict[str, list[CorruptionCandidate]] = {}
    for size in settings.groups.sizes or (0,):
        for name in cell:
            if settings.mode.in_groups and size != 1:
                candidate = _group(library, settings, name, pool, size)
            else:
                version = [submissions[name]] if name in submissions else []
                candidate = CorruptionCandidate(name, _key(library, settings, name, *version))
            stratum = ", ".join(filter(None, (cell[name], _size_words(size))))
            offered = strata.setdefault(stratum, [])
            if len(candidate.partners) >= size - 1:
                offered.append(replace(candidate, stratum=stratum))
    return strata


def _size_words(size: int) -> str:
    return plural(size, "function") if size else ""


def _shuffled(library: SourceLibrary, names: Sequence[str], chance: random.Random) -> list[str]:
    mixed = list(names)
    chance.shuffle(mixed)
    return sorted(mixed, key=lambda name: name in library.test_map.at_import)


def _long_first(library: SourceLibrary, names: Sequence[str]) -> list[str]:
    """Return the functions, with those that run during imports last, and short ones last in either part."""
    rows = {name: row.complexity for name in names if (row := library.by_name.get(name)) is not None}
    short = {
        name for name, lines in rows.items() if lines is not None and lines.code_lines < LEAST_CODE_LINES
    }
    return sorted(names, key=lambda name: (name in library.test_map.at_import, name in short))


def _is_long_enough(definition: Definition, *, named: bool) -> bool:
    """Return whether a definition has enough code to corrupt.

    A definition that the user named may have any length, but an overload is never long enough.
    """
    long_enough = named or definition.end_line - definition.def_line >= MIN_LINES
    return long_enough and not any("overload" in text for text in definition.decorators)


def _key(library: SourceLibrary, settings: CampaignSettings, *names: str | int) -> str:
    return sha256_of_json([library.key, settings.deciding(), __version__, list(names)])


def _group(
    library: SourceLibrary, settings: CampaignSettings, name: str, pool: Sequence[str], asked: int
) -> CorruptionCandidate:
    """Return a group that begins with `name`.

    The seed decides the order of its partners, and the size if none is requested.
    """
    chance = random.Random(f"{settings.seed} {name}")
    size, rules = chance.randint(LEAST, MOST), settings.groups
    size, most = (asked, _TRIED_A_PLACE * asked) if asked else (size, _TRIED_PARTNERS)
    if settings.source is FaultSource.HISTORY:
        most = len(pool)  # only a trial shows which of them the same commit changed
    near = library.reach.steps(name, rules.distance * (size - 1) if rules.chain else rules.distance)
    partners = sorted(other for other in pool if other in near and not nested(name, other))
    chosen = tuple(_long_first(library, _shuffled(library, partners, chance))[:most])
    return CorruptionCandidate(name, _key(library, settings, name, size, *chosen), chosen, size)


def nested(one: str, other: str) -> bool:
    """Return whether two functions, as `path::qualname`, are the same, or one is inside the other."""
    return one == other or _may_enclose(one, other) or _may_enclose(other, one)


def _may_enclose(outer: str, inner: str) -> bool:
    """Return whether a function may be inside another one, going by its qualified name."""
    path, separator, qualname = outer.rpartition("::")
    plain, _ = split_number(qualname)
    return inner.startswith(f"{path}{separator}{plain}.{LOCALS}.")


def in_reach(library: SourceLibrary, rules: GroupRules, name: str, others: Sequence[str]) -> bool:
    """Return whether `name` may join `others`: not nested with any of them, and near enough to them.

    In a chain, it must be near only to the last one.
    """
    near = library.reach.steps(name, rules.distance)
    return all(other in near for other in (others[-1:] if rules.chain else others)) and not any(
        nested(name, other) for other in others
    )


_MOST_NAMED = 10


def require_defined(choice: Choice, defined: Collection[str]) -> None:
    """Raise `UserError`, listing the lines, if the library does not define some of the named functions."""
    unknown = [(line, name) for name, line in choice.functions.items() if name not in defined]
    if unknown:
        listed = ", ".join(f"line {line}: {name[:200]}" for line, name in unknown[:_MOST_NAMED])
        more = f", and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        raise UserError(
            f"The library does not define {len(unknown)} of the functions in the list: {listed}{more}.",
            hint="`gistpoint code SOURCE --names` lists the functions.",
        )


def meeting(library: SourceLibrary, names: Sequence[str], choice: Choice) -> list[str]:
    """Return the functions that meet every condition; percentiles are those of all library functions.

    Without conditions, all `names` are returned, including those that are not in the library.
    """
    if not choice.where:
        return list(names)
    rows = [row for name in names if (row := library.by_name.get(name)) is not None]
    return [row.function for row in filter_rows(rows, choice.where, library.rows)]


def beyond(
    library: SourceLibrary, names: Sequence[str], bars: Sequence[MetricBar], percent: float
) -> list[str]:
    """Return the functions at or beyond every bar; the bars are percentiles among `names`.

    Without bars, all `names` are returned, including those that are not in the library.
    """
    if not bars:
        return list(names)
    rows = [row for name in names if (row := library.by_name.get(name)) is not None]
    return [row.function for row in at_bars(rows, bars, percent)]


def cells(library: SourceLibrary, names: Sequence[str], choice: Choice) -> dict[str, str]:
    """Return the cell of each function on the plane of two metrics, by quantiles of these functions.

    The cell is an empty string if tasks are not spread. A function with an unknown metric is left out.
    """
    if not choice.plane:
        return dict.fromkeys(names, "")
    points = _points(library, names, choice.plane)
    shares = [100 * n / choice.bins for n in range(1, choice.bins)]
    edges = [[percentile(values, share) for share in shares] for values in zip(*points.values(), strict=True)]
    return {name: _cell(point, edges, choice) for name, point in points.items()}


def _points(library: SourceLibrary, names: Sequence[str], metrics: Sequence[str]) -> dict[str, list[float]]:
    """Return the values of metrics by function, leaving out functions with an unknown value."""
    found: dict[str, list[float]] = {}
    for name in names:
        row = library.by_name.get(name)
        values = [] if row is None else [row.cell(metric) for metric in metrics]
        point = [float(value) for value in values if isinstance(value, int | float)]
        if len(point) == len(metrics):
            found[name] = point
    return found


def _cell(point: Sequence[float], edges: Sequence[Sequence[float]], choice: Choice) -> str:
    """Return the name of a point's cell, such as `cyclomatic high, degree low`."""
    parts = []
    for metric, value, inner in zip(choice.plane, point, edges, strict=True):
        parts.append(f"{metric} {_quantile(sum(value > edge for edge in inner), choice.bins)}")
    return ", ".join(parts)


def _quantile(number: int, bins: int) -> str:
    return ("low", "high")[number] if bins == 2 else f"{number + 1}/{bins}"
