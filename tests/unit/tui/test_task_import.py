"""`task import`: sound rows become tasks, damaged ones are reported by line, unavailable ones wait."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from breakpoint_records import record_of
from builders import CHECKS, GOOD
from confirmers import ScriptedConfirmer
from fakes import FakeMapper, FakeRunner

from gistpoint.core.errors import EnvironmentBuildError, SourceError
from gistpoint.core.generation.making import REFUSALS_COST, TEMPLATES
from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.kinds.folder import read_answer, read_task, verify_identity, write_task
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.brief import template_text
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sessions.imports import ImportLedger
from gistpoint.tui import cli
from gistpoint.tui.commands import task_import

Captured = pytest.CaptureFixture[str]
URL, COMMIT, PATH = "https://github.com/someone/shop.git", "c0ffee" * 6, "shop/prices.py"


class World:
    """A runner, the only available repository, and the requested sources."""

    def __init__(self, folder: Path) -> None:
        self.runner = FakeRunner(CHECKS)
        self.folder = folder
        self.fetched: list[SourceSpec] = []
        self.missing: Exception | None = None
        self.mapper = FakeMapper((f"{PATH}::discount",))

    def fetch(self, spec: SourceSpec, scratch: Path, cache: Path, **_: Any) -> Repository:
        self.fetched.append(spec)
        if self.missing is not None:
            raise self.missing
        for path, text in GOOD.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        write_tree(self.folder, scratch / "tree.tar")
        return Repository(
            Source("sdist", "shop", "1.0"), SourceTree.open(scratch / "tree.tar"), EnvironmentPins()
        )


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path / "shop")
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(task_import, "build_runner", lambda options: made.runner)
    monkeypatch.setattr("gistpoint.sandbox.environments.sources.fetch_repository", made.fetch)
    monkeypatch.setattr("gistpoint.sandbox.pools.SandboxHarness.mapper", lambda *_: made.mapper)
    monkeypatch.setattr("gistpoint.sandbox.pools.SandboxHarness.confirmer", lambda _: ScriptedConfirmer())
    return made


def made(
    function: str = "discount", change: tuple[str, str] | None = ("price - ", "price + ")
) -> dict[str, Any]:
    return record_of(GOOD[PATH].encode(), PATH, function, url=URL, commit=COMMIT, change=change)


def imported(
    tmp_path: Path, capsys: Captured, *records: Any, more: tuple[str, ...] = ()
) -> tuple[int, list[Any]]:
    file = tmp_path / "records.jsonl"
    file.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in records))
    code = cli.main(["task", "import", "breakpoint", str(file), "--min-failing", "2", "--json", *more])
    return code, json.loads(capsys.readouterr().out)["records"]


def test_records_become_tasks_that_their_originals_solve(
    tmp_path: Path, world: World, capsys: Captured
) -> None:
    code, rows = imported(
        tmp_path, capsys, made(change=None), made(), made("Basket.total", ("price * count", "price"))
    )
    assert code == 0
    assert [row["outcome"] for row in rows] == ["imported"] * 3
    assert len(world.fetched) == world.mapper.runs == 1
    assert world.fetched[0].source == f"{URL}@{COMMIT}"
    for row, mode in zip(rows, ["remove", "discovery", "discovery"], strict=True):
        task = read_task(tmp_path / "home" / "data" / "tasks" / row["task"])
        answer = read_answer(task)
        verify_identity(task, answer)
        assert set(answer.entered[f"{PATH}::discount"]) == set(answer.baselines[0].passed)
        judge, tree = RepairJudge(task, answer, world.runner), SourceTree.open(task.tree_path)
        assert judge.judge(tree).score.value == 0.0
        assert judge.judge(repaired_tree(tree, answer.targets)).solved
        assert task.mode == mode
        assert task.rules.refused_costs_attempt
        origin = answer.provenance["import"]
        assert json.loads(origin["record"])["repo"]["commit"] == COMMIT
        assert origin["marks"] == ["not_from_the_commit"]
        brief = render_brief(task)
        assert "refused before any test has run counts as a submission too." in brief
        public = (task.folder / "task.toml").read_text()
        assert "corruption" not in public
        for secret in ("somebody", "test_info", "halstead", COMMIT):
            assert secret not in brief + public


def test_a_suite_that_cannot_be_watched_makes_tasks_all_the_same(
    tmp_path: Path, world: World, capsys: Captured
) -> None:
    world.mapper.watchable = False
    code, (row,) = imported(tmp_path, capsys, made())
    assert (code, row["outcome"]) == (0, "imported")
    assert read_answer(read_task(tmp_path / "home" / "data" / "tasks" / row["task"])).entered == {}


def test_only_the_sentence_on_refusals_differs_between_the_briefs() -> None:
    for name, costly in REFUSALS_COST.items():
        text, other = template_text(TEMPLATES[name]), template_text(costly)
        assert text != other
        assert text == other.replace("counts as a submission too.", "does not count as a submission.")


def test_damage_and_refusals_are_told_with_their_lines(
    tmp_path: Path, world: World, capsys: Captured
) -> None:
    rows = [
        json.dumps(made())[:-9],
        {**made(), "fpath": "../x.py"},
        made(),
        {**made(), "function_name": "gone"},
        {**made(change=None), "function_name": "Basket.add"},
        made(),
    ]
    code, found = imported(tmp_path, capsys, *rows)
    assert code == 1
    assert [(row["line"], row["outcome"], row["reason"]) for row in found] == [
        (1, "damaged", "damaged"),
        (2, "damaged", "damaged"),
        (3, "imported", ""),
        (4, "refused", "no_such_function"),
        (5, "imported", ""),
        (6, "damaged", "damaged"),
    ]
    assert "repeats the record of line 3" in found[5]["detail"]


def test_a_corruption_that_breaks_too_little_is_refused(
    tmp_path: Path, world: World, capsys: Captured
) -> None:
    code, (row,) = imported(tmp_path, capsys, made(change=("// 100", "// 100 - (price > 10**9)")))
    assert (code, row["outcome"], row["reason"]) == (1, "refused", "too_few_failing_tests")


def test_a_repository_whose_suite_is_no_good_refuses_all_its_records(
    tmp_path: Path, world: World, capsys: Captured
) -> None:
    world.runner.status = RunStatus.TIMED_OUT
    code, rows = imported(tmp_path, capsys, made(), made(change=None))
    assert code == 1
    assert [row["reason"] for row in rows] == ["suite_too_slow"] * 2


@pytest.mark.parametrize(
    "missing", [SourceError("It can't be had."), EnvironmentBuildError("It can't be built.")]
)
def test_records_wait_for_their_repository_and_are_tried_again(
    tmp_path: Path, world: World, capsys: Captured, missing: Exception
) -> None:
    world.missing = missing
    code, rows = imported(tmp_path, capsys, made(), made(change=None))
    assert code == 1
    assert [(row["outcome"], row["reason"]) for row in rows] == [("waits", "repository_not_here")] * 2
    assert cli.main(["task", "import", "breakpoint", "--pending", "--json"]) == 0
    pending = json.loads(capsys.readouterr().out)["pending"]
    assert all(item["reason"].startswith(str(missing)) for item in pending)
    assert all(("--sources" in item["reason"]) == isinstance(missing, SourceError) for item in pending)
    assert json.loads(pending[0]["text"]) == made()
    assert cli.main(["task", "import", "breakpoint", "--pending"]) == 0
    assert COMMIT[:12] in capsys.readouterr().out

    world.missing = None
    assert cli.main(["task", "import", "breakpoint", "--min-failing", "2", "--json"]) == 0
    assert [row["outcome"] for row in json.loads(capsys.readouterr().out)["records"]] == ["imported"] * 2
    assert cli.main(["task", "import", "breakpoint", "--pending"]) == 0
    assert "There are no records waiting" in capsys.readouterr().out
    assert cli.main(["task", "import", "breakpoint"]) == 0
    assert "There are no records waiting" in capsys.readouterr().out


def test_what_is_here_is_not_proven_again(tmp_path: Path, world: World, capsys: Captured) -> None:
    imported(tmp_path, capsys, made())
    runs = world.runner.runs
    code, (row,) = imported(tmp_path, capsys, made())
    assert (code, row["outcome"], world.runner.runs) == (0, "here already", runs)
    shutil.rmtree(tmp_path / "home" / "data" / "tasks" / row["task"])
    _, (row,) = imported(tmp_path, capsys, made())
    assert row["outcome"] == "imported"


def test_a_task_that_was_made_here_is_marked_and_keeps_its_rules(
    tmp_path: Path, world: World, capsys: Captured
) -> None:
    _, (row,) = imported(tmp_path, capsys, made())
    folder = tmp_path / "home" / "data" / "tasks" / row["task"]
    task = read_task(folder)
    answer = read_answer(task)
    generated = replace(task, rules=replace(task.rules, refused_costs_attempt=False))
    write_task(generated, replace(answer, provenance={"campaign": {"seed": 3}}))
    (tmp_path / "home" / "data" / "imports" / "breakpoint.json").unlink()

    code, (row,) = imported(tmp_path, capsys, made())
    assert (code, row["outcome"], row["task"]) == (0, "marked", folder.name)
    assert "refused submissions do not count" in row["detail"]
    marked = read_task(folder)
    assert not marked.rules.refused_costs_attempt
    found = read_answer(marked)
    verify_identity(marked, found)
    assert found.provenance["campaign"] == {"seed": 3}
    origin = found.provenance["import"]
    assert json.loads(origin["record"])["repo"]["commit"] == COMMIT
    assert origin["marks"] == ["not_from_the_commit", "made_here_before"]
    assert (found.targets, found.entered) == (answer.targets, answer.entered)

    _, (row,) = imported(tmp_path, capsys, made())
    assert row["outcome"] == "here already"


def test_gits_own_words_are_told(
    tmp_path: Path, world: World, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(task_import, "build_runner", lambda options: world.runner)
    record = {**made(), "repo": {**made()["repo"], "url": "https://127.0.0.1:1/someone/shop.git"}}
    code, (row,) = imported(tmp_path, capsys, record)
    assert (code, row["outcome"]) == (1, "waits")
    assert "fatal: unable to access 'https://127.0.0.1:1/someone/shop" in row["detail"]
    assert "name==version" not in row["detail"]
    assert "--sources" in row["detail"]


def test_sources_of_the_user_are_asked_first(tmp_path: Path, world: World, capsys: Captured) -> None:
    (tmp_path / "map.toml").write_text(
        '[[source]]\nrepository = "shop"\nsource = "shop==1.0"\npytest_args = ["-q"]\n'
    )
    more = ("--sources", str(tmp_path / "map.toml"), "--only", "discount")
    _, rows = imported(
        tmp_path, capsys, made(), {**made(change=None), "function_name": "Basket.add"}, more=more
    )
    assert len(rows) == 1
    assert world.fetched == [SourceSpec("shop==1.0", ("-q",))]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.json"], "gone.json can't be read"),
        (["empty.json"], "does not contain any records of the data set"),
        (["bad.json"], "does not contain any records of the data set. Line 1: It is not JSON"),
        (["good.json", "--sources", "gone.toml"], "gone.toml can't be read"),
    ],
)
def test_mistakes_are_told(
    tmp_path: Path,
    world: World,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.json").write_text("[]")
    Path("bad.json").write_text("oh")
    Path("good.json").write_text(json.dumps([made()]))
    assert cli.main(["task", "import", "breakpoint", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_damaged_ledger_is_told_and_not_written_over(
    tmp_path: Path, world: World, capsys: Captured
) -> None:
    ledger = tmp_path / "home" / "data" / "imports" / "breakpoint.json"
    imported(tmp_path, capsys, made())
    assert list(ImportLedger(ledger).read().imported)
    ledger.write_text(ledger.read_text()[:-20])
    damaged = ledger.read_text()
    assert cli.main(["task", "import", "breakpoint", str(tmp_path / "records.jsonl")]) == 2
    assert "can't be read" in capsys.readouterr().err
    assert ledger.read_text() == damaged
