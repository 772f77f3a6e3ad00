"""A gist task on disk: written and read back, one of the first version, and errors by file and key."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from builders import build_task, write_files
from gist_tasks import FILES, ORIGINAL, OWNED, TEST, build_gist_task

from gistpoint.core.entrypoints.runs import CommandRun, Raised, TestRun, TestsRun
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.archive import pack_task, unpack_task
from gistpoint.core.kinds.folder import read_answer, read_task, write_task
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.brief import gist_template
from gistpoint.core.kinds.gist.model import STRATEGIES, GistSettings, entrypoint_of, gist_settings
from gistpoint.core.kinds.gist.overrides import ContradictionError, require_consistent
from gistpoint.core.kinds.gist.rates import is_glue
from gistpoint.core.kinds.gist.tools import OPTIONAL_TOOLS
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.tasks.brief import template_sha256, template_text
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.identity import hash_of_ids
from gistpoint.core.tasks.model import Answer, Task

GOLDEN = Path(__file__).parents[3] / "data" / "gist-task-1"
SETTINGS = GistSettings(OWNED, True, "tracing", True, ("trace", "bash"), None)


@pytest.mark.parametrize(
    "settings", [GistSettings(OWNED), SETTINGS, GistSettings((), False, "reading", score_budget=3)]
)
def test_written_task_is_read_back(tmp_path: Path, settings: GistSettings) -> None:
    task = build_gist_task(tmp_path, settings)
    assert gist_settings(task) == settings
    answer = read_answer(task)
    before = [(task.folder / name).read_bytes() for name in ("task.toml", "answer/answer.json")]
    write_task(task, answer)
    assert [(task.folder / name).read_bytes() for name in ("task.toml", "answer/answer.json")] == before
    assert read_task(task.folder) == task
    pack_task(task.folder, tmp_path / "one.tar.zst")
    unpacked = unpack_task(tmp_path / "one.tar.zst", tmp_path / "unpacked")
    assert read_answer(unpacked) == answer
    pack_task(unpacked.folder, tmp_path / "again.tar.zst")
    assert (tmp_path / "again.tar.zst").read_bytes() == (tmp_path / "one.tar.zst").read_bytes()


def test_a_task_of_the_first_version_is_read(tmp_path: Path) -> None:
    write_files(FILES, tmp_path / "task")
    shutil.copytree(GOLDEN, tmp_path / "task", dirs_exist_ok=True)
    task = read_task(tmp_path / "task")
    assert gist_settings(task) == SETTINGS
    assert task.budgets == Budgets.of_steps(30, 900)
    assert (entrypoint_of(task), task.brief.test) == ("pytest tests/test_prices.py::test_total", TEST)
    answer = gist_answer(read_answer(task))
    assert answer.originals == (ORIGINAL, ORIGINAL, ORIGINAL)
    assert answer.reference is not None
    assert answer.reference.line_existence == 98.5
    assert render_brief(task).startswith("# Write a gist")


def test_runs_of_a_program_and_of_failing_tests_are_kept(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)
    answer = gist_answer(read_answer(task))
    failed = TestRun(Outcome.FAILED, "a\n", "b\n", Raised("ValueError", "no\n"), "call")
    program = CommandRun(
        RunStatus.FINISHED, -9, "out", "err", Raised("SystemExit", "1"), files={"a.txt": "0f"}
    )
    broken = TestsRun(RunStatus.COULD_NOT_RUN, {}, Raised("SyntaxError", "x"))
    for run in (TestsRun(RunStatus.FINISHED, {"tests/test_prices.py::test_total": failed}), program, broken):
        changed = replace(answer, originals=(run, run), test=None, reference=None, compared_files=("a.txt",))
        write_task(task, Answer((), (), of_kind=changed))
        assert gist_answer(read_answer(task)) == changed
    none = replace(task, suite=replace(task.suite, tests=0))
    write_task(none, Answer((), (), of_kind=changed))
    assert read_task(task.folder, verify=False) == none


def test_settings_budgets_and_texts_are_no_part_of_the_identity(tmp_path: Path) -> None:
    one = build_gist_task(tmp_path, GistSettings(OWNED))
    assert build_gist_task(tmp_path, SETTINGS, budgets=Budgets.of_steps(9)).id == one.id
    other = build_gist_task(tmp_path, files={**FILES, "more.py": ""})
    assert other.id != one.id


def broken(task: Task, change: Callable[[dict[str, Any]], object], *, answer: bool = False) -> str:
    path = task.folder / ("answer/answer.json" if answer else "task.toml")
    text = path.read_text()
    values = json.loads(text) if answer else tomllib.loads(text)
    change(values["gist"] if answer else values)
    path.write_text(json.dumps(values) if answer else tomli_w.dumps(values))
    with pytest.raises(TaskError) as caught:
        read_task(task.folder)
    path.write_text(text)
    return caught.value.message


@pytest.mark.parametrize("key", ["owned", "execution", "strategy", "give_test", "tools", "score_budget"])
def test_a_setting_that_is_missing_or_of_another_type_is_named(tmp_path: Path, key: str) -> None:
    task = build_gist_task(tmp_path)
    assert f"'gist.{key}' is missing" in broken(task, lambda values: values["gist"].pop(key))
    assert f"'gist.{key}' must be" in broken(task, lambda values: values["gist"].update({key: {}}))


def test_values_that_mean_nothing_are_named(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)
    assert "'gist' is missing" in broken(task, lambda values: values.pop("gist"))
    assert "'entrypoint' is missing" in broken(task, lambda values: values.pop("entrypoint"))
    assert "'gist.tools' has 'telnet'" in broken(task, lambda values: values["gist"].update(tools=["telnet"]))
    assert "'gist.strategy' has 'luck'" in broken(task, lambda values: values["gist"].update(strategy="luck"))
    assert "'gist.score_budget' must be at least -1" in broken(
        task, lambda v: v["gist"].update(score_budget=-2)
    )


def test_an_answer_that_fits_nothing_is_named(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)

    def said(change: Callable[[dict[str, Any]], object]) -> str:
        return broken(task, change, answer=True)

    assert "two or more runs" in said(lambda gist: gist.update(originals=gist["originals"][:1]))
    assert "'gist.trace' does not contain a trace" in said(lambda gist: gist["trace"].pop("functions"))
    assert "'gist.originals[0].status' has 'fine'" in said(
        lambda gist: gist["originals"][0].update(status="fine")
    )
    renamed = {
        "tests/test_prices.py::test_other": {"outcome": "passed", "stdout": "", "stderr": "", "phase": ""}
    }
    assert "'suite.ids_sha256'" in said(lambda gist: gist["originals"][2].update(tests=renamed))
    broken_test = {**renamed, "other": "passed"}
    assert "'gist.originals[1].tests.other' must be a table" in said(
        lambda g: g["originals"][1].update(tests=broken_test)
    )
    for source in ("", "def test_total(:", "def test_other(): pass\n", "(" * 5_000):
        assert "'gist.test.source' does not contain the test 'test_total'" in said(
            lambda gist, source=source: gist["test"].update(source=source)  # type: ignore[misc]
        )
    assert "does not contain the test 'mean'" in said(
        lambda gist: gist["test"].update(qualname="mean", doctest=True, source="def mean(): pass\n")
    )
    half = "\ud800"  # half of a surrogate pair, allowed in JSON and not in a name
    assert "answer.json can't be read" in said(lambda gist: gist["originals"][0].update({half: ""}))
    assert "answer.json can't be read" in said(lambda gist: gist["originals"][0].update(status=half))
    assert hash_of_ids(ORIGINAL.tests) == task.suite.ids_sha256


def test_a_repair_has_no_gist(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    with pytest.raises(TaskError, match="is not a gist"):
        _ = gist_settings(task)
    with pytest.raises(TaskError, match="belongs to a repair"):
        _ = gist_answer(read_answer(task))


# The brief


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("give_test", [False, True])
@pytest.mark.parametrize("execution", [False, True])
def test_brief_tells_what_the_solver_must_know(
    tmp_path: Path, strategy: str, give_test: bool, execution: bool
) -> None:
    settings = GistSettings(OWNED, execution, strategy, give_test, OPTIONAL_TOOLS)
    task = build_gist_task(tmp_path, settings, budgets=Budgets.of_steps(17, 600))
    text = render_brief(task)
    assert "{{" not in text
    assert entrypoint_of(task) in text
    assert "It may not import `shop`" in text
    assert "You have 17 steps" in text
    assert "10 minutes" in text
    assert "unchanged except for its imports" in text
    assert "the command is run on the gist, alone in an empty folder" in text
    for word in ("self-contained", "faithful", "minimal", "grounded"):
        assert f" {word}: " in text
    assert ("How to proceed" in text) is bool(strategy)
    assert ("predict the trace" in text) is (strategy == "tracing")
    assert ("def test_total" in text) is give_test
    assert ("`edit_and_execute content [execute]`" in text) is execution
    assert ("No code of yours is run before you hand in" in text) is not execution
    assert "score_gist" not in text
    for path in ("shop/prices.py", "discount"):
        assert path not in text


def test_each_part_of_a_template_counts_in_its_hash() -> None:
    names = [gist_template(GistSettings(strategy=s, give_test=g)) for s in STRATEGIES for g in (False, True)]
    assert names[0] == "gist-3"
    assert names[3] == "gist-3+gist-tracing-3+gist-give-test-3"
    assert len({template_text(name) for name in names}) == len(names)
    for name in ("gist-0", "gist-2+gist-luck-1", "gist-2+", "+", "../gist-2"):
        with pytest.raises(TaskError):
            template_text(name)


def test_a_task_keeps_the_version_that_it_was_made_with(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)
    old = replace(
        task, brief=replace(task.brief, template="gist-1", template_sha256=template_sha256("gist-1"))
    )
    write_task(old, read_answer(task))
    assert "only imports may change" in render_brief(read_task(task.folder))
    assert "delete lines that never run" in render_brief(task)


def test_the_glue_of_the_brief_is_glue(tmp_path: Path) -> None:
    text = render_brief(build_gist_task(tmp_path))
    block = text.partition("  import sys\n")
    lines = ["import sys", block[2].partition("\n")[0].strip(), "total_of = total"]
    assert lines[1] == "shop = sys.modules[__name__]"
    assert all(line in text for line in lines)
    assert "`types.SimpleNamespace(total=total)`" in text
    assert all(is_glue(line) for line in [*lines, "costs = types.SimpleNamespace(total=total)"])


def test_settings_that_contradict_each_other_make_no_task_and_old_tasks_with_them_open(
    tmp_path: Path,
) -> None:
    running = GistSettings(OWNED, tools=("edit_and_execute",))
    with pytest.raises(ContradictionError, match="Add --execution"):
        require_consistent(running, is_test=True)
    require_consistent(replace(running, execution=True), is_test=True)
    with pytest.raises(ContradictionError, match="not a test"):
        require_consistent(GistSettings(OWNED, give_test=True), is_test=False)
    assert gist_settings(build_gist_task(tmp_path, running)) == running
