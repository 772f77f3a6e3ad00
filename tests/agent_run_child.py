"""A run of an agent that a test kills: queues its jobs, or continues with the remaining ones.

Usage: agent_run_child.py FOLDER URL TASKS REPEATS AT_ONCE. TASKS are folders of tasks, separated by colons.
The model behind URL is asked without the package `openai`, which takes longer to load than a process lives
here. Prints every event and every operation once it is acknowledged.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from kill_child import RecordedRunner

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.events import JournalEvent
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tools.dialects import openai_tool
from gistpoint.sandbox.endpoints.replies import reply_of
from gistpoint.sessions.agentruns.jobs import JobOperation
from gistpoint.sessions.agentruns.runner import AgentPorts, AgentRunner
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore, RunSettings, job_of
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt

NAME = "killed"
SETTINGS = RunSettings(model="scripted", host="loopback", agent=AgentSettings())
_SAYING = Lock()


def say(*words: object) -> None:
    """Print a line for the process that will kill this one."""
    with _SAYING:
        sys.stdout.write(" ".join(map(str, words)) + "\n")
        sys.stdout.flush()


@dataclass(frozen=True)
class PlainModel:
    """A model behind an endpoint like OpenAI's, asked with the standard library alone."""

    url: str
    name: str = "scripted"

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatReply | ChatFailure:
        cancel.check()
        place = urlsplit(self.url)
        rows = [{"role": message.role, "content": message.content} for message in messages]
        body = json.dumps(
            {"model": self.name, "messages": rows, "tools": [openai_tool(tool) for tool in tools]}
        )
        connection = http.client.HTTPConnection(place.netloc, timeout=60)
        try:
            connection.request(
                "POST", f"{place.path}/chat/completions", body, {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            return reply_of(json.loads(response.read()), None, len(body))
        except (OSError, ValueError) as error:
            return ChatFailure(ChatProblem.NO_CONNECTION, f"No reply ({type(error).__name__}).")
        finally:
            connection.close()


class TellingAttempts(AttemptStore):
    """Prints the events that the journals of its attempts have acknowledged."""

    def start(self, *given: Any, **named: Any) -> OpenAttempt:
        opened = super().start(*given, **named)
        return _reporting(opened)

    def resume(self, *given: Any, **named: Any) -> OpenAttempt:
        opened = super().resume(*given, **named)
        return _reporting(opened)


def _reporting(opened: OpenAttempt) -> OpenAttempt:
    folder = opened.journal.path.parent.name

    def report(event: JournalEvent, state: AttemptState) -> None:
        say(
            "event",
            folder,
            event.seq,
            event.type,
            sha256_of_json(event.data.written()),
            int(event.data.durable),
        )

    opened.attempt.subscribe(report)
    return opened


class TellingRun(AgentRun):
    """Prints the acknowledged operations."""

    def append(self, operations: Sequence[JobOperation]) -> None:
        super().append(operations)
        for operation in operations:
            say("job", operation.job, type(operation).__name__)


def main() -> None:
    folder, url, at_once = Path(sys.argv[1]), sys.argv[2], int(sys.argv[5])
    tasks = {task.id: task for task in (read_task(Path(place)) for place in sys.argv[3].split(":"))}
    clock = SystemTime()
    found = AgentRunStore(folder / "runs").open_or_create(NAME, SETTINGS, clock.utc_ms(), "kill")
    run = TellingRun(found.folder, found.document)
    run.add([job_of(id, SETTINGS, n) for id in tasks for n in range(1, int(sys.argv[4]) + 1)], clock.utc_ms())
    ports = AgentPorts(
        attempts=TellingAttempts(folder / "attempts", clock, "kill"),
        clock=clock,
        task=tasks.__getitem__,
        judge=lambda task: RepairJudge(task, read_answer(task), RecordedRunner(read_answer(task))),
        model=lambda settings: PlainModel(url),
    )
    AgentRunner(run, ports, at_once=at_once).work()


if __name__ == "__main__":
    main()
