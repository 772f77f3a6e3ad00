"""The object graph: the stores, isolation, runners and models that a command or a worker needs.

It is below `tui` and above the folders that it connects, so that a cluster's worker needs no screen
(decision 111).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from gistpoint import __version__
from gistpoint.core.text import visible_line

if TYPE_CHECKING:
    from gistpoint.core.agents.scaffolds import Scaffold, SeatedSolver
    from gistpoint.core.agents.settings import AgentSettings
    from gistpoint.core.agents.solvers import AgentSolver, ModelMaker, RequestPace
    from gistpoint.core.attempts.identity import Role
    from gistpoint.core.chat import ChatApi
    from gistpoint.core.confirmation.model import Confirmer
    from gistpoint.core.entrypoints.runs import EntrypointRunner
    from gistpoint.core.locations import Locations
    from gistpoint.core.ports import ChatModel, Runner
    from gistpoint.core.requests import IsolationChoice
    from gistpoint.core.tasks.equivalence import EquivalenceTester
    from gistpoint.core.tasks.model import Task
    from gistpoint.sandbox.backends.base import Backend
    from gistpoint.sandbox.endpoints.settings import EndpointSettings
    from gistpoint.sessions.services import Services
    from gistpoint.sessions.team.live import LiveAnnotations


Ask = Callable[[str], bool]
Made = TypeVar("Made")


def print_note(text: str) -> None:
    """Print a note on standard error, with visible control characters."""
    print("gistpoint:", visible_line(text), file=sys.stderr)


class ProcessConsent:
    """The way in which this process asks to run code without isolation if no app does.

    The command line sets it.
    """

    asker: Ask | None = None

    @classmethod
    def ask(cls, why_not: str) -> bool:
        """Ask, and return whether the answer is yes; False if nobody can be asked."""
        return cls.asker is not None and cls.asker(why_not)


class RunnerPool(Generic[Made]):
    """A pool with a runner for trusted code and another for all other code, each created at most once.

    After a failure, the next request tries again.
    """

    def __init__(self, make: Callable[[bool, Ask], Made]) -> None:
        """`make` creates a runner.

        Its arguments are whether the code is trusted (our own demo's, or the user has consented to run all
        code), and a function that asks for consent.
        """
        self._make = make
        self._made: dict[bool, Made] = {}
        self._lock = Lock()

    def get(self, demo: bool, ask: Ask) -> Made:
        """Return the runner. Blocks while another thread creates it.

        Raises `SandboxUnavailableError` if the runner can't be isolated as chosen, and nobody consents to
        running without isolation.
        """
        with self._lock:
            if demo not in self._made:
                self._made[demo] = self._make(demo, ask)
            return self._made[demo]


class ProbedBackends:
    """Backends that work, each created and tested once. After a failure, the next request tries again."""

    def __init__(self) -> None:
        self._working: dict[str, Backend] = {}
        self._lock = Lock()

    def begin(self, isolation: IsolationChoice) -> None:
        """Start choosing a backend in a thread.

        Nobody is asked for consent, and errors are reported when the backend is needed.
        """

        def choose_one() -> None:
            from gistpoint.core.errors import UserError

            with suppress(UserError):
                _chosen_backend(isolation, True, None, probed=self)

        Thread(target=choose_one, name="isolation", daemon=True).start()

    def once(self, makers: Mapping[str, Callable[[], Backend]]) -> Mapping[str, Callable[[], Backend]]:
        """Return functions that create each backend once, by its name.

        They block while another thread tests it.
        """
        return {name: partial(self._get, name, make) for name, make in makers.items()}

    def _get(self, name: str, make: Callable[[], Backend]) -> Backend:
        with self._lock:
            if name in self._working:
                return self._working[name]
            backend = make()
            if backend.probe().works:
                self._working[name] = backend
            return backend


def build_services(
    isolation: IsolationChoice,
    *,
    role: Role | None = None,
    participant: str = "",
    probed: ProbedBackends | None = None,
    consented: bool | None = None,
) -> Services:
    """Build the object graph for one run of the program.

    `probed` are backends whose tests have started. `consented` is the answer to every request to run code
    without isolation, if nobody can be asked.
    """
    from gistpoint.core.attempts.identity import Enrolment, Role, participant_code
    from gistpoint.core.locations import Locations
    from gistpoint.core.machine_time import SystemTime
    from gistpoint.sessions.attempts import ATTEMPTS_INDEX, AttemptStore
    from gistpoint.sessions.blinding import Blinding
    from gistpoint.sessions.services import Consent, Services, is_our_demo, never
    from gistpoint.sessions.task_documents import TASKS_INDEX
    from gistpoint.sessions.tasks import TaskStore
    from gistpoint.sessions.team import FILE as STORE_FILE

    locations, clock = Locations.of_user(), SystemTime()
    consent = Consent(ProcessConsent.ask if consented is None else never)
    enrolment = Enrolment(role=role or Role.BASELINE, participant=participant_code(participant))

    probed = probed or ProbedBackends()

    runners = RunnerPool(lambda demo, ask: build_runner(isolation, demo=demo, ask=ask, probed=probed))

    def trusted(task: Task) -> bool:
        return consented or is_our_demo(task, locations)

    def runner_for(task: Task) -> Runner:
        return runners.get(trusted(task), consent.ask)

    single = partial(build_entrypoint_runner, isolation, probed=probed)

    entrypoints = RunnerPool(lambda demo, ask: single(demo=demo, ask=ask))

    imaged = RunnerPool(lambda demo, ask: single(demo=demo, ask=ask, image=True))

    def entrypoint_pool(task: Task) -> RunnerPool[EntrypointRunner]:
        return entrypoints if task.environment.image is None else imaged

    def entrypoints_for(task: Task) -> EntrypointRunner:
        return entrypoint_pool(task).get(trusted(task), consent.ask)

    confirmers = RunnerPool(lambda demo, ask: build_confirmer(isolation, demo=demo, ask=ask, probed=probed))

    def confirmer_for(task: Task) -> Confirmer | None:
        return confirmers.get(trusted(task), consent.ask)

    def chosen() -> tuple[str, bool] | None:
        from gistpoint.core.errors import UserError
        from gistpoint.sandbox.ladder import UNSANDBOXED

        try:
            name = _chosen_backend(isolation, True, None, probed=probed).name
        except UserError:  # reported when an attempt starts
            return None
        return name, name != UNSANDBOXED

    mirror = None
    if (locations.config / STORE_FILE).exists():
        from gistpoint.sessions.team.pusher import Pusher

        mirror = Pusher(locations, clock)

    return Services(
        locations=locations,
        tasks=TaskStore(
            locations.tasks, demo=locations.demo, note=print_note, index=locations.lists / TASKS_INDEX
        ),
        attempts=AttemptStore(
            locations.attempts,
            clock,
            __version__,
            locations.reviews,
            listener=mirror,
            index=locations.lists / ATTEMPTS_INDEX,
            blinding=Blinding.of_process,
        ),
        clock=clock,
        runner_for=runner_for,
        entrypoints_for=entrypoints_for,
        confirmer_for=confirmer_for,
        isolation=chosen,
        enrolment=enrolment,
        consent=consent,
        solver=lambda name, base_url, api: solver_named(
            locations.config,
            os.environ,
            name,
            base_url,
            api,
            exposed=partial(runs_as_user, isolation, probed),
        ),
        scaffold=lambda name, model, base_url: seated_solver(
            locations, os.environ, name, model, base_url, exposed=partial(runs_as_user, isolation, probed)
        ),
        mirror=mirror,
    )


def build_worker_services(isolation: IsolationChoice, consented: bool) -> Services:
    """Build the object graph on a worker, which imports this function by name (decision 111)."""
    return build_services(isolation, consented=consented)


def runs_as_user(isolation: IsolationChoice, probed: ProbedBackends | None = None) -> bool:
    """Return whether runs would not be isolated, so that the code in them could read the user's files.

    Returns False if no backend can be used, because nothing will run then.
    """
    from gistpoint.core.errors import UserError
    from gistpoint.sandbox.ladder import UNSANDBOXED

    try:
        return _chosen_backend(isolation, True, None, probed=probed or ProbedBackends()).name == UNSANDBOXED
    except UserError:  # nothing will run
        return False


def refuse_exposed_key(endpoint: EndpointSettings, exposed: Callable[[], bool]) -> None:
    """Raise `SandboxUnavailableError` if a model's code could read the key of its endpoint (decision 122)."""
    from gistpoint.core.errors import SandboxUnavailableError

    if endpoint.has_secret and exposed():
        raise SandboxUnavailableError(
            "Without isolation, code that a model writes could read the key of its endpoint.",
            hint=(
                "Use a backend that isolates (`gistpoint doctor`), or an endpoint that needs no key, such as"
                " a proxy that another user runs."
            ),
        )


def solver_named(
    config: Path,
    environment: Mapping[str, str],
    model: str = "",
    base_url: str = "",
    api: ChatApi | None = None,
    *,
    exposed: Callable[[], bool] = lambda: False,
) -> AgentSolver:
    """Return the solver with a name, or the one that the environment or `config.toml` names.

    Raises `EndpointError` and `SettingsError` if a setting is missing or wrong, and `SandboxUnavailableError`
    if the endpoint has a key and the model's code would run `exposed`. Messages never contain the user's
    values.
    """
    from gistpoint.core.agents.solvers import BUILT_IN, built_in
    from gistpoint.sandbox.endpoints.settings import endpoint_settings

    if model.startswith(BUILT_IN):
        return built_in(model)
    endpoint = endpoint_settings(config, environment, model or None, base_url=base_url, api=api)
    refuse_exposed_key(endpoint, exposed)
    return endpoint_solver(endpoint)


def seated_solver(
    locations: Locations,
    environment: Mapping[str, str],
    scaffold: str,
    model: str,
    base_url: str,
    *,
    exposed: Callable[[], bool] = lambda: False,
) -> SeatedSolver:
    """Return the scaffold with a name, and the model with which it works.

    Raises `ScaffoldError` if there is no such scaffold or it can't be started, and the errors of
    `solver_named`.
    """
    from gistpoint.core.agents.scaffolds import (
        ScaffoldError,
        SeatedSolver,
        installed_names,
        installed_scaffold,
    )
    from gistpoint.core.errors import did_you_mean
    from gistpoint.sandbox.scaffolds import mini
    from gistpoint.sandbox.scaffolds.known_programs import PROGRAMS

    if scaffold in PROGRAMS:
        return _seated_program(locations.config, environment, scaffold, model, base_url, exposed)
    if scaffold == mini.NAME:
        mini.mini_environment(locations.cache)  # what can't be installed is reported before anything starts
        found: Scaffold | None = mini.MiniScaffold(locations.cache)
    else:
        found = installed_scaffold(scaffold)
    if found is None:
        known = [mini.NAME, *PROGRAMS, *installed_names()]
        raise ScaffoldError(
            f"There is no scaffold {visible_line(scaffold)!r}.{did_you_mean(scaffold, known)}",
            hint=f"There is {', '.join(known)}.",
        )
    return SeatedSolver(found, solver_named(locations.config, environment, model, base_url, exposed=exposed))


def _seated_program(
    config: Path,
    environment: Mapping[str, str],
    scaffold: str,
    model: str,
    base_url: str,
    exposed: Callable[[], bool],
) -> SeatedSolver:
    """Return a program that speaks MCP, and its model, whose address and key may be the vendor's own."""
    from gistpoint.core.agents.scaffolds import RelayedModel, SeatedSolver
    from gistpoint.sandbox.endpoints.settings import KEY_NAME, URL_NAME, endpoint_settings
    from gistpoint.sandbox.scaffolds.known_programs import PROGRAMS
    from gistpoint.sandbox.scaffolds.programs import mcp_program

    program = PROGRAMS[scaffold]
    url = base_url or environment.get(program.url_name) or program.base_url
    keys = [environment[name] for name in (*program.key_names, KEY_NAME) if environment.get(name)]
    given = {**environment, URL_NAME: url, **({KEY_NAME: keys[0]} if keys else {})}
    endpoint = endpoint_settings(config, given, model or None)
    refuse_exposed_key(endpoint, exposed)
    solver = replace(
        endpoint_solver(endpoint), made=lambda pace: lambda settings: RelayedModel(endpoint.model)
    )
    return SeatedSolver(mcp_program(scaffold, endpoint), solver)


def endpoint_solver(endpoint: EndpointSettings) -> AgentSolver:
    """Return the solver that calls the model at an endpoint, and retries failed calls."""
    from gistpoint.core.agents.settings import AgentSettings, TokenPrice
    from gistpoint.core.agents.solvers import AgentSolver

    def models(pace: RequestPace) -> ModelMaker:
        from gistpoint.sandbox.endpoints.throttle import Throttle

        paced = endpoint.paced(pace)
        throttle = Throttle()

        def model(settings: AgentSettings) -> ChatModel:
            from gistpoint.sandbox.endpoints.models import chat_model_at
            from gistpoint.sandbox.endpoints.retrying import RetryingModel
            from gistpoint.sandbox.endpoints.throttle import ThrottledModel

            gate = throttle.gate(endpoint.place, paced.limits)
            chat = chat_model_at(replace(paced, sampling=settings.sampling, prices=None), gate)
            return RetryingModel(ThrottledModel(chat, gate, reserve=settings.output_reserve))

        # Called once here, so that a missing package is reported before anything starts.
        model(AgentSettings())
        return model

    prices = endpoint.prices
    price = None if prices is None else TokenPrice(prices.prompt, prices.completion)
    return AgentSolver(endpoint.model, models, endpoint.place, price, endpoint.api)


def live_annotations(locations: Locations, folder: str, reviewer: str) -> LiveAnnotations | None:
    """Return the synchronisation of a folder's annotations with the chosen store; None if none is chosen."""
    from gistpoint.sessions.team import FILE as STORE_FILE

    if not (locations.config / STORE_FILE).exists():
        return None
    from gistpoint.core.machine_time import SystemTime
    from gistpoint.sessions.team.live import LiveAnnotations

    return LiveAnnotations(locations, SystemTime(), folder, reviewer)


def build_runner(
    isolation: IsolationChoice,
    *,
    demo: bool = False,
    ask: Callable[[str], bool] | None = None,
    probed: ProbedBackends | None = None,
) -> Runner:
    """Return a runner with the chosen isolation. `demo` is set for trusted code; `ask` asks for consent.

    Raises `SandboxUnavailableError` if that isolation does not work and nobody consents to running without
    isolation; such consent is stored.
    """
    from gistpoint.core.locations import Locations
    from gistpoint.sandbox.environments.store import EnvironmentStore
    from gistpoint.sandbox.testruns import SuiteRunner

    return SuiteRunner(
        _chosen_backend(isolation, demo, ask, probed=probed), EnvironmentStore(Locations.of_user().cache)
    )


def build_entrypoint_runner(
    isolation: IsolationChoice,
    *,
    demo: bool = False,
    ask: Callable[[str], bool] | None = None,
    image: bool = False,
    probed: ProbedBackends | None = None,
) -> EntrypointRunner:
    """Return a runner of gists, with the isolation chosen as in `build_runner`.

    With `image`, the isolation is the one that can run images, unless the command line names another. Raises
    `SandboxUnavailableError` as `build_runner` does.
    """
    from gistpoint.core.locations import Locations
    from gistpoint.sandbox.backends.base import IMAGES_RUN_ON
    from gistpoint.sandbox.environments.store import EnvironmentStore
    from gistpoint.sandbox.gistruns.runner import GistRunner

    backend = _chosen_backend(isolation, demo, ask, IMAGES_RUN_ON if image else "", probed)
    return GistRunner(backend, EnvironmentStore(Locations.of_user().cache))


def build_confirmer(
    isolation: IsolationChoice,
    *,
    demo: bool = False,
    ask: Callable[[str], bool] | None = None,
    probed: ProbedBackends | None = None,
) -> Confirmer | None:
    """Return a confirmer of passes, with the isolation chosen as in `build_runner`.

    None if confirmation is switched off. Raises `SandboxUnavailableError` as `build_runner` does.
    """
    from gistpoint.core.locations import Locations
    from gistpoint.sandbox.confirmation import confirmer_on
    from gistpoint.sandbox.environments.store import EnvironmentStore
    from gistpoint.sandbox.equivalence import SandboxEquivalenceTester

    backend = _chosen_backend(isolation, demo, ask, probed=probed)
    environments = EnvironmentStore(Locations.of_user().cache)
    return confirmer_on(backend, environments, SandboxEquivalenceTester(backend, environments))


def build_equivalence_tester(
    isolation: IsolationChoice, *, ask: Callable[[str], bool] | None = None
) -> EquivalenceTester:
    """Return a tester that compares repairs with originals; the isolation is chosen as in `build_runner`."""
    from gistpoint.core.locations import Locations
    from gistpoint.sandbox.environments.store import EnvironmentStore
    from gistpoint.sandbox.equivalence import SandboxEquivalenceTester

    return SandboxEquivalenceTester(
        _chosen_backend(isolation, False, ask), EnvironmentStore(Locations.of_user().cache)
    )


def _chosen_backend(
    isolation: IsolationChoice,
    demo: bool,
    ask: Callable[[str], bool] | None,
    needed: str = "",
    probed: ProbedBackends | None = None,
) -> Backend:
    from gistpoint.core.errors import SandboxUnavailableError
    from gistpoint.core.locations import Locations
    from gistpoint.core.user_settings import read_user_settings
    from gistpoint.sandbox.ladder import (
        UNSANDBOXED,
        builtin_backends,
        choose,
        has_consented,
        installed_backends,
        remember_consent,
    )

    locations = Locations.of_user()
    given = isolation.sandbox or needed
    requested = given or read_user_settings(locations.config).sandbox or None
    allowed = isolation.allow_unsandboxed
    known = builtin_backends() if requested is None else {**builtin_backends(), **installed_backends()}
    known = (probed or ProbedBackends()).once(known)
    try:
        backend = choose(
            requested, consented=demo or allowed or has_consented(locations.config), backends=known
        )
    except SandboxUnavailableError as error:
        if demo or requested not in (None, "plain") or not (ask or ProcessConsent.ask)(error.message):
            raise
        allowed, backend = True, choose(requested, consented=True, backends=known)
    if allowed and backend.name == UNSANDBOXED:
        remember_consent(locations.config)
    return backend
