"""The loop of the paper: a model reads a repository, corrupts one function, and gets feedback from tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import (
    ChatFailure,
    ChatMessage,
    ChatReply,
    ToolRequest,
    Usage,
    arguments_of,
    sound_requests,
)
from gistpoint.core.code.compare import same_program
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.corruption.corruptions import replaced_target
from gistpoint.core.corruption.feedback import (
    ASKED_AGAIN,
    CUT_OFF,
    MOST_REPEATS,
    NO_CALL,
    again_text,
    remaining_text,
    trial_text,
)
from gistpoint.core.corruption.rounds import (
    Appearance,
    End,
    LoopResult,
    LoopSettings,
    ModelTrial,
    Reader,
    Round,
    SubmissionVerdict,
    TryOut,
)
from gistpoint.core.estimates import tokens_in
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.model import Target
from gistpoint.core.tools.browsing import LIST_DIRECTORY, LIST_FILE_FUNCTIONS, READ_FILE, READ_FUNCTION
from gistpoint.core.tools.declaration import Argument, ArgumentKind, RefusalError, Tool, ToolContext
from gistpoint.core.tools.replacing import MAX_CODE_CHARACTERS, SUBMIT_ATTEMPT
from gistpoint.core.tools.search_code import SEARCH_CODE

MOST_EMPTY_REPLIES = 3
"""The number of consecutive replies without a tool call after which the loop ends."""
MOST_REFUSALS = 2
_ANSWER_CHARACTERS = 80_000

SUBMIT = replace(
    SUBMIT_ATTEMPT,
    description=(
        "Submit the modified function: its whole definition. The tests are run on it, and you get feedback."
    ),
    arguments=(Argument("func_code", ArgumentKind.CODE, "The whole definition of the modified function."),),
)
OFFERED = {
    tool.name: tool
    for tool in (LIST_DIRECTORY, SEARCH_CODE, READ_FILE, LIST_FILE_FUNCTIONS, READ_FUNCTION, SUBMIT)
}
"""The tools of the corrupting model, as in the paper, whatever tools solvers are offered.

Otherwise, an experiment that gives solvers another tool would also change the corruptions.
"""

Gate = Callable[[Target], str]
"""Returns a sentence on why a corruption must be dropped before any test runs; empty to keep it."""
OnRound = Callable[[Round], None]


class Meter(Protocol):
    """Counts requests for the set of tasks that a conversation belongs to."""

    def before(self, estimate: Usage) -> str:
        """Return why a request of about this size must not be sent; empty if one may be sent."""
        ...

    def after(self, usage: Usage) -> None:
        """Count the usage of a request, whether it was answered or failed."""
        ...


def unread(target: Target) -> Appearance:
    """Return an empty appearance, for a corruption that is not examined."""
    return Appearance()


@dataclass
class ModelLoop:
    """One conversation about one function, from the prompt to its end."""

    model: ChatModel
    context: ToolContext
    function: FunctionRef
    prompt: str
    gate: Gate
    try_out: TryOut
    settings: LoopSettings = field(default_factory=LoopSettings)
    on_round: OnRound | None = None
    cancel: CancelToken = NEVER
    read: Reader = unread
    meter: Meter | None = None

    _asked_again: ClassVar[str] = ASKED_AGAIN
    """The message that follows a refused or stopped reply."""
    _gated: ClassVar[SubmissionVerdict] = SubmissionVerdict.CLUE
    """The verdict on a submission that the gate drops."""

    def __post_init__(self) -> None:
        self._messages = [ChatMessage("user", self.prompt)]
        self._rounds: list[Round] = []
        self._calls = self._requests = self._refusals = self._empty = self._tried = self._repeats = 0
        self._ids: list[str] = []
        self._sent: dict[str, Round] = {}
        self._usage, self._last = Usage(), Usage()
        self._models: dict[str, None] = {}
        self._retried: Counter[str] = Counter()

    def run(self) -> LoopResult:
        """Hold the conversation until a final submission or a reason to stop, and return its result.

        Raises `CancelledError` when stopped.
        """
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
        """Return the end and its reason if another request may exceed a limit; else None.

        The next request is assumed to be as large as the last one.
        """
        caps, spent = self.settings, self._usage
        # The limits of this conversation are checked first, and the meter of the whole set last.
        if self._calls >= caps.tool_calls:
            return End.TOOL_CALLS, f"All {caps.tool_calls} tool calls were made."
        if caps.max_tokens is not None and spent.tokens + self._last.tokens > caps.max_tokens:
            return End.TOKEN_CAP, f"{spent.tokens} of at most {caps.max_tokens} tokens were used."
        ended = self._over_the_cost() if self._requests else None
        if ended is not None or self.meter is None:
            return ended
        estimate = self._last if self._requests else Usage(tokens_in(len(self.prompt)), estimated=True)
        refusal = self.meter.before(estimate)
        return (End.SET_CAP, refusal) if refusal else None

    def _over_the_cost(self) -> tuple[End, str] | None:
        caps, spent = self.settings, self._usage
        if caps.max_cost_usd is None:
            return None
        if spent.cost_usd is None:
            return (
                End.COST_UNKNOWN,
                "A cap on the cost is set, but neither the endpoint nor the settings give a price.",
            )
        if spent.cost_usd + (self._last.cost_usd or 0.0) > caps.max_cost_usd:
            return (
                End.COST_CAP,
                f"{spent.cost_usd:.4f} of at most {caps.max_cost_usd:g} US dollars were spent.",
            )
        return None

    def _turn(self) -> tuple[End, str] | None:
        schemas: list[Mapping[str, Any]] = [tool.json_schema() for tool in self._offered()]
        reply = self.model.complete(self._messages, schemas, cancel=self.cancel)
        self.cancel.check()
        self._requests += 1
        spent = reply.usage if isinstance(reply, ChatFailure) else reply.usage + reply.lost
        self._usage, self._last = self._usage + spent, reply.usage
        if self.meter is not None:
            self.meter.after(spent)
        self._retried.update(problem.value for problem in reply.retried)
        if isinstance(reply, ChatFailure):
            return End(reply.problem.value), reply.message
        if reply.model:
            self._models[reply.model] = None
        if reply.refusal or reply.finish == "content_filter":
            return self._refused(reply)
        return self._answered(reply)

    def _offered(self) -> list[Tool]:
        """Return the tools of the next request."""
        # If there is no submission yet, the last call can only be a submission.
        last_call = self._calls + 1 >= self.settings.tool_calls and not self._tried
        return [SUBMIT] if last_call else list(OFFERED.values())

    def _answered(self, reply: ChatReply) -> tuple[End, str] | None:
        """Handle a reply that is not a refusal; return the end and its reason, or None to continue."""
        if not reply.message.tool_calls:
            return self._nothing_called(reply)
        self._empty = 0
        return self._answer_calls(reply)

    def _refused(self, reply: ChatReply) -> tuple[End, str] | None:
        self._refusals += 1
        if self._refusals >= MOST_REFUSALS:
            words = reply.refusal or reply.message.content or "Its reply was stopped by a content filter."
            return End.REFUSED, words[:500]
        self._ask_again(reply, self._asked_again)
        return None

    def _nothing_called(self, reply: ChatReply) -> tuple[End, str] | None:
        cut = reply.finish == "length"
        if not cut and any(item.accepted for item in self._rounds):
            return End.STOPPED_BY_MODEL, reply.message.content[:500]
        self._empty += 1
        if self._empty >= MOST_EMPTY_REPLIES:
            what = "were cut off at the limit of their length" if cut else "called no tool"
            return (End.TRUNCATED if cut else End.NO_TOOL_CALL), f"{self._empty} replies in a row {what}."
        self._ask_again(reply, CUT_OFF if cut else NO_CALL)
        return None

    def _ask_again(self, reply: ChatReply, text: str) -> None:
        # The text of a filtered reply is the endpoint's, not the model's.
        refusal = "" if reply.finish == "content_filter" else reply.refusal
        content = reply.message.content or refusal
        if content:
            self._messages.append(replace(reply.message, content=content, tool_calls=()))
        self._messages.append(ChatMessage("user", f"{text}\n{self._remaining()}".rstrip()))

    def _answer_calls(self, reply: ChatReply) -> tuple[End, str] | None:
        """Answer every call of a reply, as the protocol requires; calls beyond the limit are refused.

        Return the end and its reason if a call ends the conversation; else None.
        """
        echoes = sound_requests(reply.message.tool_calls, self._ids)
        self._ids += [echo.id for echo in echoes]
        self._messages.append(replace(reply.message, role="assistant", tool_calls=echoes))
        ended: tuple[End, str] | None = None
        for asked, echo in zip(reply.message.tool_calls, echoes, strict=True):
            if ended is not None or self._calls >= self.settings.tool_calls:
                text = "Refused: no tool call is left."
            else:
                self._calls += 1
                text, ended = self._answer(asked)
            self._messages.append(ChatMessage("tool", f"{text}\n{self._remaining()}", tool_call_id=echo.id))
        return ended

    def _answer(self, asked: ToolRequest) -> tuple[str, tuple[End, str] | None]:
        tool = OFFERED.get(asked.name)
        if tool is None:
            return f"Refused: there is no tool {asked.name[:80]!r}; there are {', '.join(OFFERED)}.", None
        try:
            bound = tool.bind(arguments_of(asked))
        except (RefusalError, ValueError) as refusal:
            return f"Refused: {refusal}", None
        if tool is SUBMIT:
            return self._submitted(bound.arguments["func_code"])
        return bound.answer(self.context).text[:_ANSWER_CHARACTERS], None

    def _submitted(self, code: str) -> tuple[str, tuple[End, str] | None]:
        done = self._judged(code)
        self._rounds.append(done)
        self._sent.setdefault(done.target.corrupted if done.target else code.strip(), done)
        if self.on_round is not None:
            self.on_round(done)
        final = self._tried >= self.settings.feedback_rounds
        if done.again is not None and not (final and done.trial is not None):
            return self._sent_again(self._rounds[done.again - 1])
        if done.trial is None:
            return f"Refused before any test ran: {done.detail}", None
        self._tried += 1
        if final:
            return "This was the final submission.", (End.FINAL_SUBMISSION, "")
        return trial_text(done.trial, self.settings, done.appearance), None

    def _sent_again(self, earlier: Round) -> tuple[str, tuple[End, str] | None]:
        self._repeats += 1
        text = again_text(earlier, self._repeats, self.settings)
        if self._repeats < MOST_REPEATS:
            return text, None
        return text, (End.SENT_AGAIN, f"{self._repeats} submissions repeated code that was sent before.")

    def _judged(self, code: str) -> Round:
        number = len(self._rounds) + 1
        recorded = code[:MAX_CODE_CHARACTERS]
        if len(code) > MAX_CODE_CHARACTERS:
            detail = f"The code has {len(code)} characters; at most {MAX_CODE_CHARACTERS} are taken."
            return Round(number, self._calls, "", SubmissionVerdict.NO_DEFINITION, detail)
        try:
            target = self._target_of(code)
        except CodeError as error:
            refused = Round(number, self._calls, recorded, SubmissionVerdict.NO_DEFINITION, str(error))
            # A repeated text is counted as repeated even if it was never a definition.
            return self._earlier_round(code.strip(), refused) or refused
        done = Round(number, self._calls, recorded, SubmissionVerdict.UNCHANGED, target=target)
        return self._earlier_round(target.corrupted, done) or self._decided(done, target)

    def _target_of(self, code: str) -> Target:
        """Return the target with the code of a submission. Raises `CodeError` if it is not the definition."""
        return replaced_target(self.context.tree, self.function, code)

    def _earlier_round(self, text: str, done: Round) -> Round | None:
        """Return the round with the earlier result of the same text; None if the text is new."""
        earlier = self._sent.get(text)
        if earlier is None:
            return None
        return replace(earlier, number=done.number, call=done.call, code=done.code, again=earlier.number)

    def _decided(self, done: Round, target: Target) -> Round:
        # Code with the same meaning breaks no test, so no test is run for it.
        try:
            unchanged = same_program(target.original, target.corrupted)
            detail = "The function behaves as it did." if unchanged else self.gate(target)
        except CodeError as error:
            return replace(done, verdict=SubmissionVerdict.NO_DEFINITION, detail=str(error))
        if unchanged:
            return replace(done, detail=detail)
        if detail:
            return replace(done, verdict=self._gated, detail=detail)
        trial = self._counted(self.try_out(target))
        return replace(
            done, verdict=trial.verdict, detail=trial.detail, trial=trial, appearance=self.read(target)
        )

    def _counted(self, trial: ModelTrial) -> ModelTrial:
        few = trial.verdict is SubmissionVerdict.ACCEPTED and trial.failing < self.settings.min_failing
        return replace(trial, verdict=SubmissionVerdict.TOO_FEW_FAILING) if few else trial

    def _remaining(self) -> str:
        feedback = max(0, self.settings.feedback_rounds - self._tried)
        return remaining_text(self.settings.tool_calls - self._calls, feedback, self.settings)
