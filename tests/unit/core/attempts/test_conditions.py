"""Budgets and settings are given at an attempt's start, recorded, in its brief, and kept when it resumes."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, build_task
from fakes import FakeClock, FakeRunner
from gist_tasks import FAITHFUL, OWNED, TEST, FakeEntrypoints, FakeGistJudge, build_gist_task
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, structs
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import event_data
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.brief import TEMPLATES, gist_template
from gistpoint.core.kinds.gist.model import STRATEGIES, GistSettings, gist_settings, is_gist, with_settings
from gistpoint.core.kinds.gist.overrides import (
    KEYS,
    TOOL_PROFILES,
    GistOverrides,
    GistSettingsError,
    differing,
    in_profile,
    parse_overrides,
    read_overrides,
    settings_data,
    toml_lines,
)
from gistpoint.core.kinds.gist.state import gist_of
from gistpoint.core.kinds.gist.tools import OPTIONAL_TOOLS
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode, Task

OTHERS = GistOverrides(True, ("bash", "edit_and_execute"), "tracing", True, 7, 2)


@pytest.fixture(scope="module")
def gist(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return build_gist_task(tmp_path_factory.mktemp("gist"))


def begun(task: Task, memory: Memory | None = None, **more: Any) -> tuple[Attempt, Memory]:
    clock = FakeClock()
    memory = memory or Memory(clock)
    answer = read_answer(task)
    judge: Any = RepairJudge(task, answer, FakeRunner(CHECKS))
    if is_gist(task):
        judge = FakeGistJudge(task, gist_answer(answer), FakeEntrypoints())
    attempt = Attempt(task, judge, memory, clock, events=memory.events)
    if memory.events:
        attempt.resume_process()
    else:
        attempt.start(Enrolment(role=more.pop("role", Role.BASELINE)), **more)
    return attempt, memory


# Budgets


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
def test_budgets_are_given_at_the_start_and_told_in_the_brief(tmp_path: Path, mode: Mode) -> None:
    task = build_task(tmp_path, mode)
    attempt, memory = begun(task, budgets=Budgets(32, 8, 600))
    again, _ = begun(task, memory)
    for one in (attempt, again):
        brief = render_brief(one.task)
        assert "You have 32 tool uses, of which at most 8 may be submissions. You have 10 minutes" in brief
        assert one.state.header.brief_sha256 == sha256_of_text(brief)
        assert one.task.id == task.id
    assert render_brief(begun(task)[0].task) == render_brief(task)


@pytest.mark.parametrize("budgets", [Budgets(0, 1), Budgets(1, 0), Budgets(-3, 2)])
def test_budgets_of_nothing_are_refused(tmp_path: Path, budgets: Budgets) -> None:
    with pytest.raises(AttemptError, match="one tool use and one submission"):
        begun(build_task(tmp_path), budgets=budgets)


def test_a_gist_has_the_steps_that_it_was_given(gist: Task) -> None:
    attempt, _ = begun(gist, budgets=Budgets.of_steps(3))
    assert "You have 3 steps" in render_brief(attempt.task)
    for _ in range(3):
        attempt.call("list_directory", {})
    assert attempt.state.ended


# Tools


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY, Mode.GIST])
def test_an_attempt_that_is_resumed_has_the_tools_that_it_began_with(tmp_path: Path, mode: Mode) -> None:
    task = build_gist_task(tmp_path) if mode is Mode.GIST else build_task(tmp_path, mode)
    attempt, memory = begun(task)
    names = tuple(tool.name for tool in attempt.tools)
    assert attempt.state.header.tool_names == names
    first, *others = memory.events

    def resumed(**changes: Any) -> Attempt:
        earlier = Memory(FakeClock())
        earlier.events = [replace(first, data=structs.replace(attempt.state.header, **changes)), *others]
        return begun(task, earlier)[0]

    added_since = resumed(tool_names=tuple(name for name in names if name != "search_code"))
    assert [tool.name for tool in added_since.tools] == [name for name in names if name != "search_code"]
    assert [tool.name for tool in added_since.offered()] == [tool.name for tool in added_since.tools]
    answer = added_since.call("search_code", {"pattern": "x"})
    assert answer.refused
    assert "There is no tool 'search_code' here" in answer.text
    assert [tool.name for tool in resumed(tool_names=(*names, "taken_away")).tools] == list(names)
    assert [tool.name for tool in resumed(tool_names=UNSET).tools] == list(names)


# Settings of a gist


def test_settings_are_recorded_and_decide_tools_and_brief(gist: Task) -> None:
    attempt, memory = begun(OTHERS.on(gist, TEST))
    attempt.call("edit_gist", {"old": "assert", "new": "assert  "})
    again, _ = begun(gist, memory)
    header = attempt.state.header.written()
    assert header["gist_settings"] == {
        "execution": True,
        "tools": ["bash", "edit_and_execute"],
        "strategy": "tracing",
        "give_test": True,
        "score_budget": 2,
        "template": gist_template(GistSettings(strategy="tracing", give_test=True)),
    }
    assert event_data("attempt_started", json.loads(json.dumps(header))) == attempt.state.header
    for one in (attempt, again):
        assert {"bash", "edit_and_execute", "score_gist"} <= {tool.name for tool in one.offered()}
        brief = render_brief(one.task)
        assert "You have 7 steps" in brief
        assert "`score_gist [content]`" in brief
        assert TEST.strip() in brief
        assert header["brief_sha256"] == sha256_of_text(brief)
        assert (one.state.budgets.tool_uses, one.state.budgets.scores) == (7, 2)
        assert gist_of(one.state).text.startswith(TEST.strip()[:10])
    assert again.call("bash", {"command": "ls"}).text.startswith("Exit status 0.")


def test_two_attempts_of_one_task_differ_in_their_settings_alone(gist: Task) -> None:
    plain, _ = begun(gist)
    other, _ = begun(OTHERS.on(gist, TEST))
    assert plain.state.header.task_id == other.state.header.task_id
    assert plain.state.header.extra["gist_settings"] == settings_data(gist)
    assert plain.call("bash", {"command": "ls"}).refused
    assert not other.call("bash", {"command": "ls"}).refused


def test_an_attempt_keeps_its_settings_if_the_task_here_has_others(gist: Task, tmp_path: Path) -> None:
    attempt, memory = begun(gist, role=Role.QA)
    elsewhere = build_gist_task(tmp_path, GistSettings(OWNED, True, "reading", True, OPTIONAL_TOOLS, 9))
    assert elsewhere.id == gist.id
    again, _ = begun(elsewhere, memory)
    assert render_brief(again.task) == render_brief(attempt.task)
    assert [tool.name for tool in again.tools] == [tool.name for tool in attempt.tools]


def test_an_attempt_made_before_keeps_its_task_s_settings(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path, GistSettings(OWNED, True, "reading", True, ("bash",), 1))
    attempt, memory = begun(task)
    memory.change(0, gist_settings=None)
    again, _ = begun(task, memory)
    assert render_brief(again.task) == render_brief(task) == render_brief(attempt.task)
    assert [tool.name for tool in again.tools] == [tool.name for tool in attempt.tools]


def test_a_practice_attempt_is_told_that_it_may_score(gist: Task) -> None:
    practice, _ = begun(gist, role=Role.DEMO)
    assert "`score_gist [content]`" in render_brief(practice.task)
    assert "score_gist" not in render_brief(begun(gist)[0].task)


def test_recorded_settings_that_can_t_be_read_are_named(gist: Task) -> None:
    _, memory = begun(gist)
    memory.change(0, gist_settings={**settings_data(gist), "tools": ["rm"]})
    with pytest.raises(UserError, match="header of the attempt: 'tools' has 'rm'"):
        begun(gist, memory)


@given(
    st.builds(
        GistOverrides,
        execution=st.just(UNSET) | st.booleans(),
        tools=st.just(UNSET) | st.lists(st.sampled_from(OPTIONAL_TOOLS), unique=True).map(tuple),
        strategy=st.just(UNSET) | st.sampled_from(STRATEGIES),
        give_test=st.just(UNSET) | st.booleans(),
        steps=st.just(UNSET) | st.integers(1, 99),
        score_budget=st.just(UNSET) | st.integers(-1, 5),
    )
)
def test_what_a_task_lacks_of_settings_is_the_file_that_gives_them(
    gist: Task, overrides: GistOverrides
) -> None:
    if "edit_and_execute" in (overrides.tools or ()) and not overrides.execution:
        with pytest.raises(GistSettingsError, match="edit_and_execute"):
            overrides.on(gist, TEST)
        return
    wanted = overrides.on(gist, TEST)
    values = differing(wanted, gist)
    text = "\n".join(toml_lines(values))
    assert tomllib.loads(text) == values
    assert set(values) <= set(KEYS)
    assert parse_overrides(text.encode(), "f").on(gist, TEST) == wanted
    assert parse_overrides(json.dumps(values).encode(), "f").on(gist, TEST) == wanted
    assert differing(wanted, wanted) == {}
    attempt, memory = begun(wanted)
    assert begun(gist, memory)[0].task == attempt.task
    assert gist_template(gist_settings(wanted)) == wanted.brief.template


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("stratgy = 'tracing'", "there is no setting 'stratgy'. Did you mean 'strategy'?"),
        ("owned = []", "there is no setting 'owned'."),
        ("[gist]\nsteps = 3", "there is no setting 'gist'."),
        ("strategy = 'traceing'", "'strategy' has 'traceing'. Did you mean 'tracing'?"),
        ("tools = ['bsh']", "'tools' has 'bsh'. Did you mean 'bash'?"),
        ("tools = ['score_gist']", "'tools' has 'score_gist'."),
        ("tools = 'bash'", "'tools' must be a list"),
        ("tools = [1]", "'tools' must be a list of strings"),
        ("execution = 1", "'execution' must be true or false"),
        ('{"execution": null}', "'execution' must be true or false"),
        ("steps = 0", "'steps' must be at least 1"),
        ("steps = true", "'steps' must be a whole number"),
        ("steps = 2.5", "'steps' must be a whole number"),
        ("score_budget = -2", "'score_budget' must be at least -1"),
        ("steps = ", "neither TOML nor a JSON object"),
        ("[1, 2]", "neither TOML nor a JSON object"),
        ('{"steps": 3', "neither TOML nor a JSON object"),
        ('{"a":' * 5_000, "neither TOML nor a JSON object"),
        ("a = " + "[" * 5_000, "neither TOML nor a JSON object"),
        ("\udcff", "neither TOML nor a JSON object"),
    ],
)
def test_what_is_wrong_with_a_file_of_settings_is_named(text: str, told: str) -> None:
    with pytest.raises(GistSettingsError) as error:
        parse_overrides(text.encode("utf-8", "surrogateescape"), "s.toml")
    assert told in error.value.message
    assert "s.toml" in error.value.message


def test_settings_that_contradict_each_other_or_the_task_are_refused(gist: Task, tmp_path: Path) -> None:
    with pytest.raises(GistSettingsError, match="execution is off") as error:
        GistOverrides(tools=("edit_and_execute",)).on(gist, TEST)
    assert "execution = true" in error.value.hint
    running = with_settings(gist, replace(gist_settings(gist), execution=True, tools=("edit_and_execute",)))
    with pytest.raises(GistSettingsError, match="execution is off"):
        GistOverrides(execution=False).on(running, TEST)
    with pytest.raises(GistSettingsError, match="is not a test"):
        GistOverrides(give_test=True).on(gist, "")
    with pytest.raises(GistSettingsError, match="is not a gist"):
        GistOverrides(steps=3).on(build_task(tmp_path), "")


def test_the_guide_s_file_of_settings_is_one(gist: Task) -> None:
    guide = (Path(__file__).parents[4] / "docs" / "guide" / "gists.md").read_text(encoding="utf-8")
    text = guide.partition("```toml\n")[2].partition("```")[0]
    assert set(tomllib.loads(text)) == set(KEYS)
    assert parse_overrides(text.encode(), "f").on(gist, TEST, ("[]", "2")).budgets.tool_uses == 30


def test_no_settings_are_the_task_s_own(gist: Task) -> None:
    assert read_overrides({}, "f").on(gist, TEST) == gist
    assert parse_overrides(b"", "f") == parse_overrides(b"{}", "f") == GistOverrides()


def test_a_brief_keeps_the_version_that_its_task_was_made_with(
    gist: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("gist", "reading"):
        monkeypatch.setitem(TEMPLATES, part, TEMPLATES[part].rpartition("-")[0] + "-9")
    met = GistOverrides(strategy="reading").on(gist, TEST)
    made_with = gist.brief.template
    assert met.brief.template == f"{made_with}+{made_with.replace('gist', 'gist-reading')}"
    back = GistOverrides(strategy="").on(met, TEST)
    assert back.brief == gist.brief


def test_a_gist_is_written_under_given_settings(gist: Task) -> None:
    attempt, _ = begun(OTHERS.on(gist, TEST))
    assert not attempt.call("edit_and_execute", {"content": FAITHFUL, "execute": True}).refused
    attempt.call("submit_gist", {})
    assert attempt.state.solved


@pytest.mark.parametrize(
    ("profile", "tools", "execution"),
    [
        ("all", ("trace", "bash"), True),
        ("browse", (), False),
        ("bash", ("bash",), True),
        ("edit_and_execute", ("edit_and_execute",), True),
    ],
)
def test_a_profile_chooses_the_tools_and_nothing_else(
    tmp_path: Path, profile: str, tools: tuple[str, ...], execution: bool
) -> None:
    default = GistSettings(OWNED, execution=True, tools=("trace", "bash"))
    assert in_profile(profile) is None if profile == "all" else in_profile(profile) == TOOL_PROFILES[profile]
    chosen = in_profile(profile, GistOverrides(steps=7, strategy="reading"))
    assert chosen is not None
    task = chosen.on(build_gist_task(tmp_path, default), "")
    settings = gist_settings(task)
    assert (settings.tools, settings.execution, settings.strategy) == (tools, execution, "reading")
    assert task.budgets.tool_uses == 7
