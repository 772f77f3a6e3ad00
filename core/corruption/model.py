"""The loop of the paper: a model reads the repository, corrupts one function, and gets feedback on failing tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.resources import files
from typing import Any

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import (
    ChatFailure,
    ChatMessage,
    ChatProblem,
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
from gistpoint.core.corruption.evidence import FEW_FAILING, band
from gistpoint.core.kinds.repair.tools import MAX_CODE_CHARACTERS, SUBMIT_ATTEMPT
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.model import Failure, Target
from gistpoint.core.tools.browsing import LIST_DIRECTORY, LIST_FILE_FUNCTIONS, READ_FILE, READ_FUNCTION
from gistpoint.core.tools.declaration import Argument, ArgumentKind, RefusalError, ToolContext
from gistpoint.core.tools.search_code import SEARCH_CODE

TEMPLATE = "breakpoint-appendix-b"
_FIELDS = re.compile(r"\{(function_path|func_code|test_examples|self\.test_budget|self\.max_iterations)\}")


def template_text() -> str:
    """Return the stored template."""
    return files("gistpoint.core.corruption").joinpath("templates", f"{TEMPLATE}.md").read_text(encoding="utf-8")


def template_sha256() -> str:
    """Return the hash of the template's text, as in every record of a corruption."""
    return sha256_of_text(template_text())


def render_template(
    *, function_path: str, func_code: str, test_examples: str, test_budget: int, max_iterations: int
) -> str:
    """Return the prompt; braces in the values have no meaning."""
    values = {
        "function_path": function_path,
        "func_code": func_code,
        "test_examples": test_examples,
        "self.test_budget": str(test_budget),
        "self.max_iterations": str(max_iterations),
    }
    return _FIELDS.sub(lambda found: values[found.group(1)], template_text())


class Keep(StrEnum):
    """Which of the accepted submissions becomes the corruption."""

    BEST = "best"
    """The most subtle one."""
    FINAL = "final"
    """The last one, as in the paper."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """The limits of one loop. The paper: five rounds of feedback, at least two failing tests."""

    feedback_rounds: int = 5
    tool_calls: int = 30
    min_failing: int = FEW_FAILING[0]
    most_failing: int = FEW_FAILING[1]
    """Above this many failing tests a corruption is called too loud; the model is shown the desired range."""
    keep: Keep = Keep.BEST
    max_tokens: int | None = 500_000
    """Most tokens of all requests together, sent and received."""
    max_cost_usd: float | None = None

    @classmethod
    def for_tasks(cls, min_failing: int, **changes: Any) -> LoopSettings:
        """Return the settings for tasks that need `min_failing` failing tests: 2 to 15 are desired, or 5 to 40."""
        least, most = band(min_failing)
        return cls(min_failing=least, most_failing=most, **changes)


class SubmissionVerdict(StrEnum):
    """The decision on a submission."""

    ACCEPTED = "accepted"
    TOO_FEW_FAILING = "too_few_failing"
    NO_DEFINITION = "no_single_definition"
    UNCHANGED = "unchanged"
    CLUE = "leaves_a_clue"
    BREAKS_COLLECTION = "breaks_collection_only"
    HANGS = "hangs_or_exhausts_memory"
    COULD_NOT_RUN = "suite_could_not_run"

    @property
    def tried(self) -> bool:
        """Whether the tests were run on it."""
        return self not in (SubmissionVerdict.NO_DEFINITION, SubmissionVerdict.UNCHANGED, SubmissionVerdict.CLUE)


class End(StrEnum):
    """How a loop ended; submissions accepted by then can still be kept."""

    FINAL_SUBMISSION = "final_submission"
    STOPPED_BY_MODEL = "stopped_by_model"
    TOOL_CALLS = "tool_calls_used_up"
    NO_TOOL_CALL = "no_tool_call"
    TRUNCATED = "truncated_replies"
    REFUSED = "refused"
    TOKEN_CAP = "token_cap"
    COST_CAP = "cost_cap"
    COST_UNKNOWN = "cost_unknown"
    RATE_LIMITED = ChatProblem.RATE_LIMITED.value
    SERVER_ERROR = ChatProblem.SERVER_ERROR.value
    TIMED_OUT = ChatProblem.TIMED_OUT.value
    NO_CONNECTION = ChatProblem.NO_CONNECTION.value
    MALFORMED_REPLY = ChatProblem.MALFORMED_REPLY.value
    NOT_AUTHORISED = ChatProblem.NOT_AUTHORISED.value
    UNKNOWN_MODEL = ChatProblem.UNKNOWN_MODEL.value
    CONTEXT_FULL = ChatProblem.CONTEXT_FULL.value
    REJECTED = ChatProblem.REJECTED.value


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """The results of the tests on a corrupted function."""

    verdict: SubmissionVerdict
    failing: int = 0
    tests: int = 0
    by_assertion: int | None = None
    """Failing tests that fail by an assertion; None if not examined."""
    through_target: int | None = None
    """Failing tests whose traceback passes through the function; None if not examined."""
    failing_ids: frozenset[str] = frozenset()
    messages: int = 0
    """Distinct last lines of the failures."""
    failures: tuple[Failure, ...] = ()
    subtlety: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""


TryOut = Callable[[Target], ModelTrial]
"""Runs the tests that can see a function. Raises `CancelledError` when stopped."""


@dataclass(frozen=True, slots=True)
class Round:
    """One submission of a model, and the decision on it."""

    number: int
    call: int
    """The number of its tool call, counted from 1."""
    code: str
    """The code as the model sent it."""
    verdict: SubmissionVerdict
    detail: str = ""
    target: Target | None = None
    trial: ModelTrial | None = None

    @property
    def accepted(self) -> bool:
        """Whether it may be kept."""
        return self.verdict is SubmissionVerdict.ACCEPTED

    @property
    def subtlety(self) -> float:
        """The score of its trial, 0 without one."""
        return self.trial.subtlety if self.trial else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON."""
        row: dict[str, Any] = {"number": self.number, "call": self.call, "verdict": self.verdict.value}
        row["code"] = self.code
        if self.detail:
            row["detail"] = self.detail
        if self.trial is not None:
            row["failing"], row["subtlety"] = self.trial.failing, round(self.trial.subtlety, 4)
            row["parts"] = {name: round(value, 4) for name, value in self.trial.parts.items()}
        return row


@dataclass(frozen=True, slots=True)
class LoopResult:
    """A loop from its prompt to its end."""

    model: str
    settings: LoopSettings
    end: End
    detail: str
    """The reason of the end in a sentence, if its name is not enough."""
    rounds: tuple[Round, ...]
    tool_calls: int
    requests: int
    usage: Usage
    prompt_sha256: str
    models: tuple[str, ...] = ()
    """The names under which the endpoint answered."""
    retried: Mapping[str, int] = field(default_factory=dict)
    """Number of requests that were repeated, by kind of failure."""

    @property
    def kept(self) -> Round | None:
        """The submission that becomes the corruption, by the rule of the settings; None if there is none."""
        tried = [item for item in self.rounds if item.verdict.tried]
        if self.settings.keep is Keep.FINAL:
            return tried[-1] if tried and tried[-1].accepted else None
        return max((item for item in tried if item.accepted), key=lambda item: item.subtlety, default=None)

    def as_json(self) -> dict[str, Any]:
        """Return the record that a task keeps, as JSON."""
        kept = self.kept
        return {
            "model": self.model,
            "answered_as": list(self.models),
            "template": TEMPLATE,
            "template_sha256": template_sha256(),
            "prompt_sha256": self.prompt_sha256,
            "settings": msgspec.to_builtins(self.settings),
            "end": self.end.value,
            "detail": self.detail,
            "rounds": [item.as_json() for item in self.rounds],
            "kept": kept.number if kept else None,
            "tool_calls": self.tool_calls,
            "requests": self.requests,
            "retried": dict(self.retried),
            "usage": {**msgspec.to_builtins(self.usage), "tokens": self.usage.tokens},
        }


_SHOWN_FAILURES = 2
_FAILURE_CHARACTERS = 2_000

NO_CALL = (
    "Your reply called no tool. The only way to submit your code is the submit_attempt tool; "
    "the other tools show you the repository."
)
CUT_OFF = "Your reply was cut off at the limit of its length. Call one tool, with less text around it."
ASKED_AGAIN = "Your reply was stopped before it was complete. Go on with one tool call, or say that you will not."


def trial_text(trial: ModelTrial, settings: LoopSettings) -> str:
    """Return the results of the tests, compared with the aim: few failing tests, never all of them."""
    lines = [_summary(trial), _against_the_aim(trial, settings)]
    if trial.verdict is SubmissionVerdict.ACCEPTED:
        lines.append(f"Its subtlety is {trial.subtlety:.2f} of 1.")
    shown = [
        f"{failure.id}\n{failure.text[:_FAILURE_CHARACTERS]}".rstrip()
        for failure in trial.failures[:_SHOWN_FAILURES]
        if failure.text
    ]
    return "\n\n".join([" ".join(line for line in lines if line), *shown])


def _summary(trial: ModelTrial) -> str:
    if trial.verdict is SubmissionVerdict.HANGS:
        return f"The tests were stopped: {trial.detail or 'they ran into a limit of time or memory'}."
    if trial.verdict is SubmissionVerdict.COULD_NOT_RUN:
        return f"The tests could not be run: {trial.detail or 'the run did not finish'}."
    if trial.verdict is SubmissionVerdict.BREAKS_COLLECTION:
        return "The tests can't even be collected."
    text = f"{trial.failing} of {trial.tests} tests fail."
    if trial.failing and trial.by_assertion is not None:
        text += f" {trial.by_assertion} of them fail by an assertion."
    if trial.failing and trial.through_target is not None:
        text += f" The function shows in the traceback of {trial.through_target}."
    return text


def _against_the_aim(trial: ModelTrial, settings: LoopSettings) -> str:
    aim = f"{settings.min_failing} to {settings.most_failing} failing tests"
    if trial.verdict is SubmissionVerdict.TOO_FEW_FAILING:
        return f"At least {settings.min_failing} must fail, so this does not count; the aim is {aim}."
    if trial.verdict is not SubmissionVerdict.ACCEPTED:
        return "That is no subtle corruption, and it does not count."
    if trial.failing > settings.most_failing:
        return f"That is more than the aim of {aim}: a loud failure is easily traced back. Change less."
    return f"That is within the aim of {aim}."


def left_text(tool_calls: int, feedback: int, settings: LoopSettings) -> str:
    """Return the line that ends every answer."""
    kept = "the most subtle of your submissions" if settings.keep is Keep.BEST else "the last submission"
    calls = f"{tool_calls} tool {'call' if tool_calls == 1 else 'calls'}"
    if feedback:
        return (
            f"[{calls} and {feedback} {'round' if feedback == 1 else 'rounds'} of test feedback left; {kept} is kept]"
        )
    return f"[{calls} left, and no more test feedback: the next submission is the final one; {kept} is kept]"


MOST_EMPTY_REPLIES = 3
"""Replies in a row without a tool call after which the loop ends."""
MOST_REFUSALS = 2
_ANSWER_CHARACTERS = 80_000

SUBMIT = replace(
    SUBMIT_ATTEMPT,
    description="Submit the modified function: its whole definition. The tests are run on it, and you get feedback.",
    arguments=(Argument("func_code", ArgumentKind.CODE, "The whole definition of the modified function."),),
)
OFFERED = {
    tool.name: tool for tool in (LIST_DIRECTORY, SEARCH_CODE, READ_FILE, LIST_FILE_FUNCTIONS, READ_FUNCTION, SUBMIT)
}
"""The tools of the corrupting model. They are those of the paper, whatever solvers are offered: an experiment that adds
one would make other corruptions."""

Gate = Callable[[Target], str]
"""Returns in a sentence why a corruption must not be kept, before any test ran; empty if it may."""
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
    cancel: CancelToken = NEVER

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
        """Return the end, with its reason, if another request, at least as large as the last, would exceed a limit."""
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
        self.cancel.check()
        self._requests += 1
        spent = reply.usage if isinstance(reply, ChatFailure) else reply.usage + reply.lost
        self._usage, self._last = self._usage + spent, reply.usage
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
        """Answer every call of a reply, as the protocol requires; those over the limit are refused."""
        echoes = sound_requests(reply.message.tool_calls, self._calls)
        self._messages.append(replace(reply.message, role="assistant", tool_calls=echoes))
        ended: tuple[End, str] | None = None
        for asked, echo in zip(reply.message.tool_calls, echoes, strict=True):
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
            bound = tool.bind(arguments_of(asked))
        except (RefusalError, ValueError) as refusal:
            return f"Refused: {refusal}", None
        if tool is SUBMIT:
            return self._submitted(bound.arguments["func_code"])
        return bound.answer(self.context).text[:_ANSWER_CHARACTERS], None

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
            return Round(number, self._calls, "", SubmissionVerdict.NO_DEFINITION, detail)
        try:
            target = replaced_target(self.context.tree, self.function, code)
            unchanged = same_program(target.original, target.corrupted)
            detail = "" if unchanged else self.gate(target)
        except CodeError as error:
            return Round(number, self._calls, recorded, SubmissionVerdict.NO_DEFINITION, str(error))
        if unchanged:
            return Round(
                number, self._calls, recorded, SubmissionVerdict.UNCHANGED, "The function behaves as it did.", target
            )
        if detail:
            return Round(number, self._calls, recorded, SubmissionVerdict.CLUE, detail, target)
        trial = self._counted(self.try_out(target))
        return Round(number, self._calls, recorded, trial.verdict, trial.detail, target, trial)

    def _counted(self, trial: ModelTrial) -> ModelTrial:
        few = trial.verdict is SubmissionVerdict.ACCEPTED and trial.failing < self.settings.min_failing
        return replace(trial, verdict=SubmissionVerdict.TOO_FEW_FAILING) if few else trial

    def _left(self) -> str:
        feedback = max(0, self.settings.feedback_rounds - self._tried)
        return left_text(self.settings.tool_calls - self._calls, feedback, self.settings)
