"""Third-party agents as solvers: the port of a scaffold, and the seat from which it attempts a task.

A scaffold decides on requests and calls. The seat controls the budgets, the journal, the costs and the end of
the attempt, so its attempts count like any others (decision 153).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from threading import Condition, Lock, RLock
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from gistpoint.core.agents.loop import (
    INFRASTRUCTURE,
    AnnouncedRequest,
    ModelWork,
    TerminationReason,
    UnderWay,
    WorkEnd,
)
from gistpoint.core.attempts.events import Heartbeat, ModelTurn, Pane, Paused
from gistpoint.core.attempts.parts import REQUEST_ID
from gistpoint.core.attempts.reasons import EndReason, GiveUpCode, PauseReason
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ToolRequest, Usage
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.estimates import tokens_in
from gistpoint.core.plugins import PluginFailedError, declared, guarded, is_callable, load, named
from gistpoint.core.running import NEVER, CancelToken

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib import metadata

    from gistpoint.core.agents.solvers import AgentSolver
    from gistpoint.core.tools.declaration import Tool

GROUP = "gistpoint.scaffolds"
"""The group of entry points; each names a function that takes no arguments and returns a `Scaffold`."""
OWN = "gistpoint"
"""The name of gistpoint's own loop in tables."""
NO_TOOLS = "none"
FAILED = "scaffold"
"""The `problem` reported for a job whose scaffold failed or could not be started."""
_TICK_S = 0.1


class ScaffoldError(UserError):
    """A scaffold can't be found or started, or has failed."""


class ScaffoldIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """The properties of a scaffold that affect its results, as a run's settings record them."""

    name: str
    version: str
    client_tools: str = NO_TOOLS
    """The kinds of its built-in tools that can't be switched off, such as `shell`; their use is free."""
    prompt_sha256: str = ""
    """The hash of the text that explains the task's tools to the scaffold; empty if none is needed."""
    relayed: bool = False
    """Whether it sends its requests itself, through a proxy, and so decides their sampling."""


class Scaffold(Protocol):
    """An agent that attempts tasks with a model, such as mini-swe-agent."""

    @property
    def identity(self) -> ScaffoldIdentity:
        """The name, the version and the settings."""
        ...

    def attempt(self, seat: Seat) -> None:
        """Work on an attempt until it ends or there is nothing left to do.

        Each attempt is made in a separate thread. Raises `ScaffoldError` if the scaffold fails, which does
        not count against the model.
        """
        ...


@runtime_checkable
class StartsProgram(Protocol):
    """A scaffold that starts a program, which sends its own requests or has its own loop."""

    @property
    def command(self) -> Sequence[str]:
        """The words of the command, with paths as they are in its sandbox."""
        ...


def command_of(scaffold: Scaffold) -> tuple[str, ...]:
    """Return the command that a scaffold starts for each attempt; empty if the scaffold starts none."""
    return tuple(scaffold.command) if isinstance(scaffold, StartsProgram) else ()


@dataclass(frozen=True, slots=True)
class SeatedSolver:
    """A scaffold, and the model with which it works."""

    scaffold: Scaffold
    solver: AgentSolver


@dataclass(frozen=True, slots=True)
class RelayedModel:
    """The model of a scaffold that sends its requests itself; nothing else can ask it."""

    name: str

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> ChatFailure:
        """Return a failure, because only the scaffold can send requests to this model."""
        return ChatFailure(ChatProblem.REJECTED, "This scaffold sends its requests itself.")


@dataclass(frozen=True, slots=True)
class SeatAnswer:
    """The answer to a call."""

    text: str
    refused: bool = False


@dataclass(eq=False, slots=True)
class RelayedRequest:
    """A request that a scaffold sends itself."""

    number: int = 0
    """Its number at this seat, counted from 1."""
    tokens: int = 0
    """The estimated number of tokens in its prompt; 0 if it requests no reply."""
    cost_usd: float = 0.0
    """Its highest possible cost, which is reserved until the request is answered."""
    began_ms: int = 0
    """The thinking time before the request, in milliseconds, including the time of failed requests."""


@dataclass(slots=True)
class _Spans:
    """The times of requests that are over, in milliseconds of thinking."""

    excluded_ms: int = 0
    """The time that no longer counts as thinking."""
    _answered: list[tuple[int, int]] = field(default_factory=list)
    _failed: list[tuple[int, int]] = field(default_factory=list)

    def add(self, began_ms: int, ended_ms: int, *, failed: bool) -> None:
        """Add the time of a request."""
        (self._failed if failed else self._answered).append((began_ms, ended_ms))

    def lost_before(self, ms: int) -> int:
        """Return how long only failed requests were under way before a time, and drop all earlier times.

        Later times are still undecided, because a request under way since then may yet be answered.
        """
        answered, failed = ([span for span in spans if span[0] < ms] for spans in self._both)
        lost = covered((*answered, *failed), ms) - covered(answered, ms)
        self._answered, self._failed = (
            [(max(began, ms), ended) for began, ended in spans if ended > ms] for spans in self._both
        )
        return lost

    @property
    def _both(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        return self._answered, self._failed


def covered(spans: Iterable[tuple[int, int]], until: float = inf) -> int:
    """Return the total length of the union of spans, each given by its start and end, before a time."""
    total, last = 0.0, -inf
    for began, ended in sorted(spans):
        end = min(ended, until)
        total += max(0, end - max(began, last))
        last = max(last, end)
    return int(total)


def _no_server(path: Path) -> AbstractContextManager[None]:
    raise ScaffoldError("Tools can't be served over MCP here.", hint="Install the extra `mcp`.")


@dataclass
class Seat:
    """A scaffold's only access to an attempt; every method may be called from any thread."""

    work: ModelWork
    folder: Path
    """The folder for the scaffold's own logs, next to the journal."""
    model: str = ""
    """The model's name in requests."""
    serve_tools: Callable[[Path], AbstractContextManager[None]] = _no_server
    """Serves the tools over MCP to each connection at a Unix socket, while the context lasts."""
    work_end: WorkEnd | None = None
    """The end of the work if the work ended before the attempt; otherwise None."""
    _lock: RLock = field(default_factory=RLock)
    _asking: Lock = field(default_factory=Lock)
    """Held during a request to the model, because only one reply at a time continues a conversation."""
    _offered: tuple[str, ...] = ()
    """The names of the tools that the last observed request offered, including the scaffold's own."""
    _under_way: set[RelayedRequest] = field(default_factory=set)
    """The requests that a proxy has sent and that have no answer yet."""
    _sent: int = 0
    """The number of requests that a proxy has sent."""
    _spans: _Spans = field(default_factory=lambda: _Spans())
    """The times of a proxy's requests that are over."""
    _fault: OSError | None = None
    """The error that prevents writing the attempt or the run; None if there is none."""
    _is_closed: bool = False
    """Whether the work is over and its cost is recorded, so that nothing more is reserved."""
    _problem: tuple[ChatProblem, str] | None = None
    """The endpoint's last failure, if no reply has followed it."""

    def __post_init__(self) -> None:
        self._answered = Condition(self._lock)
        self.work.attempt.resume()
        self.work.attempt.finish_pending(run=self.work.run)
        self.work.submissions = len(self.work.attempt.state.submissions)
        self.work.attempt.view(Pane.MODEL)

    @property
    def brief(self) -> str:
        """The brief, in the wording shown to people."""
        return self.work.attempt.brief

    @property
    def over(self) -> bool:
        """Whether the attempt has ended or the work was stopped, so that nothing can be requested."""
        if self.work_end is None and (self.work.stop() or self.work.run.cancel.cancelled):
            self.work_end = WorkEnd(TerminationReason.STOPPED)
        return self.work_end is not None or self._fault is not None or self.work.attempt.state.ended

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that can be called now."""
        return self.work.attempt.offered()

    def ask(self, messages: Sequence[ChatMessage], tools: Sequence[Tool]) -> ModelTurn | None:
        """Send messages to the model and return its reply as journalled; None if there is no reply.

        The work is then over: limits on context, tokens and cost end it as in gistpoint's own loop. Only one
        thread sends a request at a time, and the others wait.
        """
        attempt = self.work.attempt
        with self._asking:
            before = len(attempt.state.turns)
            if self.over:
                return None
            end = self.work.request(messages, tools)
            attempt.finish_pending(run=self.work.run)
            if end is not None:
                self.work_end = end
            return attempt.state.turns[-1] if len(attempt.state.turns) > before else None

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, raw: str = "", id: str = ""
    ) -> SeatAnswer:
        """Make a call for the last reply and return its answer; a call that can't be made is also charged.

        `raw` is the text of the arguments, which is parsed if `arguments` is None. `id` is the call's id in
        the reply. Raises `AttemptError` if the attempt has not ended but can't take the call.
        """
        attempt = self.work.attempt
        if self.over:
            return SeatAnswer(self._over_words, refused=True)
        turns = attempt.state.turns
        try:
            result = attempt.call(
                name,
                arguments,
                raw=raw,
                turn=turns[-1].turn if turns else None,
                run=self.work.run,
                extra={REQUEST_ID: id} if id else None,
            )
        except AttemptError as error:
            if not attempt.state.ended:
                raise
            return SeatAnswer(str(error), refused=True)
        failed = self.work.not_judged()
        if failed is not None:
            self.work_end = WorkEnd(TerminationReason.HALTED, INFRASTRUCTURE, failed)
        self._report()
        return SeatAnswer(result.text, result.refused)

    @property
    def _over_words(self) -> str:
        ending = self.work.attempt.state.ending
        return "The work on the attempt was stopped." if ending is None else _ended_message(ending.reason)

    # For scaffolds that send requests themselves, through a proxy

    @contextmanager
    def relayed(
        self, characters: int, limit: int | None = None, replies: int = 1
    ) -> Iterator[RelayedRequest | None]:
        """Yield a request of this length, with its highest possible cost reserved; None if not allowed.

        `limit` is the request's limit on the tokens of each of its `replies`. The request is under way until
        the context ends, or until `observed` or `not_answered` is called for it. At the limit on tokens, the
        attempt ends. At the limit on cost, the request waits for those under way, which may cost less than is
        reserved for them; without any, the work on the attempt ends.
        """
        with self._written():
            request = self._reserved(characters, limit, replies)
        if request is None:
            yield None
            return
        try:
            yield request
        finally:
            with self._written():
                self._is_over(request)

    @contextmanager
    def request_under_way(self) -> Iterator[RelayedRequest]:
        """Yield a request that costs nothing; until the context ends, no time limit ends the attempt."""
        with self._written():
            request = self._begun(0, 0.0)
        try:
            yield request
        finally:
            with self._written():
                self._is_over(request)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Lock the seat; the work ends if the journal or the run can't be written."""
        with self._lock:
            try:
                yield
            except OSError as error:
                self._fault = self._fault or error
                raise

    def _begun(self, tokens: int, cost_usd: float) -> RelayedRequest:
        self._sent += 1
        request = RelayedRequest(self._sent, tokens, cost_usd, self._thinking_ms())
        # The request is announced before it is sent, so that its cost counts even if this process is killed
        # (decision 207).
        self._announce(request)
        self._under_way.add(request)
        return request

    def _announce(self, request: RelayedRequest, turn: int = 0, *, is_over: bool = False) -> None:
        if request.tokens:
            work = self.work
            usage = Usage() if is_over else self._priced(Usage(request.tokens))
            work.announce(AnnouncedRequest(turn, usage, work.lost, work.lost_s, request.number))

    def _reserved(self, characters: int, limit: int | None, replies: int) -> RelayedRequest | None:
        attempt, settings = self.work.attempt, self.work.settings
        estimate = settings.estimate_with(tokens_in(characters), limit, replies)
        cost_usd = estimate.cost_usd or 0.0
        while not self.over:
            spent = attempt.state.spent.replies.tokens + estimate.prompt_tokens
            if settings.attempt_tokens is not None and spent > settings.attempt_tokens:
                attempt.hand_in(EndReason.TOKEN_CAP)
                attempt.finish_pending(run=self.work.run)
            elif self.work.may_ask(
                replace(estimate, cost_usd=self._unsettled_requests().cost_usd + cost_usd)
            ):
                return self._begun(estimate.prompt_tokens, cost_usd)
            elif self._under_way:
                self._answered.wait(_TICK_S)
            else:
                self.work_end = WorkEnd(TerminationReason.OVER_COST)
        return None

    def _unsettled_requests(self) -> UnderWay:
        """Return the requests under way, with the cost of failed ones."""
        failed_usd = self.work.lost.cost_usd or 0.0
        reserved_usd = sum(request.cost_usd for request in self._under_way)
        return UnderWay(len(self._under_way), failed_usd + reserved_usd)

    def _is_over(self, request: RelayedRequest, *, failed: bool = False) -> None:
        """End a request that has not ended yet, and release its reserved cost."""
        if request not in self._under_way:
            return
        self._end(request, failed=failed)
        self._report()
        self._answered.notify_all()

    def _end(self, request: RelayedRequest, *, turn: int = 0, failed: bool) -> None:
        """End a request; `turn` is the number of its reply, 0 if there was none."""
        self._under_way.remove(request)
        self._spans.add(request.began_ms, self._thinking_ms(), failed=failed)
        first_ms = min((one.began_ms for one in self._under_way), default=self._thinking_ms())
        lost_ms = self._spans.lost_before(first_ms)
        attempt = self.work.attempt
        is_lost = lost_ms > 0 and not attempt.state.ended and attempt.state.pause is None
        if is_lost:
            self.work.lost_s += lost_ms / 1000
        if is_lost or not turn:
            self._announce(request, turn, is_over=not turn)  # before the pause (decision 210)
        if is_lost:
            attempt.append(Paused(PauseReason.ENDPOINT_WAIT, thinking_ms=lost_ms))
            attempt.resume()
            self._spans.excluded_ms += lost_ms

    def _thinking_ms(self) -> int:
        return self.work.attempt.clock().thinking + self._spans.excluded_ms

    def beat(self) -> None:
        """Record a heartbeat, and end the attempt if its time is up and no request is under way."""
        with self._written():
            if self.over:
                return
            if self._under_way:
                self.work.attempt.append(Heartbeat())
            else:
                self.work.attempt.heartbeat()

    def observed(self, turn: ModelTurn, request: RelayedRequest) -> None:
        """Journal the reply to a request that a proxy has passed on, with its number and cost.

        If the attempt has ended, only the cost is counted. An abandoned request is already counted.
        """
        with self._written():
            attempt = self.work.attempt
            usage = self._priced(turn.usage)
            if request not in self._under_way:
                return
            self._problem = None
            if attempt.state.ended:
                self._is_paid(usage, request)
                return
            offered = msgspec.UNSET if turn.tools == self._offered else turn.tools
            self._offered = turn.tools or ()
            number = len(attempt.state.turns) + 1
            # If this process is killed before the reply is written, the request counts as lost.
            self._announce(request, number)
            attempt.append(msgspec.structs.replace(turn, turn=number, usage=usage, tools=offered))
            # The actual cost of the reply replaces the amount that was reserved for it.
            self._end(request, turn=number, failed=False)
            self._report()
            self._answered.notify_all()

    def not_answered(
        self, problem: ChatProblem, message: str, request: RelayedRequest, lost: Usage | None = None
    ) -> None:
        """Record that the endpoint has failed; the attempt halts if the work ends without another reply.

        The time of a failed request counts as the model's only while another request, later answered, was
        under way.
        """
        with self._written():
            if request in self._under_way:
                self._problem = (problem, message)
                self._is_paid(lost or Usage(), request, failed=True)

    def paid(self, usage: Usage, request: RelayedRequest) -> None:
        """Count the usage of a request that asked for something other than a reply; it is not journalled."""
        with self._written():
            if request in self._under_way:
                self._is_paid(usage, request)

    def _is_paid(self, usage: Usage, request: RelayedRequest, *, failed: bool = False) -> None:
        self.work.lost += self._priced(usage)
        self._is_over(request, failed=failed)

    @property
    def has_problem(self) -> bool:
        """Whether the endpoint has failed and no reply has followed."""
        return self._problem is not None

    def _priced(self, usage: Usage) -> Usage:
        return msgspec.structs.replace(usage, cost_usd=self.work.settings.cost(usage))

    def _report(self) -> None:
        if self.work.on_turn is not None and not self._is_closed:
            with self._lock:
                self.work.on_turn(self.work.attempt.state, self._unsettled_requests())

    # The end

    def close(self) -> None:
        """Abandon the requests that are still under way, which count as lost, and accept no more."""
        with self._written():
            self._is_closed = True
            for request in [*self._under_way]:
                self._is_paid(Usage(request.tokens, estimated=True), request, failed=True)

    def concluded(self) -> WorkEnd:
        """Conclude the work after the scaffold has stopped, and return how it ended.

        Unless the work is over or the endpoint has failed, the scaffold has given up. Raises `OSError` if the
        journal or the run could not be written.
        """
        if self._fault is not None:
            raise self._fault
        attempt = self.work.attempt
        if not self.over and self._problem is not None:
            problem, message = self._problem
            if problem is not ChatProblem.CONTEXT_FULL:
                self.work_end = WorkEnd(TerminationReason.HALTED, problem, message, problem.of_endpoint)
            else:
                attempt.hand_in(EndReason.CONTEXT_EXHAUSTED)
        elif not self.over:
            attempt.hand_in(EndReason.GAVE_UP, GiveUpCode.NO_TOOL_CALL)
        attempt.finish_pending(run=self.work.run)
        end = (
            self.work_end
            if self.work_end is not None and not attempt.state.ended
            else WorkEnd(TerminationReason.ENDED)
        )
        return replace(end, lost=self.work.lost, lost_s=self.work.lost_s)


def _ended_message(reason: str) -> str:
    return f"The attempt has ended: {reason}."


def occupied(scaffold: Scaffold, seat: Seat) -> WorkEnd:
    """Let a scaffold work on an attempt, and return how the work ended."""
    try:
        if not seat.over:
            scaffold.attempt(seat)
    except ScaffoldError as error:
        if not seat.over:
            work = seat.work
            return WorkEnd(TerminationReason.HALTED, FAILED, str(error), lost=work.lost, lost_s=work.lost_s)
    finally:
        seat.close()
    return seat.concluded()


def message_of(turn: ModelTurn) -> ChatMessage:
    """Return the message of a reply, as a later request repeats it."""
    calls = tuple(
        ToolRequest(call.id, call.name, call.arguments, call.extra or {}) for call in turn.tool_calls
    )
    return ChatMessage(
        "assistant",
        turn.content,
        calls,
        reasoning=turn.reasoning or "",
        extra=turn.extra or {},
        host=turn.host or "",
    )


def installed_scaffold(name: str) -> Scaffold | None:
    """Return the scaffold of another package with this name; None if there is none.

    Raises `PluginError` if it can't be loaded, and `PluginFailedError` if it does not make a scaffold.
    """
    entry = named(GROUP, name)
    if entry is None:
        return None
    make: Callable[[], Scaffold] = load(entry, is_callable)
    return guarded(entry, partial(InstalledScaffold.made, entry, make))


@dataclass(frozen=True, slots=True)
class InstalledScaffold:
    """A scaffold of another package, whose failures halt its job but never the program."""

    entry: metadata.EntryPoint
    scaffold: Scaffold
    identity: ScaffoldIdentity
    command: tuple[str, ...]

    @classmethod
    def made(cls, entry: metadata.EntryPoint, make: Callable[[], Scaffold]) -> InstalledScaffold:
        """Return the scaffold that a function of the package makes.

        Raises anything that its code raises, and `TypeError` if its identity is not a `ScaffoldIdentity`.
        """
        scaffold = make()
        identity: object = scaffold.identity
        if not isinstance(identity, ScaffoldIdentity):
            raise TypeError(f"its identity is a {type(identity).__name__}")
        return cls(entry, scaffold, identity, command_of(scaffold))

    def attempt(self, seat: Seat) -> None:
        """Let the package's code work on an attempt; raises `ScaffoldError` if the code fails or exits."""
        try:
            guarded(self.entry, partial(self.scaffold.attempt, seat))
        except PluginFailedError as error:
            raise ScaffoldError(str(error), hint=error.hint) from error


def installed_names() -> list[str]:
    """Return the names of other packages' scaffolds."""
    return [entry.name for entry in declared(GROUP)]
