"""The settings of a campaign, and the sources that it makes tasks from."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.corruption.evidence import FEW_FAILING, MORE_FAILING, band
from gistpoint.core.corruption.rounds import LoopSettings
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.generation.choice import Choice, GroupRules
from gistpoint.core.generation.intake import DEFAULT_MIN_FAILING
from gistpoint.core.locations import parsed_toml
from gistpoint.core.metrics.bars import HARD, MetricBar
from gistpoint.core.requests import Positive, Request
from gistpoint.core.tasks.fields import Count, Duration, Fields
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS

RECIPE = 14
"""The version of the rules by which candidates are decided; verdicts of other versions are not reused."""


class CampaignMode(StrEnum):
    """The way in which functions are corrupted; `multi` makes discovery tasks with several targets."""

    REMOVE = "remove"
    DISCOVERY = "discovery"
    MULTI = "multi"

    @property
    def in_groups(self) -> bool:
        """Whether several functions are corrupted together."""
        return self is CampaignMode.MULTI

    @property
    def removes(self) -> bool:
        """Whether bodies are removed, which needs neither a model nor a search."""
        return self is CampaignMode.REMOVE

    @property
    def of_tasks(self) -> Mode:
        """The mode of the tasks that are made."""
        return Mode.REMOVE if self.removes else Mode.DISCOVERY


class FaultSource(StrEnum):
    """The source of the faults in a campaign without a model."""

    OPERATORS = "operators"
    """Edits that corrupt a function on purpose."""
    HISTORY = "history"
    """Earlier bodies of the function, which somebody believed to be right."""
    ATTEMPTS = "attempts"
    """Bodies in failed submissions, which somebody believed to be right."""

    @property
    def is_believed(self) -> bool:
        """Whether somebody believed the faults to be right, so that they need no disguise."""
        return self in (FaultSource.HISTORY, FaultSource.ATTEMPTS)


MOST_FAILING_UNPLANTED = MORE_FAILING[1]
"""The maximum number of failing tests of an unplanted fault, or four times the minimum if more."""
LEAST_FAILING = 1
"""The minimum number of failing tests by default (decision 142)."""
PAPER = "paper"
"""The preset with the Breakpoint paper's thresholds: five failing tests, and a minute for the suite."""
PAPER_MIN_FAILING, PAPER_SUITE_SECONDS = DEFAULT_MIN_FAILING, 60.0
PAPER_GROUP = 4
"""The number of functions within `REACH` calls that the paper's preset corrupts together by default."""


@dataclass(frozen=True, slots=True)
class CampaignSettings:
    """The settings that determine the tasks of a campaign, besides the library and gistpoint's own code.

    Raises `UserError` for settings that contradict each other.
    """

    mode: CampaignMode
    seed: int = 0
    min_failing: int = DEFAULT_MIN_FAILING
    hard: bool = False
    model: str = ""
    """The corrupting model; empty for corruptions without one.

    With a model, the seed decides only the order.
    """
    loop: LoopSettings | None = None
    """The limits of each conversation with the model."""
    choice: Choice = field(default_factory=Choice)
    groups: GroupRules = field(default_factory=GroupRules)
    examples: str = ""
    """The hash of the file of judged corruptions; empty without examples."""
    max_glance: float | None = None
    """The glance score above which corruptions are not tried; None for the threshold of the weights.

    It applies only to corruptions made without a model.
    """
    confirmable: bool = False
    """Whether only tasks whose passes can be confirmed are kept."""
    source: FaultSource = FaultSource.OPERATORS
    missing_features: bool = False
    """Whether earlier bodies without a current feature are kept too."""
    pool: int = 0
    """The number of proven corruptions of which the least visible become tasks.

    0 if corruptions are accepted in the order in which they are proven.
    """
    studies: tuple[str, ...] = ()
    """The ids of the studies whose failed submissions are used, sorted."""
    classes: bool = False
    """Whether bodies are removed from whole classes too."""
    preset: str = ""
    """The name of the preset that decided some of the settings; empty if there was none."""
    rewrite: bool = False
    """Whether the model rewrites functions without seeing their bodies or knowing about faults."""
    reader: str = ""
    """The model that reads proven corruptions blind, to choose the least visible; empty for none."""
    readings: int = 3
    """The number of readings of each corruption."""

    def __post_init__(self) -> None:
        if self.groups != GroupRules() and not self.mode.in_groups:
            raise UserError(
                f"Sizes and distances apply to groups, and {self.mode} makes no groups.",
                hint="Add --mode multi.",
            )
        if self.groups.wanted and self.choice.plane:
            raise UserError(
                "Give a number of tasks for each size, or spread the tasks over two metrics, but not both."
            )
        if self.model and self.mode.removes:
            raise UserError(
                "A model corrupts functions; removing a body needs no model.",
                hint="Leave --model out, or add --mode discovery.",
            )
        if self.max_glance is not None and (self.model or self.mode.removes):
            raise UserError("--max-glance applies only to corruptions made without a model.")
        self._require_fitting_source()
        if self.classes and not self.mode.removes:
            raise UserError("--classes is for --mode remove.", hint="Add --mode remove, or leave it out.")
        if self.min_failing < 1:
            raise UserError(f"--min-failing must be 1 or more, but is {self.min_failing}.")

    def _require_fitting_source(self) -> None:
        """Raise `UserError` for options of earlier faults or of a pool that conflict with other options."""
        is_single_discovery = not (self.mode.in_groups or self.mode.removes)
        of_one_commit = self.source is FaultSource.HISTORY and self.mode.in_groups
        is_fitting = (is_single_discovery or of_one_commit) and not self.model
        if self.source.is_believed and not is_fitting:
            raise UserError(
                f"--from {self.source} makes discovery tasks without a model.",
                hint="Leave out --model, and either leave out --mode or give --mode discovery.",
            )
        if self.rewrite and not is_single_discovery:
            raise UserError(
                "--rewrite makes discovery tasks.", hint="Leave out --mode, or add --mode discovery."
            )
        if self.missing_features and not self.is_unplanted:
            raise UserError(
                "--missing-features is for --from history, --from attempts and --rewrite.",
                hint="Leave it out.",
            )
        self._require_fitting_pool(is_single_discovery)

    def _require_fitting_pool(self, is_single_discovery: bool) -> None:
        """Raise `UserError` for a pool, or a reader of a pool, that conflicts with other options."""
        is_ordered = bool(self.choice.plane) or not is_single_discovery
        if self.reader and is_ordered:
            raise UserError(
                "--reader is for discovery tasks that are not spread over metrics.", hint="Leave it out."
            )
        # The model that makes the corruptions knows what was changed (decision 140).
        if self.reader and self.model and _bare(self.reader) == _bare(self.model):
            raise UserError(
                f"{self.reader} makes the corruptions, so it can't be their blind reader.",
                hint="Give --reader another model than --model.",
            )
        is_planted_by_model = bool(self.model) and not (self.rewrite or self.reader)
        if self.pool and (is_planted_by_model or is_ordered):
            raise UserError(
                "--pool is for discovery tasks that no model corrupts and that are not spread over metrics.",
                hint="Leave it out.",
            )

    @property
    def is_unplanted(self) -> bool:
        """Whether the faults are mistakes of people or models who believed their code to be right."""
        return self.rewrite or self.source.is_believed

    @property
    def band(self) -> tuple[int, int]:
        """The minimum and maximum numbers of failing tests for a good corruption."""
        if self.is_unplanted:
            return self.min_failing, max(MOST_FAILING_UNPLANTED, 4 * self.min_failing)
        return band(self.min_failing)

    @property
    def part_band(self) -> tuple[int, int]:
        """The minimum and maximum numbers of failing tests for one corruption in a group.

        The tests of a group count together.
        """
        return min(FEW_FAILING[0], self.min_failing), self.band[1]

    @property
    def bars(self) -> tuple[MetricBar, ...]:
        """The metrics for which candidates must be at one end of the range."""
        return self.choice.bars or (HARD if self.hard else ())

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a JSON object, without unused parts."""
        values = {**msgspec.to_builtins(self), "recipe": RECIPE}
        if not self.model:
            del values["model"], values["loop"]
        if not self.reader:
            del values["reader"], values["readings"]
        for key, default in _LEFT_OUT.items():
            if getattr(self, key) == default:
                del values[key]
        if self.preset:
            values["max_suite_seconds"] = PAPER_SUITE_SECONDS
        parts = {"choice": self.choice.to_json(), "groups": self.groups.to_json()}
        values = {key: value for key, value in values.items() if key not in parts}
        return values | {key: value for key, value in parts.items() if value}

    def file_of_campaign(self, place: Callable[[Mapping[str, Any]], Path]) -> Path:
        """Return the file of a campaign; `place` returns the path of the file for given settings.

        The size of the pool, which by default follows the number of tasks, is ignored, so that a larger pool
        continues the campaign. A file from an earlier version, whose name depends on this size, is used if it
        is the only one.
        """
        values = self.to_json()
        earlier = place(values)
        values.pop("pool", None)
        file = place(values)
        return earlier if earlier.is_file() and not file.is_file() else file

    def deciding(self) -> dict[str, Any]:
        """Return the settings that decide a candidate's verdict, without settings that choose candidates."""
        values = self.to_json()
        # The limit of the suite only decides whether a library is used at all.
        for key in (
            *("hard", "choice", "groups", "pool", "classes", "preset", "max_suite_seconds"),
            *("reader", "readings"),
        ):
            values.pop(key, None)
        groups = self.groups.to_json()
        for key in ("wanted", "tell_count", "sizes"):
            groups.pop(key, None)
        if self.groups.sizes:
            groups["exact"] = True
        return values | {"groups": groups} if groups else values


_LEFT_OUT: Mapping[str, object] = {
    "examples": "",
    "max_glance": None,
    "confirmable": False,
    "source": FaultSource.OPERATORS,
    "missing_features": False,
    "pool": 0,
    "studies": (),
    "classes": False,
    "preset": "",
    "rewrite": False,
}
"""Settings that are stored only if they differ from these values, to keep the keys of earlier sets valid."""


def _bare(model: str) -> str:
    """Return the name of a model without its vendor, because endpoints differ in whether they name it."""
    return model.strip().rpartition("/")[2].casefold()


_HINT = (
    "Each source is a table [[source]] with the key 'source', such as \"toolz==1.2.0\", and may have {keys}."
)


class BatchError(UserError):
    """A batch file can't be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source as specified by the user, with the requirements of its suite."""

    source: str
    """`name==version`, a folder, or `PATH_OR_URL@COMMIT`."""
    pytest_args: tuple[str, ...] = ()
    extra_requirements: tuple[str, ...] = ()
    exclude_newer: str | None = None
    build_steps: tuple[str, ...] = ()
    stars: Count | None = None
    """The stars of the repository; None if unknown, which does not exclude the source."""
    max_suite_seconds: Duration = MAX_SUITE_SECONDS
    """The seconds above which a run of the suite is too slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteNeeds(Request):
    """A request to run the suite of a source with these requirements."""

    extra: tuple[str, ...] = ()
    """Additional requirements, which only the suite needs."""
    pytest_args: str = ""
    build_steps: tuple[str, ...] = ()
    exclude_newer: str | None = None
    max_suite_seconds: Positive = MAX_SUITE_SECONDS

    def of(self, source: str) -> SourceSpec:
        """Return a source with these requirements.

        Raises `UserError` for arguments that can't be split into words.
        """
        try:
            pytest_args = tuple(shlex.split(self.pytest_args))
        except ValueError as error:
            raise UserError(
                f"--pytest-args can't be split into words: {error}.", hint="Close the quotation mark."
            ) from error
        return SourceSpec(
            source,
            pytest_args,
            self.extra,
            self.exclude_newer,
            self.build_steps,
            max_suite_seconds=self.max_suite_seconds,
        )


SOURCE_KEYS = frozenset(SourceSpec.__slots__)


@dataclass(frozen=True, slots=True)
class Batch:
    """The sources in a file, in order, and the minimum number of stars for sources with known stars."""

    sources: tuple[SourceSpec, ...]
    min_stars: int = 0

    @property
    def taken(self) -> tuple[SourceSpec, ...]:
        """The sources with enough stars, and those whose stars are unknown."""
        return tuple(spec for spec in self.sources if spec.stars is None or spec.stars >= self.min_stars)

    @property
    def left_out(self) -> tuple[SourceSpec, ...]:
        """The sources with too few stars."""
        return tuple(spec for spec in self.sources if spec.stars is not None and spec.stars < self.min_stars)


def read_batch(text: str, file: str) -> Batch:
    """Return the batch in a TOML document.

    Raises `BatchError`, which names `file`, if the text is not TOML, if a key is wrong, and if the file names
    no source, or a source twice.
    """
    try:
        values = parsed_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise BatchError(f"{file} is not valid TOML: {error}.", hint=_hint()) from error
    try:
        fields = Fields(values, file)
        fields.only(("min_stars", "source"))
        sources = tuple(read_source(table) for table in fields.tables("source"))
        if (min_stars := fields.get("min_stars", int, 0)) < 0:
            raise TaskError(f"{file}: the key 'min_stars' must be at least 0.")
    except TaskError as error:
        raise BatchError(error.message, hint=_hint()) from error
    if not sources:
        raise BatchError(f"{file}: the key 'source' does not name a source.", hint=_hint())
    named: set[str] = set()
    for n, spec in enumerate(sources):
        if spec.source in named:
            raise BatchError(
                f"{file}: the key 'source[{n}].source' repeats {spec.source!r}.", hint="Leave one out."
            )
        named.add(spec.source)
    return Batch(sources, min_stars)


def read_source(fields: Fields, known: Collection[str] = SOURCE_KEYS) -> SourceSpec:
    """Return the source in a table that may have the `known` keys.

    Raises `TaskError`, which names the file and the key, for another key or a bad value.
    """
    fields.only(known)
    spec = fields.record(SourceSpec, optional=SOURCE_KEYS)
    if not spec.source.strip():
        raise TaskError(f"{fields.file}: the key {fields.name('source')!r} is empty.")
    return replace(spec, exclude_newer=spec.exclude_newer or None)


def _hint() -> str:
    return _HINT.format(keys=", ".join(sorted(SOURCE_KEYS - {"source"})))
