"""Options that choose functions, `task generate --list`, and the output of `gistpoint code` for a library."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_benches import FakeBench, Shop

from gistpoint.core.callgraph import CodeLocation, ObservedCall
from gistpoint.core.errors import UserError
from gistpoint.core.generation.choice import Choice, ChooseFunctions, GroupFunctions, GroupRules, tasks_wanted
from gistpoint.core.generation.library import find_learned, read_library
from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.metrics.bars import HARD, MetricBar, MetricEnd
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.sandbox import housekeeping
from gistpoint.tui import cli
from gistpoint.tui.commands import task_making
from gistpoint.tui.commands.choosing import CHOICE, GROUPS
from gistpoint.tui.commands.options import add_options, request_of

Captured = pytest.CaptureFixture[str]


def parsed(*arguments: str) -> tuple[ChooseFunctions, GroupFunctions]:
    parser = argparse.ArgumentParser()
    add_options(parser, ChooseFunctions, CHOICE)
    add_options(parser, GroupFunctions, GROUPS)
    given = parser.parse_args(arguments)
    return request_of(ChooseFunctions, CHOICE, given), request_of(GroupFunctions, GROUPS, given)


def choice_of(*arguments: str) -> Choice:
    return parsed(*arguments)[0].choice()


def test_without_options_nothing_is_chosen() -> None:
    chosen, groups = parsed()
    assert (chosen.choice(), groups.rules(), chosen.only_hard) == (Choice(), GroupRules(), False)
    assert tasks_wanted(None, Choice(), GroupRules()) == 20


def test_options_make_the_choice(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("\ufeffa.py::f\n# no\nb.py::C.m\n", "utf-8")
    chosen, _ = parsed(
        "--where", "code_lines > 3", "--where", "kind=method", "--functions", str(tmp_path / "mine.txt"),
        "--hard-by", "cyclomatic, degree:low", "--percentile", "75", "--spread", "nesting,pagerank", "--bins", "3",
    )  # fmt: skip
    assert chosen.only_hard
    assert chosen.choice() == Choice(
        functions={"a.py::f": 1, "b.py::C.m": 3},
        where=("code_lines > 3", "kind=method"),
        bars=(MetricBar("cyclomatic"), MetricBar("degree", MetricEnd.LOW)),
        percentile=75.0,
        plane=("nesting", "pagerank"),
        bins=3,
    )
    assert choice_of("--hard", "--percentile", "80").bars == HARD
    assert choice_of("--hard") == Choice()
    quadrants = choice_of("--quadrants")
    assert (quadrants.plane, quadrants.bins, quadrants.equal) == (("code_lines", "harmonic_out"), 2, True)


def test_options_make_the_rules_of_groups() -> None:
    rules = parsed("--size", "2:3,4:1", "--chain", "--distance", "2", "--tell-count")[1].rules()
    assert rules == GroupRules((2, 4), (3, 1), chain=True, distance=2, tell_count=True)
    assert tasks_wanted(None, Choice(), rules) == tasks_wanted(4, Choice(), rules) == 4
    with pytest.raises(UserError, match="--size is empty"):
        parsed("--size", "")[1].rules()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--max-cost", "1"), "--max-cost applies only to corruption by a model"),
        (
            ("--max-tokens-per-function", "9"),
            "--max-tokens-per-function applies only to corruption by a model",
        ),
        (("--model", ""), "--model is empty"),
    ],
)
def test_limits_of_a_model_need_a_model(arguments: tuple[str, ...], said: str, capsys: Captured) -> None:
    assert cli.main(["task", "generate", "shop==1", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--bins", "3"), "--spread"),
        (("--quadrants", "--spread", "degree,nesting", "--bins", "3"), "two quantiles"),
        (("--bins", "3", "--quadrants"), "two quantiles"),
        (("--percentile", "80"), "--hard"),
        (("--hard-by", "degree,degree:low"), "degree twice"),
        (("--hard-by", ""), "--hard-by is empty"),
        (("--spread", ""), "--spread is empty"),
        (("--functions", ""), "--functions is empty"),
        (("--functions", "nowhere.txt"), "nowhere.txt can't be read"),
        (("--spread", "degree"), "two different metrics"),
        (("--where", "colour > 3"), "no column 'colour'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError) as caught:
        choice_of(*arguments)
    assert said in caught.value.message


def test_a_count_that_does_not_fit_is_refused() -> None:
    quadrants = choice_of("--quadrants")
    assert tasks_wanted(12, quadrants, GroupRules()) == 12
    with pytest.raises(UserError, match="10 tasks can't be divided among 4 cells"):
        tasks_wanted(10, quadrants, GroupRules())
    with pytest.raises(UserError, match="4 tasks, but --count requests 5"):
        tasks_wanted(5, Choice(), GroupRules((2,), (4,)))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The small library, analysed in the folder in which the commands look for it."""
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    shop = Shop(tmp_path)
    places = [
        CodeLocation("shop.py", line, name) for line, name in ((18, "bill"), (1, "price"), (26, "unseen"))
    ]
    shop.bench.observed = (ObservedCall(places[0], places[1], 7), ObservedCall(places[2], places[0], 1))
    learned = shop.library()
    folder = tmp_path / "home" / "cache" / "libraries" / "shop"
    folder.parent.mkdir(parents=True)
    (tmp_path / "library").rename(folder)
    monkeypatch.setattr(
        "gistpoint.sandbox.environments.sources.Fetcher.fetch",
        lambda self, name, into: (Source("folder", "shop", "1"), tmp_path / "files"),
    )
    assert learned.observed is not None
    return shop


def test_code_joins_the_observed_calls_of_a_learned_library(shop: Shop, capsys: Captured) -> None:
    assert cli.main(["code", "shop==1", "--where", "not unseen"]) == 0
    printed = capsys.readouterr()
    rows = {line.split("\t")[0]: line.split("\t")[-1] for line in printed.out.splitlines() if "::" in line}
    assert rows == {"shop.py::bill": "2/3", "shop.py::price": "1/1", "shop.py::stock": "0/1"}
    assert "3 calls: 1 static, 1 static and observed, 1 only observed." in printed.out
    assert "analysed" in printed.err
    assert cli.main(["code", "shop==1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["learned"]
    found = {(call["caller"], call["callee"]): (call["found"], call["count"]) for call in document["calls"]}
    assert found["shop.py::bill", "shop.py::price"] == (["direct", "observed"], 7)
    assert found["shop.py::unseen", "shop.py::bill"] == (["observed"], 1)
    assert cli.main(["code", "shop==1", "--around", "bill"]) == 0
    assert "shop.py::price  [direct, observed ×7, 1.00]" in capsys.readouterr().out


def test_code_says_how_a_library_is_learned(tmp_path: Path, shop: Shop, capsys: Captured) -> None:
    for file in (tmp_path / "home" / "cache" / "libraries" / "shop").glob("calls.json"):
        file.unlink()
    (tmp_path / "files").mkdir(exist_ok=True)
    (tmp_path / "files" / "shop.py").write_text(shop.source)
    assert cli.main(["code", "shop==1", "--names"]) == 0
    printed = capsys.readouterr()
    assert "gistpoint task generate shop" in printed.err
    assert printed.out.splitlines()[0] == "shop.py::bill"


def test_a_library_is_in_use_while_it_is_read(tmp_path: Path, shop: Shop) -> None:
    folder = tmp_path / "home" / "cache" / "libraries" / "shop"
    os.utime(folder, (0, 0))

    def unused() -> set[str]:
        return {item.place for item in housekeeping.kept(folder.parent.parent, unused_s=30 * 24 * 3600)}

    assert str(folder) in unused()
    assert find_learned(folder.parent, Source("folder", "shop", "1")) is not None
    assert str(folder) not in unused()


def test_a_library_of_an_earlier_version_gets_the_missing_metrics(tmp_path: Path, shop: Shop) -> None:
    folder = tmp_path / "home" / "cache" / "libraries" / "shop"
    before = read_library(folder, "")
    stored = json.loads((folder / "calls.json").read_text())
    del stored["observed"]
    for row in stored["rows"]:
        del row["complexity"]["halstead_volume_paper"], row["complexity"]["halstead_difficulty_paper"]
    (folder / "calls.json").write_text(json.dumps(stored))
    found = find_learned(folder.parent, Source("folder", "shop", "1"))
    assert found is not None
    assert (found.rows, found.edges, found.observed) == (before.rows, before.edges, None)
    assert "halstead_volume_paper" in (folder / "calls.json").read_text()
    edges = {(edge.caller, edge.callee): edge.observed for edge in found.call_graph().edges}
    assert edges["shop.py::unseen", "shop.py::bill"]
    assert not edges["shop.py::bill", "shop.py::price"], "which of the static ones ran is not known"
    assert find_learned(folder.parent, Source("folder", "shop", "2")) is None


class Fetching(FakeBench):
    """A fake harness that also fetches the small library."""

    shop: Shop

    def key(self, spec: SourceSpec, scratch: Path) -> str:
        return spec.source

    def fetch(self, *_: Any) -> Repository:
        return self.shop.library().intake.repository


def test_candidates_are_listed_and_none_is_tried(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Fetching()
    bench.shop = Shop(tmp_path)
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(task_making, "build_runner", lambda options: bench.runner())
    monkeypatch.setattr("gistpoint.sandbox.pools.SandboxHarness.on", lambda backend: bench)
    listed = ["task", "generate", "shop==1", "--list", "--mode", "remove", "--quadrants", "--count", "4"]
    assert cli.main(listed) == 0
    printed = capsys.readouterr().out
    assert "shop.py::bill\tcode_lines low, harmonic_out high\t6\t3\t2\t0.6667" in printed
    assert "shop==1: 3 candidates of 4 functions; 1 seen by too few tests" in printed
    assert "shop==1\tcode_lines low, harmonic_out high\t1\t0" in printed
    runs = bench.runs
    assert cli.main([*listed, "--json"]) == 0
    (source,) = json.loads(capsys.readouterr().out)["sources"]
    assert len(source["candidates"]) == 3
    assert bench.runs == runs
    assert not list((tmp_path / "home").rglob("task.toml"))


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("tree.tar", lambda data: b"noise"),
        ("intake.json", lambda data: json.dumps({**json.loads(data), "protection": {"wrong": 1}}).encode()),
        ("calls.json", lambda data: json.dumps({**json.loads(data), "map": {}}).encode()),
        ("calls.json", lambda data: data[:100]),
    ],
)
def test_a_library_that_is_damaged_counts_as_not_learned(
    file: str, damage: Callable[[bytes], bytes], tmp_path: Path, shop: Shop
) -> None:
    folder = tmp_path / "home" / "cache" / "libraries" / "shop"
    (folder / file).write_bytes(damage((folder / file).read_bytes()))
    assert find_learned(folder.parent, Source("folder", "shop", "1")) is None
    with pytest.raises(FileNotFoundError):
        read_library(folder, "")
