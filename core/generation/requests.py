"""Requests for tasks: a single task from one function, or sets of tasks from sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from gistpoint.core.errors import UserError, cause
from gistpoint.core.generation.by_model import CorruptingModel, CorruptingModelOfSet, OpenModel
from gistpoint.core.generation.choice import ChooseFunctions, GroupFunctions, GroupRules, tasks_wanted
from gistpoint.core.generation.examples import hash_of_examples
from gistpoint.core.generation.settings import (
    LEAST_FAILING,
    PAPER,
    PAPER_GROUP,
    PAPER_MIN_FAILING,
    PAPER_SUITE_SECONDS,
    Batch,
    CampaignMode,
    CampaignSettings,
    FaultSource,
    SourceSpec,
    SuiteNeeds,
    read_batch,
)
from gistpoint.core.ports import ChatModel
from gistpoint.core.requests import LOCAL, Count, Natural, Request, Share, ValueBounds

Preset = Literal["paper"]
"""The names of presets: `paper` sets the thresholds of the Breakpoint paper."""


def least_failing(preset: Preset | None, asked: int | None) -> int:
    """Return the minimum number of failing tests. Raises `UserError` if a preset contradicts the request."""
    if preset is None:
        return asked or LEAST_FAILING
    if asked not in (None, PAPER_MIN_FAILING):
        raise UserError(
            f"--preset {preset} needs {PAPER_MIN_FAILING} failing tests, but --min-failing is {asked}.",
            hint="Leave one of them out.",
        )
    return PAPER_MIN_FAILING


def require_paper_suites(preset: Preset | None, sources: Iterable[SourceSpec]) -> None:
    """Raise `UserError` if a source may have a slower suite than a preset allows."""
    slower = [spec for spec in sources if preset and spec.max_suite_seconds > PAPER_SUITE_SECONDS]
    for spec in slower:
        raise UserError(
            f"--preset {preset} allows suites of at most {PAPER_SUITE_SECONDS:g} s, but {spec.source}"
            f" may take {spec.max_suite_seconds:g} s.",
            hint="Leave out the preset, or --max-suite-seconds (max_suite_seconds in a batch file).",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask(Request):
    """A request to make a task from one function."""

    source: str
    mode: Literal["remove", "discovery"] = "remove"
    function: str = ""
    """The name of the function; if empty, the seed picks a function."""
    seed: int = 0
    suite: SuiteNeeds = field(default_factory=SuiteNeeds)
    min_failing: Count | None = None
    """The minimum number of failing tests; None for the preset's number, or else one."""
    preset: Preset | None = None
    model: CorruptingModel = field(default_factory=CorruptingModel)

    def settings(self, open_model: OpenModel) -> tuple[CampaignSettings, ChatModel | None]:
        """Return the settings and the corrupting model, before any costly work.

        The model is None in remove mode. Raises `UserError` for a request that contradicts itself, and
        `EndpointError` if the model's endpoint is not configured.
        """
        mode, least = CampaignMode(self.mode), least_failing(self.preset, self.min_failing)
        require_paper_suites(self.preset, [self.suite.of(self.source)])
        preset = self.preset or ""
        if mode is CampaignMode.REMOVE:
            if self.model.model:
                raise UserError(
                    "--model corrupts a function; removing a body needs no model.",
                    hint="Add --mode discovery.",
                )
            return CampaignSettings(mode, self.seed, least, preset=preset), None
        if not self.function:
            raise UserError("A discovery task needs --function: the function that the model corrupts.")
        model, loop = open_model(self.model, least)
        examples = hash_of_examples(self.model.examples)
        return (
            CampaignSettings(
                mode, self.seed, least, model=model.name, loop=loop, examples=examples, preset=preset
            ),
            model,
        )


MOST_READINGS = 100
POOL_FOR_A_TASK = 3
"""The default number of faults to prove per wanted task, from which the least visible are chosen.

It applies to faults that nobody planted, and to all faults that a model reads blind.
"""


OpenReader = Callable[[str], ChatModel]
"""Returns the blind reader with a name. Raises `EndpointError` if its endpoint is not configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindReader(Request):
    """A request for a model that reads proven corruptions blind, `readings` times each."""

    reader: str | None = None
    readings: Annotated[int, ValueBounds(least=1, most=MOST_READINGS)] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateTasks(Request):
    """A request to make a set of tasks from each of one or more sources."""

    sources: tuple[str, ...] = ()
    batch: Annotated[str | None, LOCAL] = None
    """The file that names the sources."""
    mode: CampaignMode = CampaignMode.DISCOVERY
    count: Count | None = None
    """The number of tasks from each source."""
    min_failing: Count | None = None
    """The minimum number of failing tests; None for the preset's number, or else one."""
    preset: Preset | None = None
    classes: bool = False
    """Whether bodies are removed from whole classes too."""
    seed: int = 0
    workers: Annotated[Count | None, LOCAL] = None
    """The number of processes; None for one per core."""
    cluster: Annotated[str | None, LOCAL] = None
    """The address of a Dask scheduler."""
    control: Natural = 0
    """The number of candidates that are also tried on the whole suite."""
    max_glance: Share | None = None
    confirmable: bool = False
    """Whether to keep only tasks whose passes can be confirmed."""
    faults: FaultSource = FaultSource.OPERATORS
    studies: Annotated[tuple[str, ...], LOCAL] = ()
    """The folders of studies whose failed submissions are used as well, with --from attempts."""
    missing_features: bool = False
    """Whether bodies without a current feature are kept too."""
    pool: Count | None = None
    """The number of proven corruptions of which the least visible become tasks.

    None means three times the number of tasks if nobody planted the faults or a blind reader reads them,
    except for groups and for tasks that are spread over metrics. In all other cases, there is no pool, and
    each corruption is decided separately.
    """
    choice: ChooseFunctions = field(default_factory=ChooseFunctions)
    groups: GroupFunctions = field(default_factory=GroupFunctions)
    suite: SuiteNeeds = field(default_factory=SuiteNeeds)
    model: CorruptingModelOfSet = field(default_factory=CorruptingModelOfSet)
    blind: BlindReader = field(default_factory=BlindReader)

    def planned(
        self, open_model: OpenModel, open_reader: OpenReader | None = None
    ) -> tuple[Batch, CampaignSettings, int]:
        """Return the sources, the settings, and the number of tasks per source, before any costly work.

        Raises `UserError` for a request that contradicts itself or a file that can't be used, and
        `EndpointError` if the endpoint of the model or of the reader is not configured.
        """
        batch, settings = self._batch(), self._settings(open_model)
        if settings.reader and open_reader is not None:
            open_reader(settings.reader)
        count = tasks_wanted(self.count, settings.choice, settings.groups)
        require_paper_suites(self.preset, batch.sources)
        if settings.choice.functions and len(batch.sources) > 1:
            raise UserError("--functions applies to a single source.", hint="Name one source.")
        return batch, settings, count

    def _settings(self, open_model: OpenModel) -> CampaignSettings:
        self.model.require_model(reads=bool(self.blind.reader))
        if self.blind.readings != BlindReader().readings and not self.blind.reader:
            raise UserError("--readings needs a model that reads the corruptions.", hint="Add --reader NAME.")
        if self.studies and self.faults is not FaultSource.ATTEMPTS:
            raise UserError(
                "--study applies only to --from attempts.", hint="Add --from attempts, or leave it out."
            )
        choice, groups, model = self.choice.choice(), self._groups(), self.model.model or ""
        if self.max_glance is not None and model:
            raise UserError(
                "--max-glance applies only to corruptions made without a model.",
                hint="Leave out one of them.",
            )
        least = least_failing(self.preset, self.min_failing)
        # The paper's problems are functions or classes.
        classes = self.classes or (self.preset == PAPER and self.mode.removes)
        return CampaignSettings(
            self.mode,
            self.seed,
            least,
            self.choice.only_hard,
            model,
            open_model(self.model, least)[1] if model else None,
            choice,
            groups,
            hash_of_examples(self.model.examples),
            self.max_glance,
            self.confirmable,
            self.faults,
            self.missing_features,
            self._pool_size(tasks_wanted(self.count, choice, groups), is_spread=bool(choice.plane)),
            classes=classes,
            preset=self.preset or "",
            rewrite=self.model.rewrite,
            reader=self.blind.reader or "",
            readings=self.blind.readings,
        )

    def _groups(self) -> GroupRules:
        """Return the rules for groups; with the paper's preset, groups have four functions by default."""
        rules = self.groups.rules()
        is_of_paper = self.preset == PAPER and self.mode.in_groups and not rules.sizes
        return replace(rules, sizes=(PAPER_GROUP,)) if is_of_paper else rules

    def _pool_size(self, count: int, *, is_spread: bool) -> int:
        if self.pool is None:
            is_ranked = self.model.rewrite or self.faults.is_believed or bool(self.blind.reader)
            return POOL_FOR_A_TASK * count if is_ranked and not (self.mode.in_groups or is_spread) else 0
        if self.pool < count:
            raise UserError(
                f"--pool must be at least the number of tasks, {count}.", hint="Raise it, or lower --count."
            )
        return self.pool

    def _batch(self) -> Batch:
        if bool(self.batch) == bool(self.sources):
            raise UserError(
                "Name one or more sources, or a batch file, not both.",
                hint="gistpoint task generate name==version, or gistpoint task generate --batch FILE.toml.",
            )
        if not self.batch:
            return Batch(tuple(self.suite.of(source) for source in dict.fromkeys(self.sources)))
        if self.suite != SuiteNeeds():
            raise UserError(
                "With --batch, the arguments of each source are in the file.",
                hint=(
                    "Write them there: pytest_args, extra_requirements, build_steps, exclude_newer, "
                    "max_suite_seconds."
                ),
            )
        path = Path(self.batch)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"{path} can't be read: {cause(error)}.", hint="--batch requires a TOML file."
            ) from error
        return read_batch(text, path.name)
