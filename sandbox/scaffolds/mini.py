"""mini-swe-agent as a scaffold: its loop, with gistpoint as its model and its shell.

It runs in a separate environment, which `uv` makes in the cache, because its packages conflict with
gistpoint's. The model is asked as in gistpoint's own loop, and each command is a call to the task's tools
(decision 153).
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gistpoint.core.agents.scaffolds import ScaffoldError, ScaffoldIdentity, Seat, message_of
from gistpoint.core.agents.settings import filled, prompt_text
from gistpoint.core.agents.shell_commands import call_in, example_of, usage_lines
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import ChatMessage, ToolRequest, arguments_of, sound_requests
from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.logs import wait_for
from gistpoint.core.tools.declaration import Activity, Argument, ArgumentKind, Group, Tool
from gistpoint.sandbox.environments.uv import WHEELS_ALONE, call_uv
from gistpoint.sandbox.layout import run_folder
from gistpoint.sandbox.scaffolds.confinement import WORK, Confined, killed_at_end, last_words, python

NAME: Final = "mini-swe-agent"
VERSION: Final = "2.4.6"
PROMPT: Final = "mini-1"
TRAJECTORY: Final = "mini-swe-agent.traj.json"
_NEEDS = (
    "annotated-types==0.8.0",
    "jinja2==3.1.6",
    "markdown-it-py==4.3.0",
    "markupsafe==3.0.4",
    "mdurl==0.1.2",
    "platformdirs==4.14.8",
    "pydantic==2.14.4",
    "pydantic-core==2.50.5",
    "pygments==2.21.0",
    "python-dotenv==1.2.4",
    "pyyaml==6.0.4",
    "rich==15.0.0",
    "typing-extensions==4.16.0",
    "typing-inspection==0.4.5",
)
"""The modules that its loop imports; others, such as litellm, would be needed only to ask models itself."""
_SYSTEM = "You are a helpful assistant that can interact with a computer shell to solve programming tasks."
"""The system prompt of its own configuration (`mini.yaml`)."""
_FORMAT_ERROR = (
    "Tool call error:\n\n<error>\n{{error}}\n</error>\n\n"
    'Every response has to call the tool `bash`, with {"command": "your_command_here"} as its arguments.\n'
)
_MOST_BYTES = 64 << 20
"""The limit on one line of the driver, which contains the whole conversation."""
_TICK_S = 0.2
_DRIVER = ("-I", f"{WORK}/driver.py")
BASH = Tool(
    name="bash",
    description="Execute a bash command",
    arguments=(Argument("command", ArgumentKind.COMMAND, "The bash command to execute"),),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    step="execute",
    run=None,
)
"""The only tool that mini-swe-agent offers to a model, as it declares it."""


@dataclass(frozen=True, slots=True)
class MiniScaffold:
    """The scaffold `mini-swe-agent`; implements `core.agents.scaffolds.Scaffold`."""

    cache: Path
    """The folder of caches, which contains its environment."""

    @property
    def identity(self) -> ScaffoldIdentity:
        """The name, the version, and the hash of the prompt."""
        return ScaffoldIdentity(NAME, VERSION, prompt_sha256=sha256_of_text(prompt_text(PROMPT)))

    @property
    def command(self) -> list[str]:
        """The words of the command that runs its loop."""
        return ["python", *_DRIVER]

    def attempt(self, seat: Seat) -> None:
        """Let mini-swe-agent work on an attempt; its trajectory is copied to the seat's folder.

        Raises `ScaffoldError` if it fails.
        """
        environment = mini_environment(self.cache)
        with run_folder() as folder:
            (folder / "home").mkdir()
            shutil.copy(Path(__file__).with_name("mini_driver.py"), folder / "driver.py")
            confined = Confined(
                [str(environment / "bin" / "python"), *_DRIVER],
                folder,
                [environment],
                {"MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": f"{WORK}/home"},
            )
            process = confined.start(talks=True)
            with killed_at_end(process):
                is_done = _Conversation(seat, process).conduct()
            if (folder / TRAJECTORY).is_file():
                shutil.copyfile(folder / TRAJECTORY, seat.folder / TRAJECTORY)
            if not is_done and not seat.over:
                words = last_words(folder, "errors.txt") or "it printed nothing"
                raise ScaffoldError(f"mini-swe-agent ended unexpectedly: {words}")


def mini_environment(cache: Path) -> Path:
    """Return the folder of mini-swe-agent's environment, which is made if it is missing.

    Raises `ScaffoldError` if it can't be made.
    """
    folder = cache / "scaffolds" / f"{NAME}-{VERSION}"
    if (folder / "made").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with wait_for(folder.with_suffix(".lock")):
        if (folder / "made").exists():
            return folder
        interpreter = str(folder / "bin" / "python")
        install = ["pip", "install", "--python", interpreter, *WHEELS_ALONE, "--no-deps"]
        for arguments in (
            ["venv", "--clear", "--python", python(), str(folder)],
            [*install, f"{NAME}=={VERSION}", *_NEEDS],
        ):
            try:
                done = call_uv(arguments)
            except EnvironmentBuildError as error:
                raise ScaffoldError(str(error)) from error
            if not done.ok:
                raise ScaffoldError(f"{NAME} {VERSION} can't be installed: {done.log[-600:]}")
        (folder / "made").touch()
    return folder


@dataclass
class _Conversation:
    """The exchange of requests and answers with the driver."""

    seat: Seat
    process: subprocess.Popen[bytes]
    written: dict[int, ChatMessage] = field(default_factory=dict)
    """The replies as later requests repeat them, by the number of the turn."""
    ids: list[str] = field(default_factory=list)
    """The ids of the calls so far."""

    def conduct(self) -> bool:
        """Answer the driver until it is done; return False if the driver ended early."""
        self._send({**self._beginning(), "trajectory": f"{WORK}/{TRAJECTORY}"})
        for request in self._requests():
            if "exit" in request:
                return True
            answer = self._asked(request["ask"]) if "ask" in request else self._run(request)
            self._send(answer or {"end": self._end})
        return False

    @property
    def _end(self) -> str:
        ending = self.seat.work.attempt.state.ending
        return "stopped" if ending is None else ending.reason

    def _beginning(self) -> dict[str, Any]:
        tools = self.seat.work.attempt.tools
        values = {"brief": self.seat.brief, "commands": usage_lines(tools), "example": example_of(tools)}
        return {
            "task": filled(prompt_text(PROMPT), values),
            # Answers reach the model unchanged.
            "model": {
                "model_name": self.seat.model,
                "observation_template": "{{ output.output }}",
                "format_error_template": _FORMAT_ERROR,
            },
            "agent": {"system_template": _SYSTEM, "instance_template": "{{task}}"},
        }

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which the next read shows

    def _requests(self) -> Iterator[dict[str, Any]]:
        """Yield the driver's requests until it ends or the work is stopped.

        Raises `ScaffoldError` for a line that is not a request.
        """
        assert self.process.stdout is not None
        descriptor, rest = self.process.stdout.fileno(), b""
        while True:
            if not select.select([descriptor], [], [], _TICK_S)[0]:
                if self.seat.over and self.seat.work_end is not None:
                    return
                continue
            block = os.read(descriptor, 1 << 20)
            if not block:
                return
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > _MOST_BYTES:
                raise ScaffoldError("mini-swe-agent sent a line that is too long.")
            for line in lines:
                yield _decoded(line)

    def _asked(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """Return the model's reply to messages; None if the seat is over."""
        turn = self.seat.ask([self._message(message) for message in messages], [BASH])
        if turn is None:
            return None
        written = message_of(turn)
        echoes = sound_requests(written.tool_calls, self.ids)
        self.ids += [echo.id for echo in echoes]
        self.written[turn.turn] = ChatMessage(
            "assistant", written.content, echoes, "", written.reasoning, written.extra, written.host
        )
        calls = [
            {
                "id": echo.id,
                "type": "function",
                "function": {"name": asked.name, "arguments": asked.arguments},
            }
            for echo, asked in zip(echoes, written.tool_calls, strict=True)
        ]
        reply = {"role": "assistant", "content": turn.content, "turn": turn.turn}
        return {
            "reply": {**reply, "tool_calls": calls} if calls else reply,
            "finish": turn.finish,
            "cost": turn.usage.cost_usd or 0.0,
            "charged": self._charged(turn),
        }

    def _charged(self, turn: ModelTurn) -> str:
        """Charge the call that makes mini-swe-agent refuse a reply; return the refusal (empty if none).

        It carries out none of a reply's calls if one of them is not a call to `bash`.
        """
        for call in turn.tool_calls:
            if not _is_command(ToolRequest(call.id, call.name, call.arguments)):
                name = "bash" if call.name == "bash" else call.name
                return f"\n{self.seat.call(name, raw=call.arguments, id=call.id).text}"
        return ""

    def _run(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a command; None if the seat is over."""
        if self.seat.over:
            return None
        command = str(request.get("run") or "")
        call = call_in(command, self.seat.work.attempt.tools)
        answer = self.seat.call(call.tool, call.arguments, raw=command, id=str(request.get("id") or ""))
        return {"output": answer.text, "returncode": int(answer.refused)}

    def _message(self, message: Mapping[str, Any]) -> ChatMessage:
        known = self.written.get(message.get("turn") or 0)
        if known is not None:
            return known
        return ChatMessage(
            str(message.get("role")),
            str(message.get("content") or ""),
            tool_call_id=str(message.get("tool_call_id") or ""),
        )


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ScaffoldError("mini-swe-agent sent something that is not a request.") from error
    if not isinstance(value, dict):
        raise ScaffoldError("mini-swe-agent sent something that is not a request.")
    return value


def _is_command(call: ToolRequest) -> bool:
    try:
        return call.name == BASH.name and "command" in arguments_of(call)
    except ValueError:
        return False
