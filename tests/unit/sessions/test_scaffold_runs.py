"""A run with another agent is planned, named and resumed only with the same version of that agent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from builders import build_services, build_task

from gistpoint.core import plugins
from gistpoint.core.agents import scaffolds
from gistpoint.core.agents.scaffolds import ScaffoldIdentity, Seat, SeatedSolver
from gistpoint.core.agents.solvers import built_in
from gistpoint.core.errors import UserError
from gistpoint.core.plugins import PluginError
from gistpoint.sessions.agentruns.beginning import (
    AgentCondition,
    AgentModel,
    AgentPace,
    BeginAgentRun,
    PlannedRun,
    begin_run,
    plan_run,
    resume_run,
)
from gistpoint.sessions.services import Services

SEARCHER = "builtin:searcher"


@dataclass
class Idle:
    """A scaffold that does nothing."""

    identity: ScaffoldIdentity

    def attempt(self, seat: Seat) -> None:
        pass


def services_with(folder: Path, identity: ScaffoldIdentity) -> Services:
    seated = SeatedSolver(Idle(identity), built_in(SEARCHER))
    found = build_services(folder)
    return replace(found, scaffold=lambda name, model, base_url: seated)


def planned(services: Services, *, setting: str = "tools", seed: int | None = None) -> PlannedRun:
    wanted = BeginAgentRun(
        tasks=(str(services.locations.tasks),),
        model=AgentModel(model=SEARCHER, scaffold="idle", seed=seed),
        condition=AgentCondition(setting=setting),  # type: ignore[arg-type]
    )
    return plan_run(services, wanted, None, print)


def test_a_scaffold_is_part_of_the_name_the_settings_and_the_ports(tmp_path: Path) -> None:
    services = services_with(tmp_path, ScaffoldIdentity("idle", "1"))
    build_task(services.locations.tasks)
    plan = planned(services, seed=3)
    assert plan.name.startswith("idle-builtin-searcher-")
    assert (plan.settings.framework, plan.settings.agent.system) == ("idle", "none")
    with pytest.raises(UserError, match="only on this machine"):
        begin_run(services, plan, AgentPace(cluster="tcp://x:1"))
    run, ports = begin_run(services, plan, AgentPace())
    with pytest.raises(UserError, match="only on this machine"):
        resume_run(services, run.name, "", AgentPace(cluster="tcp://x:1"))
    assert ports.scaffold is plan.scaffold
    resumed, again = resume_run(services, run.name, "", AgentPace())
    assert resumed.settings == plan.settings
    assert again.scaffold is plan.scaffold
    newer = services_with(tmp_path, ScaffoldIdentity("idle", "2"))
    with pytest.raises(UserError, match="was started with idle 1; here is idle 2"):
        resume_run(newer, run.name, "", AgentPace())
    assert planned(newer, seed=3).name != plan.name
    other = services_with(tmp_path, ScaffoldIdentity("idle", "1", prompt_sha256="x"))
    with pytest.raises(UserError, match="other settings"):
        resume_run(other, run.name, "", AgentPace())


def test_settings_that_a_scaffold_would_ignore_are_refused(tmp_path: Path) -> None:
    services = services_with(tmp_path, ScaffoldIdentity("idle", "1", relayed=True))
    build_task(services.locations.tasks)
    assert planned(services).settings.scaffold is not None
    with pytest.raises(UserError, match="needs tools"):
        planned(services, setting="static")
    with pytest.raises(UserError, match="sampling can't be chosen"):
        planned(services, seed=3)


class Entry:
    """An entry point of another package."""

    group, name, value, dist = scaffolds.GROUP, "idle", "idle:Idle", None

    def __init__(self, loaded: object) -> None:
        self._loaded = loaded

    def load(self) -> object:
        return self._loaded


def test_another_packages_scaffold_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = Idle(ScaffoldIdentity("idle", "1"))
    for module in (plugins, scaffolds):
        monkeypatch.setattr(module, "declared", lambda group: [Entry(lambda: idle)])
    found = scaffolds.installed_scaffold("idle")
    assert isinstance(found, scaffolds.InstalledScaffold)
    assert (found.scaffold, found.identity) == (idle, idle.identity)
    assert scaffolds.installed_scaffold("other") is None
    assert scaffolds.installed_names() == ["idle"]
    monkeypatch.setattr(plugins, "declared", lambda group: [Entry(7)])
    with pytest.raises(PluginError, match="can't be called"):
        scaffolds.installed_scaffold("idle")
