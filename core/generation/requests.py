"""What `task new` and `task generate` ask for, and the settings and sources that it comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from gistpoint.core.corruption.rounds import Keep, LoopSettings
from gistpoint.core.errors import UserError, cause
from gistpoint.core.generation.choice import ChooseFunctions, GroupFunctions, tasks_wanted
from gistpoint.core.generation.examples import hash_of_examples
from gistpoint.core.generation.settings import Batch, CampaignMode, CampaignSettings, SuiteNeeds, read_batch
from gistpoint.core.ports import ChatModel
from gistpoint.core.requests import LOCAL, Count, Natural, Positive, Request, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptingModel(Request):
    """The model that corrupts a function, and the limits of its work."""

    model: str | None = None
    keep: Keep = Keep.BEST
    rounds: Natural = 5
    """Of test feedback."""
    max_tool_calls: Count = 30
    examples: Annotated[str | None, LOCAL] = None
    """The file of judged corruptions, of which it is shown some."""
    max_tokens: Count | None = None
    """Sent and received."""
    max_cost: Positive | None = None
    """In US dollars."""

    def caps(self) -> tuple[int | None, float | None]:
        """Return the most tokens and US dollars for one function; None where nothing is said."""
        return self.max_tokens, self.max_cost

    def loop(self, min_failing: int, max_tokens: int | None, max_cost: float | None) -> LoopSettings:
        """Return the limits of each conversation; `max_tokens` and `max_cost` are those of the endpoint."""
        tokens, cost = self.caps()
        changes: dict[str, Any] = {
            "keep": self.keep,
            "feedback_rounds": self.rounds,
            "tool_calls": self.max_tool_calls,
            "max_cost_usd": max_cost if cost is None else cost,
        }
        if (most := max_tokens if tokens is None else tokens) is not None:
            changes["max_tokens"] = most
        return LoopSettings.for_tasks(min_failing, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptingModelOfSet(CorruptingModel):
    """The model that corrupts the functions of a set; its other limits are those of all functions together."""

    max_tokens_per_function: Count | None = None
    max_cost_per_function: Positive | None = None

    def caps(self) -> tuple[int | None, float | None]:
        """Return the most tokens and US dollars for one function; None where nothing is said."""
        return self.max_tokens_per_function, self.max_cost_per_function

    def require_model(self) -> None:
        """Raise `UserError` if there is something for a model to keep to, and no model."""
        limits = ("examples", "max_tokens", "max_cost", "max_tokens_per_function", "max_cost_per_function")
        given = [name for name in limits if getattr(self, name) is not None]
        if given and not self.model:
            option = f"--{given[0].replace('_', '-')}"
            raise UserError(f"{option} is for a corrupting model, and none is named.", hint="Add --model NAME.")


OpenModel = Callable[[CorruptingModel, int], tuple[ChatModel, LoopSettings]]
"""Returns a model and the limits of its conversations for tasks with that many failing tests.

Raises `EndpointError` if the endpoint is not configured.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask(Request):
    """A task of one function."""

    source: str
    mode: Literal["remove", "discovery"] = "remove"
    function: str = ""
    """Empty for one that the seed picks."""
    seed: int = 0
    suite: SuiteNeeds = field(default_factory=SuiteNeeds)
    min_failing: Count = 5
    model: CorruptingModel = field(default_factory=CorruptingModel)

    def settings(self, open_model: OpenModel) -> tuple[CampaignSettings, ChatModel | None]:
        """Return the settings and the corrupting model, found before any costly work; None for remove mode."""
        mode = CampaignMode(self.mode)
        if mode is CampaignMode.REMOVE:
            if self.model.model:
                raise UserError("--model corrupts a function; removing needs none.", hint="Add --mode discovery.")
            return CampaignSettings(mode, self.seed, self.min_failing), None
        if not self.function:
            raise UserError("A discovery task needs --function: what the model is to corrupt.")
        model, loop = open_model(self.model, self.min_failing)
        examples = hash_of_examples(self.model.examples)
        return CampaignSettings(
            mode, self.seed, self.min_failing, model=model.name, loop=loop, examples=examples
        ), model


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateTasks(Request):
    """Sets of tasks of one or more sources."""

    sources: tuple[str, ...] = ()
    batch: Annotated[str | None, LOCAL] = None
    """The file that names the sources."""
    mode: CampaignMode = CampaignMode.DISCOVERY
    count: Count | None = None
    """Tasks of each source."""
    min_failing: Count = 5
    seed: int = 0
    workers: Annotated[Count | None, LOCAL] = None
    """Processes; None for one a core."""
    cluster: Annotated[str | None, LOCAL] = None
    """The address of a Dask scheduler."""
    control: Natural = 0
    """Candidates that are tried on the whole suite as well."""
    max_glance: Share | None = None
    choice: ChooseFunctions = field(default_factory=ChooseFunctions)
    groups: GroupFunctions = field(default_factory=GroupFunctions)
    suite: SuiteNeeds = field(default_factory=SuiteNeeds)
    model: CorruptingModelOfSet = field(default_factory=CorruptingModelOfSet)

    def planned(self, open_model: OpenModel) -> tuple[Batch, CampaignSettings, int]:
        """Return the sources, the settings, and how many tasks of each source are wanted, before any costly work.

        Raises `UserError` for a request that contradicts itself, and what `open_model` raises.
        """
        batch, settings = self._batch(), self._settings(open_model)
        count = tasks_wanted(self.count, settings.choice, settings.groups)
        if settings.choice.functions and len(batch.sources) > 1:
            raise UserError("--functions lists the functions of one source.", hint="Name one source.")
        return batch, settings, count

    def _settings(self, open_model: OpenModel) -> CampaignSettings:
        self.model.require_model()
        choice, groups, model = self.choice.choice(), self.groups.rules(), self.model.model or ""
        if self.max_glance is not None and model:
            raise UserError(
                "--max-glance is for corruptions that are made without a model.", hint="Leave out one of them."
            )
        return CampaignSettings(
            self.mode,
            self.seed,
            self.min_failing,
            self.choice.only_hard,
            model,
            open_model(self.model, self.min_failing)[1] if model else None,
            choice,
            groups,
            hash_of_examples(self.model.examples),
            self.max_glance,
        )

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
                hint="Write them there: pytest_args, extra_requirements, build_steps, exclude_newer, "
                "max_suite_seconds.",
            )
        path = Path(self.batch)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} can't be read: {cause(error)}.", hint="--batch takes a TOML file.") from error
        return read_batch(text, path.name)
