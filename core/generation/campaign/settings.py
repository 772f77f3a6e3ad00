"""What a campaign is asked to make, and of which sources."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from gistpoint.core.corruption.evidence import FEW_FAILING, band
from gistpoint.core.corruption.model.loop import LoopSettings
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.generation.proof import DEFAULT_MIN_FAILING
from gistpoint.core.tasks.fields import Fields

RECIPE = 4
"""Version of the rules by which a candidate is decided: verdicts of another one are not reused."""


class CampaignMode(StrEnum):
    """How functions are corrupted; `multi` makes discovery tasks with several targets."""

    REMOVE = "remove"
    DISCOVERY = "discovery"
    MULTI = "multi"


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the tasks of a campaign, besides the library and the code of gistpoint."""

    mode: CampaignMode
    seed: int = 0
    min_failing: int = DEFAULT_MIN_FAILING
    hard: bool = False
    model: str = ""
    """The model that corrupts; empty for corruptions without one. With a model, a seed decides the order alone."""
    loop: LoopSettings | None = None
    """The limits of each conversation with it."""

    def __post_init__(self) -> None:
        if self.model and self.mode is not CampaignMode.DISCOVERY:
            raise UserError(f"A model corrupts in discovery mode, not in {self.mode}.", hint="Leave --model out.")
        if self.min_failing < 1:
            raise UserError(f"--min-failing must be 1 or more, and is {self.min_failing}.")

    @property
    def band(self) -> tuple[int, int]:
        """The least and the most failing tests of a good corruption."""
        return band(self.min_failing)

    @property
    def part_band(self) -> tuple[int, int]:
        """The least and the most failing tests of one corruption among several, which count together."""
        return min(FEW_FAILING[0], self.min_failing), self.band[1]

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a JSON value."""
        values = {**asdict(self), "mode": self.mode.value, "recipe": RECIPE}
        if not self.model:
            del values["model"], values["loop"]
        return values


_KEYS = frozenset({"source", "pytest_args", "extra_requirements", "exclude_newer", "build_steps", "stars"})
_TOP = frozenset({"min_stars", "source"})
_HINT = "Each source is a table [[source]] with the key 'source', such as \"toolz==1.2.0\", and may have {keys}."


class BatchError(UserError):
    """A batch file can't be used: the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source as a user names it, with what its suite needs."""

    source: str
    """`name==version`, a folder, or `PATH_OR_URL@COMMIT`."""
    pytest_args: tuple[str, ...] = ()
    extra_requirements: tuple[str, ...] = ()
    exclude_newer: str | None = None
    build_steps: tuple[str, ...] = ()
    stars: int | None = None
    """None where they are not known: kept, and marked."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The sources of a file in its order, and the stars that one must have, where its stars are known."""

    sources: tuple[SourceSpec, ...]
    min_stars: int = 0

    @property
    def taken(self) -> tuple[SourceSpec, ...]:
        """The sources that are popular enough, and those of which it is not known."""
        return tuple(spec for spec in self.sources if spec.stars is None or spec.stars >= self.min_stars)

    @property
    def left_out(self) -> tuple[SourceSpec, ...]:
        """The sources with too few stars."""
        return tuple(spec for spec in self.sources if spec.stars is not None and spec.stars < self.min_stars)


def read_batch(text: str, file: str) -> Batch:
    """Return the batch that TOML text describes; raises `BatchError` naming `file` and the key that is wrong."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BatchError(f"{file} is no TOML: {error}.", hint=_hint()) from error
    try:
        fields = Fields(values, file)
        _only(fields, _TOP)
        tables = fields.tables("source")
        sources = tuple(_source(table) for table in tables)
        min_stars = fields.at_least("min_stars", 0, 0)
    except TaskError as error:
        raise BatchError(error.message, hint=_hint()) from error
    if not sources:
        raise BatchError(f"{file}: the key 'source' names no source.", hint=_hint())
    named: set[str] = set()
    for n, spec in enumerate(sources):
        if spec.source in named:
            raise BatchError(f"{file}: the key 'source[{n}].source' repeats {spec.source!r}.", hint="Leave one out.")
        named.add(spec.source)
    return Batch(sources, min_stars)


def _source(fields: Fields) -> SourceSpec:
    _only(fields, _KEYS)
    name = fields.get("source", str)
    if not name.strip():
        raise TaskError(f"{fields.file}: the key {fields.name('source')!r} is empty.")
    newer = fields.get("exclude_newer", str, "")
    return SourceSpec(
        name,
        _strings(fields, "pytest_args"),
        _strings(fields, "extra_requirements"),
        newer or None,
        _strings(fields, "build_steps"),
        fields.at_least("stars", 0) if "stars" in fields.values else None,
    )


def _strings(fields: Fields, key: str) -> tuple[str, ...]:
    return fields.strings(key) if key in fields.values else ()


def _only(fields: Fields, known: Iterable[str]) -> None:
    strange = sorted(set(fields.values) - set(known))
    if strange:
        listed = ", ".join(sorted(known))
        raise TaskError(f"{fields.file}: the key {fields.name(strange[0])!r} is not known; known are {listed}.")


def _hint() -> str:
    return _HINT.format(keys=", ".join(sorted(_KEYS - {"source"})))
