"""Offers the tools and the brief of one attempt, on top of mcp's low-level server.

The engine checks the arguments, not the protocol, so that a call costs the same for everybody (decision 49).
The attempt begins at the first call, since many clients start a server and never call it (decision 76).
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from typing import Any

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from gistpoint import __version__
from gistpoint.core.kinds.titles import solver_title
from gistpoint.core.running import CancelToken, OnProgress, RunContext, RunProgress
from gistpoint.core.tasks.rules import Face, not_allowed
from gistpoint.core.text import visible
from gistpoint.core.tools.dialects import mcp_tool
from gistpoint.sessions.served import Answered, Served, ServedAttempt, ServedVerdict

READ_BRIEF, SOLVE = "read_brief", "solve"
INSTRUCTIONS = (
    "This server provides the tools for one attempt at a programming task. Call read_brief first: it costs"
    " nothing and describes the task and its budgets. Use only the tools of this server. "
    f"{not_allowed(Face.MODEL)} Every other call costs one tool use, even if it is refused; each answer ends"
    " with the remaining budgets. Nobody will answer questions: continue until an answer says that the"
    " attempt has ended."
)
"""The instructions for the model. Some clients cut off long ones, one of them after 2,048 characters."""
BEAT_S, PROGRESS_S = 5.0, 2.0
"""Seconds between two heartbeats in the journal, and between two progress reports to a waiting client."""
_REPORTED = 200
"""The maximum number of characters recorded of the name or version that a client reports."""

Context = ServerRequestContext[None, Any]
_RAW: ContextVar[str] = ContextVar("_RAW", default="")
"""The arguments of the current call as text, if they are not an object."""


class AttemptServer(Server[None]):
    """The server of one attempt, for one client after another.

    Calls run one at a time, in the order of their arrival.
    """

    def __init__(self, served: Served) -> None:
        super().__init__(
            "gistpoint",
            version=__version__,
            title=f"gistpoint: {solver_title(served.task)}",
            instructions=INSTRUCTIONS,
            lifespan=self._beating,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        self.served = served
        self._turn = anyio.Lock()
        self._calls: dict[str, CancelToken] = {}
        self.middleware.append(self._as_sent)

    def create_initialization_options(self, *_: Any, **__: Any) -> InitializationOptions:
        """Return the answer to `initialize`. It announces that the list of tools can change."""
        return super().create_initialization_options(NotificationOptions(tools_changed=True))

    @asynccontextmanager
    async def _beating(self, server: Server[None]) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                await anyio.sleep(BEAT_S)
                await to_thread.run_sync(self.served.beat)
                async with self._turn:
                    await to_thread.run_sync(self.served.hand_in)

        async with anyio.create_task_group() as beats:
            beats.start_soon(beat)
            try:
                yield
            finally:
                beats.cancel_scope.cancel()

    async def _as_sent(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Prepare for calls, handle cancelled ones, and accept arguments that the protocol would refuse."""
        params = ctx.params or {}
        if ctx.method == "notifications/cancelled":
            if (token := self._calls.get(str(params.get("requestId")))) is not None:
                token.cancel()
        elif ctx.method == "tools/call":
            name, arguments = params.get("name"), params.get("arguments")
            if arguments is not None and not isinstance(arguments, dict):
                _RAW.set(json.dumps(arguments))
                arguments = {}
            sound = {"name": name if isinstance(name, str) else "", "arguments": arguments or {}}
            ctx = replace(ctx, params={**params, **sound})
        if ctx.method != "initialize":
            self.served.prepare()
        return await call_next(ctx)

    async def _list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        tools = [types.Tool.model_validate(mcp_tool(tool)) for tool in self.served.tools()]
        return types.ListToolsResult(tools=[_BRIEF_TOOL, *tools])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        raw, before = _RAW.get(), self.served.tools()
        if params.name == READ_BRIEF:
            answer = await self._in_turn(ctx, lambda run: self.served.read_brief(_client(ctx)))
        else:
            arguments = None if raw else params.arguments or {}
            answer = await self._in_turn(
                ctx, lambda run: self.served.call(params.name, arguments, raw, _client(ctx), run)
            )
        if self.served.tools() != before:
            await ctx.session.send_tool_list_changed()
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=_sendable(answer.text))],
            is_error=answer.refused,
            _meta={
                "gistpoint/budget": dict(answer.budget),
                **({"gistpoint/note": answer.note} if answer.note else {}),
            },
        )

    async def _in_turn(self, ctx: Context, do: Callable[[RunContext], Answered]) -> Answered:
        """Run a function in a thread after all earlier calls are answered.

        A thread that has started is always awaited.
        """
        token, name = CancelToken(), str(ctx.request_id)
        self._calls[name] = token
        try:
            async with _reporting(ctx) as take, self._turn:
                return await to_thread.run_sync(do, RunContext(token, take))
        finally:
            if self._calls.get(name) is token:
                del self._calls[name]

    async def verdict(self) -> ServedVerdict | None:
        """End the attempt after all earlier calls, and return its verdict.

        The result is None the second time, and for an attempt in a run.
        """
        served = self.served
        if not isinstance(served, ServedAttempt):
            return None
        async with self._turn:
            return await to_thread.run_sync(served.verdict)

    async def _list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[types.Prompt(name=SOLVE, description="The brief of the task.")]
        )

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != SOLVE:
            raise MCPError(code=types.INVALID_PARAMS, message=f"The only prompt is {SOLVE!r}.")
        answer = await self._in_turn(ctx, lambda run: self.served.read_brief(_client(ctx)))
        content = types.TextContent(type="text", text=_sendable(answer.text))
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


_BRIEF_TOOL = types.Tool.model_validate(
    {
        "name": READ_BRIEF,
        "description": "Read what the task is, and how many calls you have. Free: it costs no tool use.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False},
    }
)


@asynccontextmanager
async def _reporting(ctx: Context) -> AsyncIterator[OnProgress]:
    """Report the progress of a call to a client that asked for it.

    The progress may come from any thread.
    """
    latest = [RunProgress()]

    def take(progress: RunProgress) -> None:
        latest[:] = [progress]

    async def report() -> None:
        for number in count(1):
            await anyio.sleep(PROGRESS_S)
            await ctx.session.report_progress(number, message=_progress_words(latest[-1]))

    async with anyio.create_task_group() as reports:
        reports.start_soon(report)
        yield take
        reports.cancel_scope.cancel()


def _client(ctx: Context) -> Mapping[str, Any]:
    """Return the protocol's version and, under `client`, what the client reports about itself, shortened."""
    params = ctx.session.client_params
    reported = {"protocol": ctx.session.protocol_version[:_REPORTED]}
    if params is None:
        return reported
    info = params.client_info
    return {"client": {"name": info.name[:_REPORTED], "version": info.version[:_REPORTED]}, **reported}


def _progress_words(progress: RunProgress) -> str:
    """Describe the progress of a call, without anything that its answer would not reveal."""
    words = " ".join(part for part in (progress.step, progress.phase) if part) or "waiting"
    return f"{words}, {progress.done} of {progress.total}" if progress.total else words


def _sendable(text: str) -> str:
    """Return text in a form that UTF-8 can encode: half of a surrogate pair becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Logs of the packages behind the protocol go to standard error, with clients' control characters visible


class _Visible(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text with visible control characters: names and headers come from a client."""
        return visible(super().format(record))


def log_visibly() -> None:
    """Make control characters visible in warnings and errors of packages without their own handler."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Visible())
