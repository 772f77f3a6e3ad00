"""The requests and output of `task generate --model` for each kind of model, at an endpoint on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from endpoint_benches import EndpointBench, threads
from fake_benches import CHECKS, ENTERED, SHOP
from fakes import FakeRunner
from scripted_endpoint import Answer, completion, endpoint

from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.locations import Locations
from gistpoint.tui import cli
from gistpoint.tui.commands import task_making

Captured = pytest.CaptureFixture[str]
COPIES = "\n\n".join(SHOP.partition("\n\n\n")[0].replace("def price(", f"def price{n}(") for n in range(8))
CHANGES = {
    "price": ("range(amount)", "range(min(amount, 3))"),
    "stock": ("left.get(name, 0)", "left.get(name, 1)"),
    "bill": ("count >= 1", "count >= 2"),
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EndpointBench:
    made = EndpointBench()
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789-secret")
    monkeypatch.setattr(task_making, "build_runner", lambda options: FakeRunner(CHECKS))
    monkeypatch.setattr("gistpoint.sandbox.pools.SandboxHarness.on", lambda backend: made)
    monkeypatch.setattr("gistpoint.sandbox.pools.local_workers", threads)
    return made


def crowded(bench: EndpointBench) -> None:
    """Give the library enough entered functions that a failing model is given up before the last one."""
    bench.source = f"{SHOP}\n\n{COPIES}\n"
    bench.entered = {**ENTERED, **{f"shop.py::price{n}": list(CHECKS) for n in range(8)}}


USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
Step = Callable[[dict[str, Any], Mapping[str, str]], Answer]


def code_of(request: dict[str, Any]) -> str:
    found = re.search(
        r"Function to corrupt:\n(.*?)\n\nTo help guide", request["messages"][0]["content"], re.DOTALL
    )
    assert found is not None
    return found.group(1)


def submitting(*changes: Callable[[str], str]) -> Step:
    """Return a model that submits each changed text in turn, and stops at one without a change.

    After the last text it submits that one again.
    """

    def step(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
        said = sum(message["role"] == "assistant" for message in request["messages"])
        code = code_of(request)
        changed = changes[min(said, len(changes) - 1)](code)
        if changed == code:
            return completion("Done.", usage=USAGE)
        return completion(None, ("submit_attempt", {"func_code": changed}), usage=USAGE)

    return step


def subtle(code: str) -> str:
    name = re.sub(r"\d", "", code[4 : code.index("(")])
    return code.replace(*CHANGES[name])


def commented(code: str) -> str:
    return code.replace(":\n", ":  # here\n", 1)


def loud(code: str) -> str:
    return code.replace("total = 0", "total = 1") if "total = 0" in code else subtle(code)


def talking(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    return completion("ok")


def refusing(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    return completion(None, refusal="I will not do that.")


def malformed(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    return completion(None, ("submit_attempt", "{broken"))


def generate(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, step: Step, *more: str, mode: str = "discovery"
) -> tuple[int, int, dict[str, Any], str]:
    """Return the exit code, the number of requests, the JSON document and the standard error output."""
    with endpoint(step) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        command = [
            "task",
            "generate",
            "shop==1",
            "--mode",
            mode,
            "--min-failing",
            "2",
            "--model",
            "m",
            "--workers",
            "1",
        ]
        code = cli.main([*command, "--json", *more])
        captured = capsys.readouterr()
        assert "sk-0123456789" not in captured.out + captured.err
        assert captured.out, captured.err
        return code, len(served.requests), json.loads(captured.out), captured.err


def same(code: str) -> str:
    return code


def test_a_good_model_fills_the_set_and_what_it_cost_is_shown(
    bench: EndpointBench, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    code, requests, document, _ = generate(monkeypatch, capsys, submitting(subtle, same), "--count", "2")
    (source,) = document["sources"]
    assert (code, len(source["tasks"]), source["stopped"]) == (0, 2, None)
    assert document["spent"]["requests"] == requests
    assert document["spent"]["tokens"] == 1100 * requests
    again = generate(monkeypatch, capsys, submitting(subtle, same), "--count", "2", "--max-tokens", "100000")
    assert again[1] == 0, (
        "the same command with other caps goes on, and what was decided is not asked for again"
    )
    assert again[2]["spent"] == document["spent"]


def test_a_model_makes_groups(
    bench: EndpointBench, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    _, requests, document, _ = generate(
        monkeypatch, capsys, submitting(subtle, same), "--count", "1", mode="multi"
    )
    (id,) = document["sources"][0]["tasks"]
    answer = read_answer(read_task(Locations.of_user().tasks / id))
    assert len(answer.targets) >= 2
    assert {part["record"]["kind"] for part in answer.provenance["parts"]} == {"model"}
    assert document["spent"]["requests"] == requests


@pytest.mark.parametrize(
    ("step", "requests", "said"),
    [
        (submitting(commented), 4, "sent the same again"),
        (talking, 3, "no tool call"),
        (refusing, 2, "refused. I will not do that."),
        (malformed, 4, "tool calls used up"),
    ],
    ids=["repeating", "talking", "refusing", "malformed"],
)
def test_a_model_of_no_use_is_given_up_after_five_functions(
    bench: EndpointBench,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    step: Step,
    requests: int,
    said: str,
) -> None:
    crowded(bench)
    code, sent, document, err = generate(monkeypatch, capsys, step, "--max-tool-calls", "4")
    assert (code, sent) == (2, 5 * requests)
    (source,) = document["sources"]
    assert source["tried"] == 5
    assert source["dropped"] == {"no_corruption_is_good": 5}
    assert "5 functions in a row failed for the same reason" in source["stopped"]
    assert said in err
    assert "run the same command again" in err


def test_a_loud_model_is_told_and_its_corruptions_come_last(
    bench: EndpointBench, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    seen: list[str] = []

    def step(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
        seen.extend(message["content"] for message in request["messages"] if message["role"] == "tool")
        return submitting(loud, subtle, same)(request, headers)

    _, requests, document, _ = generate(monkeypatch, capsys, step, "--count", "3", "--min-failing", "2")
    (source,) = document["sources"]
    assert requests == 3 * source["tried"]
    assert any("more than the aim of 2 to 15 failing tests" in text for text in seen)
    kept = {}
    for id in source["tasks"]:
        answer = read_answer(read_task(Locations.of_user().tasks / id))
        kept[answer.targets[0].qualname] = answer.provenance["parts"][0]["record"]["loop"]
    assert [item["failing"] for item in kept["price"]["rounds"]] == [16, 9]
    assert kept["price"]["kept"] == 2, "the one within the aim"


def test_an_endpoint_that_is_too_slow_stops_the_set_and_burns_no_function(
    bench: EndpointBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    config = Locations.of_user().config
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text("[llm]\ntimeout_s = 0.2\n")
    late = Event()
    try:
        code, requests, document, err = generate(
            monkeypatch, capsys, lambda request, headers: Answer(completion("ok").body, wait=late)
        )
    finally:
        late.set()
    assert (code, requests) == (2, 5)
    assert document["sources"][0]["tried"] == 0
    assert "The model no longer answers" in err


def test_a_cap_of_the_set_stops_it_and_a_larger_one_goes_on(
    bench: EndpointBench, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    code, requests, document, err = generate(
        monkeypatch, capsys, submitting(subtle, same), "--count", "2", "--max-tokens", "2500"
    )
    assert (code, requests) == (2, 2)
    assert "2200 of at most 2500 tokens were used for the set" in err
    assert document["sources"][0]["tried"] == 1
    code, _, document, _ = generate(
        monkeypatch, capsys, submitting(subtle, same), "--count", "2", "--max-tokens", "99999"
    )
    assert code == 0
    assert len(document["sources"][0]["tasks"]) == 2


def test_examples_that_can_not_be_read_are_told_before_anything_is_asked(
    bench: EndpointBench, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert cli.main(["task", "generate", "shop==1", "--model", "m", "--examples", "missing.jsonl"]) == 2
    assert "missing.jsonl can't be read" in capsys.readouterr().err
