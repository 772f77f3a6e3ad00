"""The paper's loop: a model reads the repository, submits corruptions of one function, and is told what they break.

Nothing that a model or its endpoint does raises: every loop ends with a reason, within its caps.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gistpoint.core.cancel import CancelToken
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatReply, ToolRequest, Usage
from gistpoint.core.code.compare import same_program
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.corruption.model_feedback import ASKED_AGAIN, CUT_OFF, NO_CALL, left_text, trial_text
from gistpoint.core.corruption.model_rounds import End, LoopResult, LoopSettings, Round, Trial, TryOut, Verdict
from gistpoint.core.corruption.replacements import replaced_target
from gistpoint.core.ports import ChatModel
from gistpoint.core.tasks.model import Target
from gistpoint.core.tools.declaration import Argument, Kind, RefusalError, ToolContext
from gistpoint.core.tools.registry import BROWSING, call
from gistpoint.core.tools.replacement import MAX_CODE_CHARACTERS, SUBMIT_ATTEMPT

MOST_EMPTY_REPLIES = 3
"""Replies in a row without a tool call; then the loop ends."""
MOST_REFUSALS = 2
_ANSWER_CHARACTERS = 80_000

SUBMIT = replace(
    SUBMIT_ATTEMPT,
    description="Submit the modified function: its whole definition. The tests are run on it, and you get feedback.",
    arguments=(Argument("func_code", Kind.CODE, "The whole definition of the modified function."),),
)
OFFERED = {tool.name: tool for tool in (*BROWSING, SUBMIT)}

Gate = Callable[[Target], str]
"""Returns in a sentence why a corruption must not be kept, before any test ran; empty where it may."""
OnRound = Callable[[Round], None]


@dataclass
class ModelLoop:
    """One conversation about one function; `run` holds it from the prompt to its end."""

    model: ChatModel
    context: ToolContext
    function: FunctionRef
    prompt: str
    gate: Gate
    try_out: TryOut
    settings: LoopSettings = field(default_factory=LoopSettings)
    on_round: OnRound | None = None
    cancel: CancelToken | None = None

    def __post_init__(self) -> None:
        self._messages = [ChatMessage("user", self.prompt)]
        self._rounds: list[Round] = []
        self._calls = self._requests = self._refusals = self._empty = self._tried = 0
        self._usage, self._last = Usage(), Usage()
        self._models: dict[str, None] = {}
        self._retried: Counter[str] = Counter()

    def run(self) -> LoopResult:
        """Talk until there is a final submission or a reason to stop. Raises `CancelledError` when stopped."""
        ended: tuple[End, str] | None = None
        while ended is None:
            ended = self._over_the_caps() or self._turn()
        end, detail = ended
        return LoopResult(
            self.model.name,
            self.settings,
            end,
            detail,
            tuple(self._rounds),
            self._calls,
            self._requests,
            self._usage,
            sha256_of_text(self.prompt),
            tuple(self._models),
            dict(self._retried),
        )

    def _over_the_caps(self) -> tuple[End, str] | None:
        """Whether another request, at least as large as the last, would be one too many."""
        caps, spent = self.settings, self._usage
        if self._calls >= caps.tool_calls:
            return End.TOOL_CALLS, f"All {caps.tool_calls} tool calls were made."
        if caps.max_tokens is not None and spent.tokens + self._last.tokens > caps.max_tokens:
            return End.TOKEN_CAP, f"{spent.tokens} of at most {caps.max_tokens} tokens were used."
        if caps.max_cost_usd is None or not self._requests:
            return None
        if spent.cost_usd is None:
            return End.COST_UNKNOWN, "A cap on the cost is set, but neither the endpoint nor the settings give a price."
        if spent.cost_usd + (self._last.cost_usd or 0.0) > caps.max_cost_usd:
            return End.COST_CAP, f"{spent.cost_usd:.4f} of at most {caps.max_cost_usd:g} US dollars were spent."
        return None

    def _turn(self) -> tuple[End, str] | None:
        last_call = self._calls + 1 >= self.settings.tool_calls and not self._tried
        tools = [SUBMIT] if last_call else list(OFFERED.values())
        schemas: list[Mapping[str, Any]] = [tool.json_schema() for tool in tools]
        reply = self.model.complete(self._messages, schemas, cancel=self.cancel)
        if self.cancel is not None:
            self.cancel.check()
        self._requests += 1
        self._usage, self._last = self._usage + reply.usage, reply.usage
        self._retried.update(problem.value for problem in reply.retried)
        if isinstance(reply, ChatFailure):
            return End(reply.problem.value), reply.message
        if reply.model:
            self._models[reply.model] = None
        if reply.refusal or reply.finish == "content_filter":
            return self._refused(reply)
        if not reply.message.tool_calls:
            return self._nothing_called(reply)
        self._empty = 0
        return self._answer_calls(reply)

    def _refused(self, reply: ChatReply) -> tuple[End, str] | None:
        self._refusals += 1
        if self._refusals >= MOST_REFUSALS:
            words = reply.refusal or reply.message.content or "Its reply was stopped by a content filter."
            return End.REFUSED, words[:500]
        self._say_again(reply, ASKED_AGAIN)
        return None

    def _nothing_called(self, reply: ChatReply) -> tuple[End, str] | None:
        cut = reply.finish == "length"
        if not cut and any(item.accepted for item in self._rounds):
            return End.STOPPED_BY_MODEL, reply.message.content[:500]
        self._empty += 1
        if self._empty >= MOST_EMPTY_REPLIES:
            what = "were cut off at the limit of their length" if cut else "called no tool"
            return (End.TRUNCATED if cut else End.NO_TOOL_CALL), f"{self._empty} replies in a row {what}."
        self._say_again(reply, CUT_OFF if cut else NO_CALL)
        return None

    def _say_again(self, reply: ChatReply, text: str) -> None:
        content = reply.message.content or reply.refusal
        if content:
            self._messages.append(ChatMessage("assistant", content))
        self._messages.append(ChatMessage("user", f"{text}\n{self._left()}"))

    def _answer_calls(self, reply: ChatReply) -> tuple[End, str] | None:
        """Answer every call of a reply, as the protocol wants it; those beyond the last allowed one are refused."""
        requests = _sound(reply.message.tool_calls, self._calls)
        self._messages.append(replace(reply.message, role="assistant", tool_calls=tuple(echo for _, echo in requests)))
        ended: tuple[End, str] | None = None
        for asked, echo in requests:
            if ended is not None or self._calls >= self.settings.tool_calls:
                text = "Refused: no tool call is left."
            else:
                self._calls += 1
                text, ended = self._answer(asked)
            self._messages.append(ChatMessage("tool", f"{text}\n{self._left()}", tool_call_id=echo.id))
        return ended

    def _answer(self, asked: ToolRequest) -> tuple[str, tuple[End, str] | None]:
        tool = OFFERED.get(asked.name)
        if tool is None:
            return f"Refused: there is no tool {asked.name[:80]!r}; there are {', '.join(OFFERED)}.", None
        try:
            arguments = _arguments(asked)
            if tool is not SUBMIT:
                return call(tool, self.context, arguments).text[:_ANSWER_CHARACTERS], None
            code = tool.bind(arguments)["func_code"]
        except RefusalError as refusal:
            return f"Refused: {refusal}", None
        return self._submitted(code)

    def _submitted(self, code: str) -> tuple[str, tuple[End, str] | None]:
        done = self._judged(code)
        self._rounds.append(done)
        if self.on_round is not None:
            self.on_round(done)
        if done.trial is None:
            return f"Refused before any test ran: {done.detail}", None
        self._tried += 1
        if self._tried > self.settings.feedback_rounds:
            return "This was the final submission.", (End.FINAL_SUBMISSION, "")
        return trial_text(done.trial, self.settings), None

    def _judged(self, code: str) -> Round:
        number = len(self._rounds) + 1
        recorded = code[:MAX_CODE_CHARACTERS]
        if len(code) > MAX_CODE_CHARACTERS:
            detail = f"The code has {len(code)} characters; at most {MAX_CODE_CHARACTERS} are taken."
            return Round(number, self._calls, "", Verdict.NO_DEFINITION, detail)
        try:
            target = replaced_target(self.context.tree, self.function, code)
            unchanged = same_program(target.original, target.corrupted)
            detail = "" if unchanged else self.gate(target)
        except CodeError as error:
            return Round(number, self._calls, recorded, Verdict.NO_DEFINITION, str(error))
        if unchanged:
            return Round(number, self._calls, recorded, Verdict.UNCHANGED, "The function behaves as it did.", target)
        if detail:
            return Round(number, self._calls, recorded, Verdict.CLUE, detail, target)
        trial = self._counted(self.try_out(target))
        return Round(number, self._calls, recorded, trial.verdict, trial.detail, target, trial)

    def _counted(self, trial: Trial) -> Trial:
        few = trial.verdict is Verdict.ACCEPTED and trial.failing < self.settings.min_failing
        return replace(trial, verdict=Verdict.TOO_FEW_FAILING) if few else trial

    def _left(self) -> str:
        feedback = max(0, self.settings.feedback_rounds - self._tried)
        return left_text(self.settings.tool_calls - self._calls, feedback, self.settings)


def _arguments(asked: ToolRequest) -> dict[str, Any]:
    try:
        values = json.loads(asked.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise RefusalError(f"the arguments of {asked.name} are not JSON: {str(error)[:200]}.") from error
    if not isinstance(values, dict):
        raise RefusalError(f"the arguments of {asked.name} must be one JSON object.")
    return values


def _sound(calls: tuple[ToolRequest, ...], made: int) -> list[tuple[ToolRequest, ToolRequest]]:
    """Return each call with the form in which it goes into the conversation.

    Endpoints refuse a history with ids that repeat, odd names or arguments that are not JSON.
    """
    sound: list[tuple[ToolRequest, ToolRequest]] = []
    seen: set[str] = set()
    for number, asked in enumerate(calls, start=made + 1):
        id = asked.id if asked.id and asked.id not in seen else f"call_{number}"
        seen.add(id)
        name = re.sub(r"[^A-Za-z0-9_-]", "_", asked.name)[:64] or "unnamed"
        try:
            arguments = json.dumps(_arguments(asked))
        except RefusalError:
            arguments = "{}"
        sound.append((asked, ToolRequest(id, name, arguments)))
    return sound
