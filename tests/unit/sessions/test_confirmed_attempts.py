"""Passes of agents' runs and of MCP are confirmed after the end; the figures agree with the raw events."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from agent_runs import Home
from builders import REPAIR, build_services, build_task
from confirmers import CONFIRMED, CONTRADICTED, MARKED, ScriptedConfirmer, controlled
from fakes import FakeClock

from gistpoint.core.attempts.events import PassConfirmed
from gistpoint.core.errors import AttemptError
from gistpoint.core.running import RunContext
from gistpoint.sessions.agentruns.figure_lines import summary_lines
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.attempt_outcomes import attempt_rows
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.confirming import confirm_after_end
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.served import ServedAttempt
from gistpoint.sessions.team.attempts import AttemptElsewhereError


def raw_counts(attempts: Path) -> Counter[str]:
    """Count passes from their raw events: by the tests alone, and by the last confirmation."""
    found: Counter[str] = Counter()
    for journal in attempts.glob(f"*/{JOURNAL}"):
        lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
        if not any(line["type"] == "score" and line["data"].get("solved") for line in lines):
            continue
        said = [line["data"]["result"] for line in lines if line["type"] == "confirmation"]
        found.update(["by tests", said[-1] if said else "not asked"])
    return found


def test_the_figures_of_a_run_are_those_of_the_raw_events(tmp_path: Path) -> None:
    home = Home(tmp_path)
    tasks = [home.task(number) for number in range(1, 5)]
    answers = iter([CONFIRMED, CONTRADICTED, MARKED])
    services = build_services(tmp_path / "services")

    def confirm(attempts: object, task: object, attempt_id: str, run: RunContext) -> None:
        if (answer := next(answers, None)) is not None:
            asking = replace(
                services, confirmer_for=lambda task: ScriptedConfirmer(answer), attempts=home.attempts
            )
            confirm_after_end(asking, attempt_id, task=task, run=run)  # type: ignore[arg-type]

    for task in tasks:
        controlled(task.folder)
    run = home.run(*tasks)
    AgentRunner(run, replace(home.ports, confirm=confirm), at_once=1).work()
    figures = home.figures(run) if hasattr(home, "figures") else None
    from gistpoint.sessions.agentruns.figures import figures_of

    totals = (figures or figures_of(run, home.attempts)).totals
    counted = raw_counts(tmp_path / "attempts")
    assert counted == {"by tests": 4, "confirmed": 1, "contradicted": 1, "unconfirmed": 1, "not asked": 1}
    assert totals.by_tests is not None
    assert totals.solved is not None
    assert (totals.by_tests.count, totals.by_tests.of) == (counted["by tests"], 4)
    assert totals.confirmation == {name: count for name, count in counted.items() if name != "by tests"}
    assert totals.solved.count == 2, "the contradicted and the marked one wait to be read"
    assert "1 not asked" in summary_lines(totals, "r")["solved by the tests alone"]
    rows = attempt_rows(list(home.attempts.summaries()))
    assert (rows["solved"], rows["solved_by_tests"]) == (2, 4)
    assert rows["confirmation"] == totals.confirmation


def test_a_served_attempt_is_confirmed_when_it_is_closed(tmp_path: Path) -> None:
    services = replace(build_services(tmp_path), confirmer_for=lambda task: ScriptedConfirmer())
    task = build_task(services.locations.tasks)
    controlled(task.folder)
    for at_once in (False, True):
        told: list[str] = []
        served = ServedAttempt(services, task, {"kind": "mcp"}, tell=told.append)
        answer = served.call("submit_attempt", {"func_code": REPAIR}, "", {}, RunContext())
        assert "confirm" not in answer.text
        served.close(at_once=at_once)
        served.close()
        assert ("confirmation: confirmed" in told) is not at_once


class _ElsewhereListener:
    """A listener for which another machine is continuing every attempt."""

    def resuming(self, folder: Path) -> None:
        raise AttemptElsewhereError(f"Attempt {folder.name} now continues on another machine (other).")

    def opened(self, folder: Path) -> None: ...
    def wrote(self, folder: Path) -> None: ...
    def closed(self, folder: Path) -> None: ...


def test_whoever_opens_an_attempt_reports_that_another_machine_continues_it(tmp_path: Path) -> None:
    services = build_services(tmp_path)
    task = build_task(services.locations.tasks)
    opened = services.start(task)
    name = opened.attempt.state.attempt_id
    opened.close()
    root = services.locations.attempts
    listened = AttemptStore(root, FakeClock(), "1", listener=_ElsewhereListener())
    elsewhere = replace(services, attempts=listened)
    served = ServedAttempt(elsewhere, task, {"kind": "mcp"}, resumed=services.attempts.summary(name))
    answer = served.call("read_file", {"file_path": "README.md"}, "", {}, RunContext())
    assert answer.refused
    assert "continues on another machine" in answer.text
    data = (root / name / JOURNAL).read_bytes()
    for reopen in (
        lambda: elsewhere.resume(name),
        lambda: listened.adopt(name, data),
        lambda: listened.add_after_end(name, PassConfirmed.of("call-1", CONFIRMED)),
    ):
        with pytest.raises(AttemptError, match="another machine"):
            reopen()


def test_nothing_is_added_to_an_attempt_that_has_not_ended_or_is_another_machines(tmp_path: Path) -> None:
    services = build_services(tmp_path)
    opened = services.start(build_task(services.locations.tasks))
    name = opened.attempt.state.attempt_id
    opened.close()
    event = PassConfirmed.of("call-1", CONFIRMED)
    before = (services.locations.attempts / name / JOURNAL).read_bytes()
    with pytest.raises(AttemptError, match="has not ended"):
        services.attempts.add_after_end(name, event)
    assert (services.locations.attempts / name / JOURNAL).read_bytes() == before
