"""Scripted attempts that together record every type of event, in real journals and with a fake clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from gist_tasks import FAITHFUL, OWNED, FakeEntrypoints, FakeGistJudge, build_gist_task
from scripted_endpoint import ScriptedModel

from gistpoint.core.assist.exchange import Assistant
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import (
    EndReason,
    GiveUpCode,
    ModelTurn,
    Pane,
    PauseReason,
    RequestedCall,
)
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.study.declaration import ChatSettings
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.journal import JOURNAL, JournalWriter

NAME = "shop/prices.py::discount"
WRONG = REPAIR.replace("100", "99")
LONG = "".join(f"value_{number} = {number}\n" for number in range(200))


def repair(attempt: Attempt, clock: FakeClock) -> None:
    """Look, type, take a break, submit wrong code, and then solve the task."""
    for pane in (Pane.TREE, Pane.CODE):
        clock.advance(1_000)
        attempt.view(pane)
    attempt.call("list_directory", {}, thought="où?", turn=7, extra={"tokens": {"prompt": 12}, "cost": 0.25})
    attempt.call("read_file", None, raw='{"file_path": "shop/prices.py"}')
    attempt.call("read_function", {"function_name": "discount", "file_path": "shop/prices.py"})
    attempt.call("search_code", {"pattern": "\ud800|percent"})
    attempt.call("read_file", None, raw="<file_path>README.md</file_path>")
    attempt.call("read_file", None, raw="[1]")
    attempt.call("grep", {"pattern": "x"})
    attempt.call("read_file", {"path": "x"}, raw='{"path": "x"}')
    attempt.suspect(NAME)
    attempt.suspect(NAME, marked=False)
    attempt.view(Pane.EDITOR)
    attempt.edit(NAME, LONG)
    attempt.edit(NAME, LONG.replace("value_100 ", "the_hundredth "))
    attempt.pasted("return width * depth", outside=True)
    attempt.use_affordance("scroll", 3)
    attempt.note("first\nidea")
    attempt.pause(PauseReason.BREAK, "coffee")
    clock.advance(61_000)
    attempt.heartbeat()
    attempt.resume()
    clock.advance(130_000)
    attempt.ask_idle(clock.mono_ms() - 120_000)
    clock.advance(500_000)
    attempt.cover_idle()
    attempt.answer_idle(away=True)
    attempt.ask_idle(clock.mono_ms())
    attempt.input_again()
    attempt.answer_idle(away=False)
    attempt.call("submit_attempt", {"func_code": WRONG})
    attempt.call("submit_attempt", {"func_code": "def other():\n    pass\n"})
    attempt.call("submit_attempt", {"func_code": REPAIR})


def discovery(attempt: Attempt, clock: FakeClock) -> None:
    """Replace a function with wrong code, and give up."""
    attempt.call(
        "replace_function", {"file_path": "shop/prices.py", "func_name": "discount", "func_code": WRONG}
    )
    attempt.give_up(GiveUpCode.TOO_HARD, "no idea")


def ended(attempt: Attempt, clock: FakeClock) -> None:
    """End the attempt as an organiser would."""
    attempt.end(EndReason.WITHDRAWN)


def gist(attempt: Attempt, clock: FakeClock) -> None:
    """Type, score and submit a gist."""
    attempt.call("trace", {})
    attempt.edit("gist", FAITHFUL)
    attempt.call("list_directory", {})
    attempt.call("score_gist", {})
    attempt.edit("gist", FAITHFUL.replace("price - price", "price + price"))
    attempt.call("submit_gist", {})


def timed_out(attempt: Attempt, clock: FakeClock) -> None:
    """Type a gist, and let a time limit hand it in."""
    attempt.edit("gist", FAITHFUL)
    attempt.hand_in(EndReason.TIME_CAP)
    attempt.finish_pending()


def model(attempt: Attempt, clock: FakeClock) -> None:
    """Act as a model that replies, waits for its endpoint, is taken over and given back, and declines."""
    attempt.view(Pane.MODEL)
    clock.advance(2_000)
    calls = (
        RequestedCall("a", "read_file", '{"file_path": "shop/prices.py"}'),
        RequestedCall("b", "grep", "{"),
    )
    usage = Usage(900, 30, 800, 12, cost_usd=0.01)
    attempt.model_turn(
        ModelTurn(
            turn=1, content="Let me look.", reasoning="Where?", tool_calls=calls, finish="tool_calls", model="m-1",
            fingerprint="fp", request_id="r-1", usage=usage, lost=Usage(5, estimated=True), latency_ms=1_500,
            retried=("timed_out",), tools=("read_file", "submit_attempt"),
        )
    )  # fmt: skip
    attempt.call("read_file", None, raw=calls[0].arguments, turn=1, extra={"request_id": "a"})
    attempt.call("grep", None, raw="{", turn=1, extra={"request_id": "b"})
    attempt.pause(PauseReason.ENDPOINT_WAIT)
    clock.advance(7_000)
    attempt.resume()
    attempt.hand_over("person", by="p7")
    attempt.call("list_directory", {})
    attempt.hand_over("model", by="p7", note="Look at discount.")
    attempt.model_turn(ModelTurn(turn=2, content="Hm.", refusal="No.", finish="stop"))
    attempt.hand_in(EndReason.GAVE_UP, GiveUpCode.DECLINED)


def assisted(attempt: Attempt, clock: FakeClock) -> None:
    """Ask the assistant, insert its code, ask without success, and give up."""
    reply = ChatReply(
        ChatMessage("assistant", f"```python\n{REPAIR}```"), "stop", Usage(30, 10, cost_usd=0.01), "m-1"
    )
    model = ScriptedModel([reply, ChatFailure(ChatProblem.TIMED_OUT, "late")])
    assistant = Assistant(attempt, model, ChatSettings(model="m"))
    attempt.view(Pane.ASSIST)
    attempt.edit(NAME, WRONG)
    assistant.ask("What is wrong?", NAME)
    assistant.inserted(1, NAME, len(REPAIR))
    clock.advance(5_000)
    assistant.ask("Sure?")
    attempt.give_up(GiveUpCode.TIRED)


ACTS: dict[str, Callable[[Attempt, FakeClock], None]] = {
    act.__name__: act for act in (repair, discovery, ended, gist, timed_out, model, assisted)
}


def acted(name: str, folder: Path) -> Path:
    """Make a scripted attempt in a folder, and return the path of its journal."""
    act, clock = ACTS[name], FakeClock()
    writer = JournalWriter(folder / name, clock)
    task, judge = _gist(folder) if act in (gist, timed_out) else _repair(folder, act is discovery)
    attempt = Attempt(task, judge, writer, clock, version="1")
    who = Enrolment(role=Role.TRAINING, participant="p7", comforts_off=("paste",))
    if act is model:
        who = Enrolment(MODEL, Role.QA, solver={"kind": "chat", "model": "m", "host": "localhost"})
    attempt.start(who, attempt_id=name)
    act(attempt, clock)
    writer.close()
    return folder / name / JOURNAL


def _repair(folder: Path, in_discovery: bool) -> tuple[Task, TaskJudge]:
    task = build_task(folder, Mode.DISCOVERY if in_discovery else Mode.REMOVE)
    return task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS))


def _gist(folder: Path) -> tuple[Task, TaskJudge]:
    task = build_gist_task(folder, GistSettings(OWNED, tools=("trace",), score_budget=2))
    return task, FakeGistJudge(task, gist_answer(read_answer(task)), FakeEntrypoints())
