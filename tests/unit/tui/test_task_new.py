"""`task new --function` searches for the function before anything is paid for."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import CHECKS, GOOD
from fakes import FakeRunner

from gistpoint.tui import cli
from gistpoint.tui.commands import task_making


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("schema.py::Or.validate", "There is no file schema.py in the source."),
        (
            "shop/prices.py::nothing",
            "shop/prices.py defines no 'nothing'.\nThe functions with the most similar names: ",
        ),
        ("shop/prices.py::Basket.ad", "names: Basket.add, "),
        ("shop/__init__.py::nothing", "Name a function in another file. `gistpoint code SOURCE` lists all"),
        ("nothing", "nothing names 0 functions."),
        ("tests/test_prices.py::test_total", "belongs to the tests"),
    ],
)
@pytest.mark.parametrize("mode", [[], ["--mode", "discovery", "--model", "scripted"]])
def test_a_function_that_is_not_there_is_told_before_anything_is_pinned_or_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    function: str,
    said: str,
    mode: list[str],
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    for path, text in GOOD.items():
        (tmp_path / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / path).write_text(text)
    runner = FakeRunner(CHECKS)
    monkeypatch.setattr(task_making, "build_runner", lambda options: runner)
    assert cli.main(["task", "new", str(tmp_path / "source"), "--function", function, *mode]) in (1, 2)
    told = capsys.readouterr().err
    assert said in told
    assert "list_file_functions" not in told
    assert "fetching" in told
    assert "pinning" not in told
    assert runner.runs == 0
