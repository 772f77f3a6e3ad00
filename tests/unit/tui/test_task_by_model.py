"""`task new --mode discovery` with a model that corrupts the function; its key never appears anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, GOOD
from confirmers import ScriptedConfirmer
from fakes import FakeMapper, FakeRunner
from scripted_endpoint import Answer, Step, completion, endpoint

from gistpoint.core.errors import TaskError
from gistpoint.core.generation import pipeline
from gistpoint.core.generation.by_model import replay_model_record
from gistpoint.core.generation.intake import CorruptionProof, NoGood, NoTaskError
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Mode, Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.retrying import RetryingModel
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.tui import cli
from gistpoint.tui.commands import task_making

Captured = pytest.CaptureFixture[str]
KEY = "sk-0123456789-secret"
DISCOUNT = '''def discount(price, percent):
    """Return the price with a percentage taken off."""
    return {}'''
NEW = ["task", "new", "shop==1.0", "--mode", "discovery", "--function", "shop/prices.py::discount"]


def impatient(settings: EndpointSettings) -> RetryingModel:
    return RetryingModel(OpenAICompatibleModel(settings), sleep=lambda seconds, cancel: None)


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(spec: object, scratch: Path, cache: Path, **_: Any) -> Repository:
        for path, text in GOOD.items():
            (scratch / "source" / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / "source" / path).write_text(text)
        write_tree(scratch / "source", scratch / "tree.tar")
        return Repository(
            Source("sdist", "shop", "1.0"), SourceTree.open(scratch / "tree.tar"), EnvironmentPins()
        )

    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(task_making, "build_runner", lambda options: FakeRunner(CHECKS))
    monkeypatch.setattr("gistpoint.sandbox.environments.sources.fetch_repository", fetch)
    mapper = FakeMapper(("shop/prices.py::discount",))
    monkeypatch.setattr("gistpoint.sandbox.pools.SandboxHarness.mapper", lambda *_: mapper)
    monkeypatch.setattr("gistpoint.sandbox.pools.SandboxHarness.confirmer", lambda _: ScriptedConfirmer())
    monkeypatch.setattr("gistpoint.tui.commands.model_options.chat_model", impatient)


def made(monkeypatch: pytest.MonkeyPatch, *steps: Step, more: tuple[str, ...] = ()) -> tuple[int, list[Any]]:
    with endpoint(*steps) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        return cli.main([*NEW, "--min-failing", "2", "--model", "m", *more]), served.requests


def submit(expression: str) -> Answer:
    return completion(None, ("submit_attempt", {"func_code": DISCOUNT.format(expression)}))


def hidden(tmp_path: Path, captured: Any) -> None:
    """Require that the key was neither printed nor written."""
    assert KEY not in captured.out + captured.err
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_model_makes_a_task_with_a_record_of_every_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    browse = completion(
        None, ("read_function", {"function_name": "Basket.total", "file_path": "shop/prices.py"})
    )
    steps = [
        browse,
        submit("price * percent // 100"),
        submit("price - percent"),
        submit("price + price * percent // 100"),
    ]
    code, requests = made(monkeypatch, *steps, completion("Done."))
    captured = capsys.readouterr()
    assert code == 0, captured.err
    task = read_task(tmp_path / "home" / "data" / "tasks" / captured.out.splitlines()[-1])
    answer = read_answer(task)
    assert task.mode is Mode.DISCOVERY
    assert list(answer.entered) == ["shop/prices.py::discount"]
    (part,) = answer.provenance["parts"]
    loop = part["record"]["loop"]
    assert (loop["model"], loop["answered_as"], loop["end"]) == ("m", ["scripted-1"], "stopped_by_model")
    assert [item["verdict"] for item in loop["rounds"]] == ["accepted", "too_few_failing", "accepted"]
    assert loop["usage"]["tokens"] == 550
    assert 0 <= part["subtlety"]["value"] <= 1
    original = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
    assert replay_model_record(part["record"], original) == answer.targets[0]
    with pytest.raises(TaskError, match="text is different"):
        replay_model_record(part["record"], SourceTree.open(task.tree_path))
    with pytest.raises(TaskError, match="does not fit"):
        replay_model_record({**part["record"], "function": "no function"}, original)
    prompt = requests[0]["messages"][0]["content"]
    assert "bug in a function located in shop/prices.py" in prompt
    assert "def test_total" in prompt
    assert "submission 3: accepted" in captured.err
    hidden(tmp_path, captured)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Answer({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401), "answered 401"),
        (Answer({"error": {"message": f"No model for {KEY}"}}, 404), "answered 404"),
        (Answer(f"{KEY} is over its limit", 429), "answered 429"),
        (Answer("", 500), "answered 500"),
        (Answer(f"<html>{KEY}"), "not JSON"),
        (Answer({"choices": []}), "no choices"),
        (completion(f"I will not. {KEY}"), "no tool call"),
        (completion(None, refusal=f"No, {KEY}."), "refused"),
        (completion(None, ("submit_attempt", {"func_code": f"# {KEY}"})), "tool calls used up"),
        (completion(None, ("submit_attempt", f"{{{KEY}")), "tool calls used up"),
        (submit("price"), "model_gave"),
    ],
)
def test_whatever_goes_wrong_is_a_reason_and_no_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, step: Answer, said: str
) -> None:
    if said == "model_gave":
        step, said = submit("price - price * percent // 100"), "unchanged"
    code, _ = made(monkeypatch, step, more=("--max-tool-calls", "3"))
    captured = capsys.readouterr()
    assert code == 1, captured.err
    assert captured.out == ""
    assert said in captured.err
    assert not list((tmp_path / "home").rglob("task.toml"))
    (unkept,) = (tmp_path / "home" / "data" / "unkept-corruptions").iterdir()
    assert unkept.name in captured.err
    record = json.loads(unkept.read_text("utf-8"))
    assert (record["source"]["name"], record["corrupted"]) == ("shop", "")
    assert record["loop"]["end"].replace("_", " ") in captured.err
    hidden(tmp_path, captured)


def test_a_corruption_that_the_suite_does_not_bear_out_is_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def refused(*_: object, **__: object) -> CorruptionProof:
        raise NoTaskError(NoGood.TOO_FEW_FAILING, "Only 1 test fails.")

    monkeypatch.setattr(pipeline, "prove", refused)
    code, _ = made(monkeypatch, submit("price - price * percent // 1000"), completion("Done."))
    captured = capsys.readouterr()
    assert (code, captured.out) == (1, "")
    assert "Only 1 test fails." in captured.err
    (unkept,) = (tmp_path / "home" / "data" / "unkept-corruptions").iterdir()
    assert "// 1000" in json.loads(unkept.read_text("utf-8"))["corrupted"]
    hidden(tmp_path, captured)


def test_a_cap_on_the_cost_needs_a_price(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path
) -> None:
    code, requests = made(monkeypatch, submit("price - price * percent // 100"), more=("--max-cost", "0.01"))
    assert (code, len(requests)) == (1, 1)
    assert "neither the endpoint nor the settings give a price" in capsys.readouterr().err
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text(
        "[llm]\nusd_per_million_prompt_tokens = 30\nusd_per_million_completion_tokens = 60\n"
    )
    code, requests = made(monkeypatch, submit("price - price * percent // 100"), more=("--max-cost", "0.01"))
    assert (code, len(requests)) == (1, 2)
    assert "of at most 0.01 US dollars were spent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["task", "new", "x", "--model", "m"], "removing a body needs no model"),
        (["task", "new", "x", "--mode", "discovery", "--model", "m"], "needs --function"),
        ([*NEW], "No model was given"),
    ],
)
def test_mistakes_are_told_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, arguments: list[str], said: str
) -> None:
    monkeypatch.setattr("gistpoint.sandbox.environments.sources.fetch_repository", None)
    assert cli.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_class_is_not_corrupted(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    code, requests = made(monkeypatch, submit("price"), more=("--function", "shop/prices.py::Basket"))
    assert (code, requests) == (2, [])
    assert "is a class" in capsys.readouterr().err


def test_the_key_of_the_config_file_is_used_and_kept_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    config = tmp_path / "home" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    with endpoint(submit("price * percent // 100"), completion("Done.")) as served:
        config.write_text(f'[llm]\nmodel = "m"\napi_key = "{KEY}"\nbase_url = "{served.url}"\n')
        assert cli.main([*NEW, "--min-failing", "2"]) == 0
        assert served.headers[0]["authorization"] == f"Bearer {KEY}"
    config.unlink()
    hidden(tmp_path, capsys.readouterr())
    assert json.dumps(served.requests).count(KEY) == 0
