"""A harness whose suites are functions run in this process, and a small library with such a suite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from confirmers import ScriptedConfirmer
from fakes import Check, FakeRunner
from small_trees import tree_of

from gistpoint.core.callgraph import ObservedCall
from gistpoint.core.code.testmap import TestMap
from gistpoint.core.corruption.blind import GlanceScore
from gistpoint.core.errors import EndpointError
from gistpoint.core.generation.by_model import ModelTerms
from gistpoint.core.generation.campaign import Workers, run_campaign
from gistpoint.core.generation.candidates import plan
from gistpoint.core.generation.context import Context, close_contexts
from gistpoint.core.generation.intake import Intake
from gistpoint.core.generation.library import SourceLibrary, learn_library
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, StateFile
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.ports import ChatModel, ProbeFailure, ProbeReport
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext
from gistpoint.core.tasks.model import Source, Target
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.trees import SourceTree

SHOP = """\
def price(amount, rate):
    total = 0
    for n in range(amount):
        total += rate
    if total > 100:
        total = total - total // 10
    return total


def stock(orders):
    left = {}
    for name, count in orders:
        left[name] = left.get(name, 0) + count
    return left


def bill(orders, rate):
    lines = []
    for name, count in sorted(stock(orders).items()):
        if count >= 1:
            lines.append((name, price(count, rate)))
    return lines


def unseen(x):
    if x:
        return 1
    return 2
"""


def _check(name: str, expected: object, *given: object) -> Check:
    def check(names: Mapping[str, object]) -> None:
        function = names[name]
        assert callable(function)
        assert function(*given) == expected

    return check


CHECKS: dict[str, Check] = {
    **{f"tests/test_shop.py::test_price[{n}]": _check("price", n * 10, n, 10) for n in range(6)},
    **{f"tests/test_shop.py::test_price_limit[{n}]": _check("price", 100, n, 100 // n) for n in (10, 20, 50)},
    "tests/test_shop.py::test_rebate": _check("price", 180, 20, 10),
    **{
        f"tests/test_shop.py::test_stock[{n}]": _check("stock", {"a": n + 1}, [("a", 1), ("a", n)])
        for n in range(6)
    },
    **{
        f"tests/test_shop.py::test_bill[{n}]": _check(
            "bill", [("a", n * 5), ("b", 5)], [("b", 1), ("a", n)], 5
        )
        for n in range(1, 7)
    },
}
ENTERED = {
    "shop.py::price": [id for id in CHECKS if "price" in id or "rebate" in id or "bill" in id],
    "shop.py::stock": [id for id in CHECKS if "stock" in id or "bill" in id],
    "shop.py::bill": [id for id in CHECKS if "bill" in id],
}


@dataclass
class FakeMapper:
    entered: Mapping[str, Collection[str]]
    observed: tuple[ObservedCall, ...] = ()
    ran: int = 0

    def record(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        ids: Collection[str],
        *,
        run: RunContext = UNATTENDED,
    ) -> tuple[TestMap, tuple[ObservedCall, ...]]:
        self.ran += 1
        entered = {name: frozenset(tests) for name, tests in self.entered.items()}
        return TestMap(entered, tests=dict.fromkeys(ids, 0.01)), self.observed


@dataclass
class FakeScorer:
    """Predicts the same score for every corruption."""

    value: float

    def scores(
        self, targets: Sequence[Target], families: Sequence[Sequence[str]] = (), on_reading: object = None
    ) -> list[GlanceScore]:
        return [GlanceScore(self.value, {"size": 1.0}) for _ in targets]


@dataclass
class FakeProber:
    """Runs the selected checks, unless `wish` returns a report.

    A failure other than an assertion counts as one inside the target.
    """

    intake: Intake
    checks: Mapping[str, Check]
    wish: Callable[[tuple[Target, ...]], ProbeReport | None]

    def decide(
        self,
        targets: tuple[Target, ...],
        select: tuple[str, ...] = (),
        *,
        stop_after: int | None = None,
        cancel: CancelToken = NEVER,
    ) -> ProbeReport:
        wished = self.wish(targets)
        if wished is not None:
            return wished
        from fakes import loaded

        failed: dict[str, ProbeFailure] = {}
        ran = 0
        names = loaded(corrupted_tree(self.intake.repository.tree, targets))
        for id in select:
            ran += 1
            try:
                self.checks[id](names)
            except AssertionError as error:
                failed[id] = ProbeFailure(str(error), assertion=True, error_type="AssertionError")
            except Exception as error:
                failed[id] = ProbeFailure(str(error), through_target=True, error_type=type(error).__name__)
            if stop_after is not None and len(failed) == stop_after:
                break
        return ProbeReport(RunStatus.FINISHED, failed, ran, 0.001)

    def close(self) -> None:
        return


@dataclass(eq=False)
class FakeBench:
    """Counts runs. `wish` may return a probe's report that replaces the checks' result."""

    checks: Mapping[str, Check] = field(default_factory=lambda: CHECKS)
    entered: Mapping[str, Collection[str]] = field(default_factory=lambda: ENTERED)
    wish: Callable[[tuple[Target, ...]], ProbeReport | None] = lambda targets: None
    status: RunStatus = RunStatus.FINISHED
    glance: float = 0.2
    """The predicted chance that a corruption is seen at a glance, the same for all."""
    observed: tuple[ObservedCall, ...] = ()
    confirming: ScriptedConfirmer = field(default_factory=ScriptedConfirmer)
    runners: list[FakeRunner] = field(default_factory=list)
    mappers: list[FakeMapper] = field(default_factory=list)

    def runner(self) -> FakeRunner:
        self.runners.append(FakeRunner(self.checks, status=self.status))
        return self.runners[-1]

    def mapper(self, max_suite_seconds: float = 60.0) -> FakeMapper:
        self.mappers.append(FakeMapper(self.entered, self.observed))
        return self.mappers[-1]

    def confirmer(self) -> ScriptedConfirmer:
        return self.confirming

    def scorer(self, intake: Intake) -> FakeScorer:
        return FakeScorer(self.glance)

    def prober(self, library: SourceLibrary) -> FakeProber:
        return FakeProber(library.intake, self.checks, self.wish)

    def model(self, name: str) -> ChatModel:
        raise EndpointError(f"There is no endpoint for {name}.", hint="Corrupt without a model.")

    def reader(self, name: str) -> ChatModel:
        raise EndpointError(f"There is no endpoint for {name}.", hint="Make a set that nobody reads.")

    @property
    def runs(self) -> int:
        return sum(runner.runs for runner in self.runners)


@dataclass
class HeldSet:
    """The tasks of a campaign, in memory."""

    kept: list[CandidateVerdict] = field(default_factory=list)
    settled: bool = False

    def become(self, kept: Sequence[CandidateVerdict]) -> None:
        self.kept = [*kept]

    def settle(self) -> None:
        self.settled = True


@dataclass
class Shop:
    """The small library in a folder, with campaigns on it."""

    folder: Path
    bench: FakeBench = field(default_factory=FakeBench)
    source: str = SHOP
    tests: str = "def test_price(): ...\n"

    def library(self) -> SourceLibrary:
        def make() -> Repository:
            (self.folder / "files").mkdir(exist_ok=True)
            files = {"shop.py": self.source, "tests/test_shop.py": self.tests}
            return Repository(
                Source("folder", "shop", "1"), tree_of(files, self.folder / "files"), EnvironmentPins()
            )

        return learn_library(self.folder / "library", make, self.bench.runner(), self.bench.mapper)

    def place(self, settings: CampaignSettings, terms: ModelTerms | None = None) -> Context:
        return Context(self.folder / "library", self.bench, settings, terms=terms or ModelTerms())

    def campaign(
        self, mode: str, count: int = 99, workers: int = 1, terms: ModelTerms | None = None, **options: object
    ) -> tuple[Counts, list[CandidateVerdict]]:
        library = self.library()
        settings = CampaignSettings(CampaignMode(mode), **options)  # type: ignore[arg-type]
        tasks = HeldSet()
        try:
            with (
                ThreadPoolExecutor(workers) as pool,
                StateFile(self.folder / f"{mode}-{len(options)}.jsonl", {}) as state,
            ):
                planned = plan(library, settings)
                place = self.place(settings, terms)
                counts = run_campaign(
                    place,
                    planned.candidates,
                    count,
                    Workers(pool, workers),
                    state,
                    tasks,
                    strata=planned.strata,
                )
        finally:
            close_contexts()
        return counts, tasks.kept
