"""Serves an attempt to clients: the first call opens it, and closing the server does not end it.

Under a lease, each call opens the attempt and closes it again, so that another process can make the next one
(decision 152).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Any, Protocol

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Pane
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import MODEL, Role
from gistpoint.core.attempts.reasons import EndReason, GiveUpCode
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.confirming import to_be_confirmed
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.locations import Locations
from gistpoint.core.requests import Request
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible, whole_number
from gistpoint.core.tools.declaration import Tool
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import OpenAttempt
from gistpoint.sessions.confirming import confirm_after_end
from gistpoint.sessions.journal import JOURNAL, first_event
from gistpoint.sessions.leases import PILE_MS, Lease, lease_named, piles, require_same_conditions
from gistpoint.sessions.services import Services, is_our_demo

FAILED = "gistpoint failed, and the call cost nothing. The log of `gistpoint mcp` shows the error."
KIND = "mcp"
"""The kind of solver in the header of an attempt that is made over MCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeAttempt(Request):
    """A request to serve an attempt."""

    task: str
    attempt: str | None = None
    """The unfinished attempt over MCP to resume; None to begin one."""
    lease: str | None = None
    """The name under which several processes continue one attempt."""
    budgets: str | None = None
    """Calls and submissions, such as `16/4`; None for the task's budgets."""
    participant: str = ""
    role: str | None = None
    trust_client: bool = False
    """Whether to trust that the client has no tools that reach this machine."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a call, and the budget that is left after it."""

    text: str
    refused: bool
    budget: Mapping[str, int | None]
    note: str = ""
    """A note for the person who set up the client; only the first answer has one, and it may be empty."""


class Served(Protocol):
    """An attempt as a server sees it: the server's own (`ServedAttempt`), or a scaffold's in a run."""

    @property
    def task(self) -> Task:
        """The task."""
        ...

    @property
    def lease(self) -> Lease | None:
        """The lease under which clients share the attempt; None without one."""
        ...

    def prepare(self) -> None:
        """Prepare for the first call."""
        ...

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that can be called now; before the start and after the end, all tools."""
        ...

    def read_brief(self, client: Mapping[str, Any]) -> Answered:
        """Return the brief, at no cost."""
        ...

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        raw: str,
        client: Mapping[str, Any],
        run: RunContext,
    ) -> Answered:
        """Make a call and return its answer."""
        ...

    def beat(self) -> None:
        """Record a heartbeat of the attempt; if its time is up, end it or begin the hand-in."""
        ...

    def hand_in(self) -> None:
        """Judge the hand-in that was begun when a time limit was reached, if there is one."""
        ...

    def close(self, *, at_once: bool = False) -> None:
        """Leave the attempt as it is."""
        ...


@dataclass(frozen=True, slots=True)
class ServedVerdict:
    """The verdict on an attempt that has ended; `attempt` is empty if no call has begun one."""

    task: str
    attempt: str = ""
    solved: bool = False
    score: float = 0.0


class ServedAttempt:
    """Opens the attempt at the first call; every method may be called from any thread.

    The server must make calls one at a time.
    """

    def __init__(
        self,
        services: Services,
        task: Task,
        solver: Mapping[str, Any],
        *,
        budgets: Budgets | None = None,
        resumed: AttemptSummary | None = None,
        lease: Lease | None = None,
        note: str = "",
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`solver` are known facts about the solver, which clients complete; `budgets` replace the task's.

        `note` accompanies the first answer. `tell` receives lines for the log: the id of the attempt, and
        errors. Raises `UserError` if the lease belongs to an attempt with other conditions.
        """
        self._tell = tell
        self._note = note
        self.lease = lease
        self._services, self.task, self._resumed = services, task, resumed
        self._enrolment = services.enrolled(task, replace(services.enrolment, actor=MODEL))
        self._solver = solver
        kind = kind_of(task)
        self._budgets = budgets or kind.budgets(task, self._enrolment.role)
        self._tools = kind.tools_of(task, self._budgets)
        if resumed is not None:
            names = resumed.state.header.tool_names or ()
            self._tools = tuple(tool for tool in kind.tools if tool.name in names)
        self._opened: OpenAttempt | None = None
        self._last: AttemptState | None = None
        """The state of a lease's attempt when it was last closed."""
        self._offered: tuple[Tool, ...] = ()
        """The tools that could be called in that state."""
        self._judge: TaskJudge | None = None
        self._logged = ""
        self._lock = Lock()
        self._preparing: Thread | None = None
        self._closed = self._hurried = self._has_answered = False
        if lease is not None:
            self._leased()

    def prepare(self) -> None:
        """Build the judge in a thread, so that the first call, which reports errors, need not wait for it."""
        if self._preparing is None:
            self._preparing = Thread(target=self._prepare, name="judge", daemon=True)
            self._preparing.start()

    def _prepare(self) -> None:
        with suppress(UserError):
            self._judge = self._services.judge_for(self.task)

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that can be called now; before the start and after the end, all tools."""
        opened = self._opened
        if opened is None:
            return self._offered or self._tools
        return opened.attempt.offered() or opened.attempt.tools

    def read_brief(self, client: Mapping[str, Any]) -> Answered:
        """Return the brief, at no cost, and record in the journal that it was viewed."""
        return self._answered(self._brief, client)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        raw: str,
        client: Mapping[str, Any],
        run: RunContext,
    ) -> Answered:
        """Make a call and return its answer; an error is answered as a refusal.

        `raw` is the text of arguments that are not an object. `client` is the client's description of itself,
        which the call that begins the attempt records.
        """

        def made(attempt: Attempt) -> tuple[str, bool]:
            attempt.view(Pane.MODEL)
            result = attempt.call(name, arguments, raw=raw, run=run)
            return result.text, result.refused

        return self._answered(made, client, run)

    def _brief(self, attempt: Attempt) -> tuple[str, bool]:
        if attempt.state.ending is not None:
            raise AttemptError(f"The attempt has ended: {attempt.state.ending.reason}.")
        attempt.view(Pane.BRIEF)
        return attempt.state.header.brief, False

    def _answered(
        self,
        do: Callable[[Attempt], tuple[str, bool]],
        client: Mapping[str, Any],
        run: RunContext | None = None,
    ) -> Answered:
        left: Mapping[str, int | None] = {}
        try:
            with self._entered(client, run or RunContext()) as attempt:
                text, refused = do(attempt)
                left = budgets_left(attempt.state)
        except AttemptError as error:
            text, refused = str(error), True
            left = self._left_before()
        except UserError as error:
            self._tell(f"gistpoint: {visible(str(error))}")
            text, refused = FAILED, True
        except Exception:
            self._tell(traceback.format_exc().rstrip())
            text, refused = FAILED, True
        note, self._note = self._note, ""
        return Answered(text, refused, left, note)

    def _left_before(self) -> Mapping[str, int | None]:
        state = self._last if self._opened is None else self._opened.attempt.state
        return {} if state is None else budgets_left(state)

    @contextmanager
    def _entered(self, client: Mapping[str, Any], run: RunContext) -> Iterator[Attempt]:
        """Yield the open attempt; under a lease, hold it until the end, and close the attempt."""
        if self.lease is None:
            yield self._open(client, run)
            return
        with self.lease.held(run.cancel):
            try:
                yield self._open(client, run)
            finally:
                self._put_down()

    def _put_down(self) -> None:
        """Close the attempt of a lease until the next call, here or in another process."""
        with self._lock:
            if self._opened is not None:
                attempt = self._opened.attempt
                self._last, self._offered = attempt.state, attempt.offered()
                self._opened.close()
                self._opened = None

    def _open(self, client: Mapping[str, Any], run: RunContext) -> Attempt:
        with self._lock:
            if self._opened is None:
                self._opened = self._begun(client)
                self._tell_id(self._opened.attempt.state.attempt_id)
                self._opened.attempt.finish_pending(run=run)
            return self._opened.attempt

    def _tell_id(self, attempt_id: str) -> None:
        """Log the attempt's id, once."""
        if self._logged != attempt_id:
            self._logged = attempt_id
            self._tell(f"attempt {attempt_id}")

    def _begun(self, client: Mapping[str, Any]) -> OpenAttempt:
        if self._closed:
            raise AttemptError("The server is being closed.")
        if self._has_answered:
            raise AttemptError("The verdict was given before the first call, so no attempt can begin.")
        if self._resumed is not None:
            return self._services.resume(self._resumed.attempt_id)
        leased = self._leased()
        if leased is not None:
            return self._continued(leased)
        solver, identity = self._solver, ""
        if self.lease is not None:
            solver = {**solver, "lease": self.lease.name}
            identity = self.lease.attempt or self.lease.reserve(self._services.clock.utc_ms())
        enrolment = replace(self._enrolment, solver={**solver, **client})
        return self._services.start(
            self.task, budgets=self._budgets, enrolment=enrolment, attempt_id=identity
        )

    def _leased(self) -> AttemptSummary | None:
        """Return the lease's attempt; None if it has not begun, or there is no lease.

        Raises `LeaseError` if it began under other conditions.
        """
        identity = "" if self.lease is None else self.lease.attempt
        attempts = self._services.attempts
        if self.lease is None or not identity or first_event(attempts.root / identity / JOURNAL) is None:
            return None
        summary = attempts.summary(identity)
        header, budgets = summary.state.header, summary.state.budgets
        begun = {
            "task": summary.task_id[:12],
            "role": summary.role,
            "participant": summary.participant or "none",
            "budgets": _budget_words(budgets),
            "client's own tools": str((header.solver or {}).get("client_tools")),
        }
        asked = {
            "task": self.task.id[:12],
            "role": self._enrolment.role.value,
            "participant": self._enrolment.participant or "none",
            "budgets": _budget_words(self._budgets),
            "client's own tools": str(self._solver.get("client_tools")),
        }
        require_same_conditions(self.lease.name, begun, asked)
        return summary

    def _continued(self, leased: AttemptSummary) -> OpenAttempt:
        """Resume the lease's attempt. Raises `AttemptError` if it has ended: it is never opened again."""
        self._last = leased.state
        if leased.state.ending is not None:
            raise AttemptError(f"The attempt has ended: {leased.state.ending.reason}.")
        if self._judge is None:
            self._judge = self._services.judge_for(self.task)
        return self._services.attempts.resume(leased.attempt_id, self.task, self._judge)

    def _confirm(self, state: AttemptState) -> None:
        if self._hurried or to_be_confirmed(state) is None:
            return
        asked = confirm_after_end(self._services, state.attempt_id, task=self.task)
        if asked is not None and asked.confirmation is not None:
            self._tell(f"confirmation: {asked.confirmation.words}")

    def beat(self) -> None:
        """Record a heartbeat of the attempt; if its time is up, end it or begin the hand-in."""
        with self._lock:  # a call under a lease closes the attempt
            if self._opened is not None and not self._closed:
                self._opened.attempt.heartbeat()

    def hand_in(self) -> None:
        """Judge the hand-in that was begun when a time limit was reached, if there is one."""
        if self._opened is not None and not self._closed:
            self._opened.attempt.finish_pending()

    def verdict(self) -> ServedVerdict | None:
        """End the attempt if it has not ended, and return the verdict; None on later calls and after closing.

        A second solver on the same server must not get the verdict on the first (decision 157).
        """
        with self._lock:
            if self._has_answered or self._closed:
                return None
            self._has_answered = True
        if self._opened is None:
            return ServedVerdict(self.task.id)
        attempt = self._opened.attempt
        attempt.hand_in(EndReason.GAVE_UP, GiveUpCode.NO_TOOL_CALL)
        attempt.finish_pending()
        state = attempt.state
        score = float(state.last.score or 0) if state.last else 0.0
        return ServedVerdict(self.task.id, state.attempt_id, state.solved, score)

    def close(self, *, at_once: bool = False) -> None:
        """Close the journal, confirm the pass of an attempt that has ended, and log how to continue.

        With `at_once`, the pass is left for `gistpoint attempt confirm`. Only the first call has an effect.
        """
        if self._closed:
            return
        self._closed, self._hurried = True, at_once
        state = self._last if self._opened is None else self._opened.attempt.state
        if state is None:
            return
        if self._opened is not None:
            self._opened.close()
        self._confirm(state)
        how = f"--lease {self.lease.name}" if self.lease is not None else f"--attempt {state.attempt_id}"
        end = state.ending.reason if state.ending else f"unfinished; continue it with {how}"
        self._tell(f"attempt {state.attempt_id}: {visible(end)}")


def budgets_left(state: AttemptState) -> Mapping[str, int | None]:
    """Return the remaining budgets, by name."""
    left = state.remaining
    scores = {"scores": left.scores} if state.budgets.scores else {}
    return {"tool_uses": left.tool_uses, "submissions": left.submissions, **scores}


def _budget_words(budgets: Budgets) -> str:
    limit = "" if budgets.time_limit_s is None else f" in {budgets.time_limit_s:g} s"
    return f"{budgets.tool_uses}/{budgets.submissions}{limit}"


def served_attempt(
    services: Services, request: ServeAttempt, transport: str, tell: Callable[[str], None]
) -> ServedAttempt:
    """Return the requested attempt, to serve it over a transport (`stdio` or `http`).

    `tell` receives warnings, such as that other users can read the answer, and the lines of the log. Raises
    `UserError` if the task, the attempt or the lease can't be used, if the budgets are invalid, and for a
    baseline whose client may be able to read the answer.
    """
    task = services.tasks.find(request.task)
    resumed = _resumed(services, task, request)
    role = services.enrolment.role if resumed is None else Role(resumed.role)
    # A client with a shell on this machine can read the answer, and no server can prevent that (decision 76).
    if role is Role.BASELINE and not request.trust_client:
        raise UserError(
            "An attempt over MCP does not count: a client with its own shell can read the task's answer.",
            hint=(
                "docs/guide/mcp.md describes a set-up in which the client can't read it. If you use"
                " that, give --trust-client."
            ),
        )
    budgets = _budgets(request.budgets, services, task) if request.budgets else None
    if is_answer_readable(task, services.locations):
        tell("gistpoint: other users of this machine can read the task's answer; chmod 700 its folder")
    tools = "none_said" if request.trust_client else "unknown"
    solver = {"kind": KIND, "transport": transport, "client_tools": tools}
    lease = lease_named(services.attempts.root, request.lease) if request.lease else None
    note = "" if lease is not None or resumed is not None else _piled_up(services, task)
    if note:
        tell(f"gistpoint: {note}")
    return ServedAttempt(
        services, task, solver, budgets=budgets, resumed=resumed, lease=lease, note=note, tell=tell
    )


def _piled_up(services: Services, task: Task) -> str:
    """Return a note if clients have just left several attempts at a task; otherwise an empty string."""
    since = services.clock.utc_ms() - PILE_MS
    return " ".join(pile.words for pile in piles(services.attempts, KIND, since, task.id))


def _resumed(services: Services, task: Task, request: ServeAttempt) -> AttemptSummary | None:
    """Return the attempt to resume; None if a new one is requested.

    Raises `UserError` if there is no such attempt, if it was not started over MCP, has ended, is damaged,
    open in another process or of another task, or if a setting is given as well.
    """
    if not request.attempt:
        return None
    for given, name in (
        (request.budgets, "--budgets"),
        (request.role, "--role"),
        (request.participant, "--participant"),
        (request.lease, "--lease"),
    ):
        if given:
            raise UserError(f"An attempt keeps its settings: {name} can't be given with --attempt.")
    found = services.attempts.summary(request.attempt)
    if found.problem:
        raise UserError(f"The attempt {found.attempt_id} can only be read. {found.problem}")
    if found.task_id != task.id:
        raise UserError(f"The attempt {found.attempt_id} belongs to another task.", hint="Name that task.")
    if (found.state.header.solver or {}).get("kind") != KIND:
        raise UserError(
            f"The attempt {found.attempt_id} was not started over MCP.",
            hint="Leave --attempt out to start one.",
        )
    if found.state.ending is not None:
        raise UserError(f"The attempt {found.attempt_id} has ended: {found.state.ending.reason}.")
    if found.open:
        raise UserError(
            f"The attempt {found.attempt_id} is open in another process.", hint="Close that one first."
        )
    return found


def _budgets(text: str, services: Services, task: Task) -> Budgets:
    kind = kind_of(task)
    once = kind.blank.hands_in_once
    own = kind.budgets(task, services.enrolled(task, services.enrolment).role)
    uses, _, submissions = text.partition("/")
    most_uses = whole_number(uses) or 0
    most_submissions = 1 if once else max(1, most_uses // 4)
    if submissions:
        most_submissions = whole_number(submissions) or 0
    if not (most_uses and most_submissions):
        raise UserError(f"--budgets {text!r} is not a pair of numbers above 0.", hint="Such as 16/4.")
    if once and most_submissions != 1:
        raise UserError("A gist is handed in once.", hint=f"Give only its steps: --budgets {uses}.")
    return replace(own, tool_uses=most_uses, submissions=most_submissions)


def is_answer_readable(task: Task, locations: Locations) -> bool:
    """Return whether other users of this machine can read a task's answer; False for the public demo."""
    answer = task.folder / "answer"
    if is_our_demo(task, locations) or not answer.exists():
        return False
    may_others_read = answer.stat().st_mode & 0o044
    if not may_others_read:
        return False
    return all(parent.stat().st_mode & 0o011 for parent in (answer, *answer.absolute().parents))
