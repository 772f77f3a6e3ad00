"""Candidates of a campaign in an order that depends only on the seed, and the number of corruptions tried of each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from gistpoint import __version__
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.code.index import Definition
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.removal import MIN_LINES, definitions
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.strata import Strata
from gistpoint.core.metrics.table import hard_set

LOCATED = 5
"""Places in a spectrum-based localisation that a solver would look at first."""
SUBTLE = 0.8
"""Subtlety below which a corruption waits: the first place in a localisation can't have more."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The numbers of tries for a function."""

    singles: int
    give_up: int
    """Tries without a good corruption after which to stop: corruptions of this function are easy to find."""


HIDEABLE, USUAL, DEAR = Effort(32, 16), Effort(16, 9), Effort(4, 3)


def effort_for(library: SourceLibrary, name: str, least: int) -> Effort:
    """Return the effort for a function of which at least `least` tests have to fail.

    Each try of a function that runs while modules are imported is a run of the tests in a separate process.
    """
    if name in library.test_map.at_import:
        return DEAR
    return HIDEABLE if hiding_places(library, name, least) >= LOCATED else USUAL


def hiding_places(library: SourceLibrary, name: str, least: int) -> int:
    """Return how many other functions are entered by `least` or more tests, all of which also enter this one.

    If exactly the tests of one of those fail, a localisation by Ochiai puts it first, and this one after it.
    """
    own = library.entering(name)
    return sum(len(tests) >= least and tests <= own for other, tests in library.entered.items() if other != name)


LEAST_CODE_LINES = 6
"""Functions with fewer code lines are corrupted only when the others are used up: a fault in them is seen at once."""
REACH = 4
"""Most calls, in either direction, between any two functions of a group."""
LEAST, MOST = 2, 4
"""Least and most functions of a group."""
_TRIED_PARTNERS = 8


@dataclass(frozen=True, slots=True)
class CorruptionCandidate:
    """A function to corrupt; in a group, the first one, with those that may join it in the order to try them."""

    name: str
    key: str
    """Hash of everything that the verdict depends on."""
    partners: tuple[str, ...] = ()
    size: int = 1
    """How many functions are wanted."""
    stratum: str = ""
    """The part of a stratified set that it would count in."""


@dataclass(frozen=True, slots=True)
class CandidatePlan:
    """The candidates of a campaign in their order, and the number of functions left out for each reason."""

    candidates: tuple[CorruptionCandidate, ...]
    functions: int
    too_short: int
    seen_by_too_few: int
    not_hard: int
    strata: Strata = field(default_factory=Strata)

    @property
    def left_out(self) -> dict[str, int]:
        """Functions that are not candidates, by reason."""
        return {
            "too_short": self.too_short,
            "seen_by_too_few_tests": self.seen_by_too_few,
            "not_in_the_hard_set": self.not_hard,
        }


def plan(library: SourceLibrary, settings: CampaignSettings) -> CandidatePlan:
    """Return the candidates: functions of some length, seen by enough tests, with `hard` the hard set of these.

    Except for removals, functions of few code lines come after the others. Functions that run while modules are
    imported come last: each corruption of them costs a run of every test in a separate process, and its faults show at
    once.
    """
    tree = library.intake.repository.tree
    known = [str(d.ref) for d in definitions(tree, library.test_files) if _substantial(d)]
    total = sum(1 for _ in definitions(tree, library.test_files))
    needed = settings.part_band[0] if settings.mode.in_groups else settings.min_failing
    seen = sorted(name for name in known if len(library.seeing((name,))) >= needed)
    names = seen
    if settings.hard:
        rows = [row for name in seen if (row := library.by_name.get(name)) is not None]
        names = [row.function for row in hard_set(rows)]
    names = _shuffled(library, names, random.Random(settings.seed))
    if settings.mode is not CampaignMode.REMOVE:
        names = _roomy_first(library, names)
    if settings.mode.in_groups:
        candidates = tuple(_group(library, settings, name, seen) for name in names)
    else:
        candidates = tuple(CorruptionCandidate(name, _key(library, settings, name)) for name in names)
    return CandidatePlan(candidates, total, total - len(known), len(known) - len(seen), len(seen) - len(names))


def _shuffled(library: SourceLibrary, names: Sequence[str], chance: random.Random) -> list[str]:
    mixed = list(names)
    chance.shuffle(mixed)
    return sorted(mixed, key=lambda name: name in library.test_map.at_import)


def _roomy_first(library: SourceLibrary, names: Sequence[str]) -> list[str]:
    """Return functions in their order, but those of few code lines after the others of their kind."""
    rows = {name: row.complexity for name in names if (row := library.by_name.get(name)) is not None}
    short = {name for name, lines in rows.items() if lines is not None and lines.code_lines < LEAST_CODE_LINES}
    return sorted(names, key=lambda name: (name in library.test_map.at_import, name in short))


def _substantial(definition: Definition) -> bool:
    long_enough = definition.end_line - definition.def_line >= MIN_LINES
    return long_enough and not any("overload" in text for text in definition.decorators)


def _key(library: SourceLibrary, settings: CampaignSettings, *names: str | int) -> str:
    decided_by = settings.to_json()
    decided_by.pop("hard")
    return sha256_of_json([library.key, decided_by, __version__, list(names)])


def _group(library: SourceLibrary, settings: CampaignSettings, name: str, pool: Sequence[str]) -> CorruptionCandidate:
    """Return a group that begins with `name`: its size and the order of its partners depend on seed and name alone."""
    chance = random.Random(f"{settings.seed} {name}")
    size = chance.randint(LEAST, MOST)
    near = library.reach.steps(name, REACH)
    partners = sorted(other for other in pool if other in near and not nested(name, other))
    chosen = tuple(_roomy_first(library, _shuffled(library, partners, chance))[:_TRIED_PARTNERS])
    return CorruptionCandidate(name, _key(library, settings, name, size, *chosen), chosen, size)


def nested(one: str, other: str) -> bool:
    """Whether two functions, `path::qualname`, are the same or one is inside the other."""
    return one == other or other.startswith(f"{one}.<locals>.") or one.startswith(f"{other}.<locals>.")


def in_reach(library: SourceLibrary, name: str, others: Sequence[str]) -> bool:
    """Whether `name` may join `others`: near enough to each, and nested in none of them."""
    near = library.reach.steps(name, REACH)
    return all(other in near and not nested(name, other) for other in others)
