"""`task generate` with writer and reader at endpoints on loopback: agreeing, blind, useless, expensive."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from endpoint_benches import EndpointBench, threads
from fake_benches import CHECKS, SHOP
from fakes import FakeClock, FakeRunner
from scripted_endpoint import Answer, completion, endpoint

from gistpoint.core.corruption.blind import BlindAnswer, ShownVersion, blind_items
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.locations import Locations
from gistpoint.sessions.annotations.glance_reader import BlindReply, GlanceReader, GlanceStore
from gistpoint.tui import cli
from gistpoint.tui.commands import task_making

Captured = pytest.CaptureFixture[str]
KEY = "sk-0123456789-secret"
Step = Callable[[dict[str, Any], Mapping[str, str]], Answer]
READER_KEY = "rk-9876543210-secret"
WRONG = {
    "price": SHOP.partition("\n\n\n")[0].replace("total > 100", "total >= 100"),
    "stock": """def stock(orders):
    left = {}
    for name, count in orders:
        left[name] = count
    return left""",
    "bill": """def bill(orders, rate):
    return [(name, price(count, rate)) for name, count in stock(orders).items()]""",
}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "cost": 0.01}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = EndpointBench()
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(task_making, "build_runner", lambda options: FakeRunner(CHECKS))
    monkeypatch.setattr("gistpoint.sandbox.pools.SandboxHarness.on", lambda backend: made)
    monkeypatch.setattr("gistpoint.sandbox.pools.local_workers", threads)
    return tmp_path / "home"


def writing(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    assert request["model"] == "maker"
    assert headers["authorization"] == f"Bearer {KEY}"
    (name,) = re.findall(r"The body of (\w+) is missing", request["messages"][0]["content"])
    return completion(f"```python\n{WRONG[name]}\n```", usage=USAGE)


def reading(reply: str | None = None) -> Step:
    """Return a reader with one reply for all packets; without one, it names the fault of `stock`."""

    def step(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
        assert "tools" not in request
        packet = request["messages"][-1]["content"]
        found = re.search(r"(\d+) \|         left\[name\] = count$", packet, re.MULTILINE)
        named = {"answer": "fault" if found else "nothing", "line": int(found[1]) if found else 0}
        return completion(json.dumps(named) if reply is None else reply, usage=USAGE)

    return step


def generate(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, reader: Step, *more: str, maker: Step = writing
) -> tuple[int, int, int, dict[str, Any], str]:
    """Return the exit code, the requests to the maker and to the reader, the JSON document and the errors."""
    with endpoint(maker) as made, endpoint(reader) as read:
        monkeypatch.setenv("OPENAI_BASE_URL", made.url)
        config = Locations.of_user().config
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(f'[reader]\nbase_url = "{read.url}"\napi_key = "{READER_KEY}"\n')
        command = ["task", "generate", "shop==1", "--model", "maker", "--rewrite", "--workers", "1"]
        code = cli.main([*command, "--reader", "judge", "--json", *more])
        captured = capsys.readouterr()
        assert all(header["authorization"] == f"Bearer {READER_KEY}" for header in read.headers)
        assert not {KEY, READER_KEY} & set(re.findall(r"[sr]k-\d+-secret", captured.out + captured.err))
        assert captured.out, captured.err
        return code, len(made.requests), len(read.requests), json.loads(captured.out), captured.err


def test_what_the_reader_misses_fills_the_set_and_its_rate_is_shown(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    code, written, read, document, _ = generate(monkeypatch, capsys, reading(), "--count", "2")
    (source,) = document["sources"]
    assert (code, written, read, len(source["tasks"])) == (0, 3, 9, 2)
    assert document["spent"]["requests"] == 12
    assert document["spent"]["cost_usd"] == pytest.approx(0.12)
    tasks = [read_task(Locations.of_user().tasks / id) for id in source["tasks"]]
    functions = {read_answer(task).targets[0].qualname for task in tasks}
    assert functions == {"price", "bill"}
    assert all(record["named"] == 0 for record in source["readings"].values())
    again = generate(monkeypatch, capsys, reading(), "--count", "2")
    assert again[:3] == (0, 0, 0), "the same command asks nobody again"
    more = generate(monkeypatch, capsys, reading(), "--count", "2", "--max-cost", "9")
    assert more[:3] == (0, 0, 0)
    assert sorted(more[3]["sources"][0]["tasks"]) == sorted(source["tasks"])


def test_two_empty_homes_make_the_same_set(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    made: list[list[tuple[str, Any]]] = []
    for name in ("one", "two"):
        monkeypatch.setenv("GISTPOINT_HOME", str(home / name))
        *_, document, _ = generate(monkeypatch, capsys, reading(), "--count", "2", "--seed", "4")
        answers = [
            read_answer(read_task(Locations.of_user().tasks / id)) for id in document["sources"][0]["tasks"]
        ]
        made.append(
            [(answer.seal.content_sha256, answer.provenance["reader"]) for answer in answers if answer.seal]
        )
    assert made[0] == made[1]
    assert len(made[0]) == 2


def test_the_rate_stands_with_the_task_and_is_compared_with_people(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    *_, document, _ = generate(monkeypatch, capsys, reading(), "--count", "3")
    ids = document["sources"][0]["tasks"]
    by_function = {}
    for id in ids:
        task = read_task(Locations.of_user().tasks / id)
        by_function[read_answer(task).targets[0].qualname] = task
    stock, price = by_function["stock"], by_function["price"]
    assert cli.main(["task", "show", stock.id]) == cli.DONE
    assert "read blind by judge: the fault was named in 3 of 3 readings" in capsys.readouterr().err
    assert cli.main(["task", "show", "--json", stock.id]) == cli.DONE
    shown = json.loads(capsys.readouterr().out)
    assert shown["reader"] == {"model": "judge", "read": 3, "named": 3, "elsewhere": 0, "alarms": 0}
    assert shown["glance_rate"] == 1.0
    assert cli.main(["task", "list", "--ids", "--where", "glance_rate<0.5"]) == cli.DONE
    assert stock.id not in capsys.readouterr().out.split()

    store = GlanceStore(Locations.of_user().glances, FakeClock())
    ada = GlanceReader(store, "ada")
    for task, answer in ((stock, BlindAnswer.FAULT), (price, BlindAnswer.NOTHING)):
        (item,) = blind_items(task, read_answer(task))
        ada.read(item, BlindReply(answer, 4), ShownVersion.CORRUPTED)
    assert cli.main(["glance", "--json", "--all"]) == cli.DONE
    known = json.loads(capsys.readouterr().out)
    (pair,) = [row for row in known["agreement"] if row["second"] == "model judge (in a set)"]
    assert (pair["first"], pair["functions"], pair["agreed"], pair["kappa"]) == ("ada", 2, 2, 1.0)
    rows = {row["readers"]: row["rate"] for row in known["rates"] if row["by"] == "all"}
    assert rows["model judge (in a set)"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        (
            reading("I can't tell, they are all fine and none is."),
            "The reply contains no answer: I can't tell",
        ),
        (lambda request, headers: completion(None, refusal="I will not."), "It refused: I will not."),
        (reading('{"answer": "fault", "line": {}}'), "The reply contains no answer"),
        (lambda request, headers: Answer('{"choices": 3}'), "no usable answer"),
    ],
    ids=["talkative", "refusing", "malformed", "no completion"],
)
def test_a_reader_of_no_use_stops_the_set_and_keeps_the_tasks(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, reader: Step, said: str
) -> None:
    code, written, _, document, err = generate(monkeypatch, capsys, reader, "--count", "1")
    (source,) = document["sources"]
    assert (code, written, len(source["tasks"])) == (2, 3, 1)
    assert "judge gave no usable answer to 5 packets in a row" in err
    assert said in err
    code, written, read, document, _ = generate(monkeypatch, capsys, reading(), "--count", "1")
    assert (code, written, read) == (0, 0, 9)
    assert document["sources"][0]["readings"]


def test_an_expensive_reader_stops_at_the_cap_of_both_and_a_larger_one_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    code, written, read, document, err = generate(
        monkeypatch, capsys, reading(), "--count", "1", "--max-cost", "0.055"
    )
    assert (code, written, read) == (2, 3, 2)
    assert "0.0500 of at most 0.055 US dollars were spent for the set" in err
    assert len(document["sources"][0]["tasks"]) == 1
    code, written, read, document, _ = generate(
        monkeypatch, capsys, reading(), "--count", "1", "--max-cost", "1"
    )
    assert (code, written, read) == (0, 0, 7)
    (record,) = document["sources"][0]["readings"].values()
    assert (record["read"], record["named"]) == (3, 0)


def test_a_reader_that_agrees_with_everything_leaves_the_order_to_the_score(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    code, _, read, document, _ = generate(
        monkeypatch, capsys, reading('Yes. {"answer": "fault", "line": 1}'), "--count", "3"
    )
    (source,) = document["sources"]
    assert (code, read, len(source["tasks"])) == (0, 9, 3)
    assert all(record["read"] == 3 for record in source["readings"].values())
    assert not any(record["named"] for record in source["readings"].values()), "no header was changed"
    assert sum(record["alarms"] + record["elsewhere"] for record in source["readings"].values()) == 9


def test_the_maker_is_not_its_own_reader(home: Path, capsys: Captured) -> None:
    command = ["task", "generate", "shop==1", "--model", "maker", "--rewrite", "--reader", "vendor/Maker"]
    assert cli.main(command) == 2
    assert "vendor/Maker makes the corruptions, so it can't be their blind reader" in capsys.readouterr().err
