"""What the screens show, computed from the state alone: no widget, no file, no clock of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from gistpoint.core.attempts.bench import Price
from gistpoint.core.attempts.clock import ACTIVE, Activity, Clock
from gistpoint.core.attempts.events import EndReason
from gistpoint.core.attempts.identity import SHOWS_EVIDENCE, Role
from gistpoint.core.attempts.state import AttemptResult, AttemptState, Call, Ending, Submission, result_of
from gistpoint.core.kinds.repair.bench import LAST_USE, budget_line
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tools.commandline import spelled

END_WORDS = {
    "solved": "✔ solved",
    "submissions_exhausted": "✘ submissions used up",
    "calls_exhausted": "✘ tool uses used up",
    "steps_exhausted": "✘ steps used up",
    "time_cap": "✘ time is up",
    "gave_up": "✘ gave up",
    "skipped": "↷ skipped",
    "final_wrong": "✘ final answer wrong",
    "infrastructure": "! infrastructure failed",
    "withdrawn": "! withdrawn",
    "disqualified": "! disqualified",
}
TO_BE_READ = "? solved, to be read"
REJECTED = "✘ solved, rejected"
LAST = " (THE LAST)"
ACTIVITY_WORDS = {
    Activity.READING: "Reading the instructions",
    Activity.EXPLORING: "Exploring",
    Activity.EDITING: "Editing",
    Activity.WAITING: "Waiting for tools and tests",
    Activity.PAUSED: "Paused",
    Activity.IDLE: "Idle",
}


def duration(ms: int) -> str:
    """Return a span as `m:ss`, or `h:mm:ss` from an hour on."""
    seconds = max(0, ms) // 1000
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def moment(utc_ms: int, *, now_ms: int | None = None) -> str:
    """Return a stamp as people read it, in their own time; without the year if it is that of `now_ms`."""
    if not utc_ms:
        return ""
    at = _local(utc_ms)
    return at.strftime("%m-%d %H:%M" if now_ms is not None and _local(now_ms).year == at.year else "%Y-%m-%d %H:%M")


def _local(utc_ms: int) -> datetime:
    return datetime.fromtimestamp(utc_ms / 1000, UTC).astimezone()


@dataclass(frozen=True, slots=True)
class Shown:
    """Source text that a tool result holds, with the place that it is from."""

    path: str
    text: str
    first_line: int = 1
    function: str = ""
    """`path::qualname` where it is one definition, empty for a whole file."""
    call_id: str = ""

    @property
    def name(self) -> str:
        """What it is called on the screen."""
        return self.function or self.path


def answer_without_budget(call: Call) -> str:
    """Return a result's text without the lines about budgets that end it."""
    text = (call.text or "").removesuffix(f"\n{LAST_USE}")
    return text.removesuffix(f"\n{budget_line(call.remaining)}")


def shown_sources(call: Call) -> Shown | None:
    """Return the source that a result shows whole: a file or one definition; None for every other result."""
    files, sources = call.revealed.get("files", ()), call.revealed.get("sources", ())
    if not (files or sources) or call.text is None:
        return None
    _, _, body = answer_without_budget(call).partition("\n")
    if files:
        return Shown(str(files[0]), body, call_id=call.call_id)
    name = str(sources[0])
    first = next((int(start) for found, start, _ in call.revealed.get("functions", ()) if found == name), 1)
    return Shown(name.partition("::")[0], body, first, name, call.call_id)


def stale(state: AttemptState, shown: Shown) -> str:
    """Return what was replaced in the file since it was shown, in a sentence; empty where nothing was."""
    order = [call.call_id for call in state.calls]
    if shown.call_id not in order:
        return ""
    at = order.index(shown.call_id)
    later = [
        s.replacement.qualname
        for s in state.submissions
        if s.replacement in state.replacements
        and s.replacement.path == shown.path
        and s.call_id in order
        and order.index(s.call_id) > at
    ]
    return f"{', '.join(dict.fromkeys(later))} replaced since" if later else ""


def call_words(call: Call) -> str:
    """Return one line for a call: its number, what was asked, and how it went."""
    mark = "…" if call.text is None else "✘" if call.refused else "·"
    arguments = {name: str(value) for name, value in call.arguments.items()}
    return f"{mark} {call.number:>2}  {spelled(call.tool, arguments)}"


def price_words(price: Price, state: AttemptState) -> str:
    """Return what a call costs and leaves, in a few words."""
    if price.scores:
        scores = state.remaining.scores
        return "costs no step" if scores is None else f"costs 1 score, {max(0, scores - price.scores)} left then"
    left = state.remaining.spend(tool_uses=price.tool_uses, submissions=price.submissions)
    use = "step" if is_gist(state) else "tool use"
    uses = f"{price.tool_uses} {use}{'' if price.tool_uses == 1 else 's'}"
    text = f"costs {uses}, {left.tool_uses} left then"
    if price.submissions and not is_gist(state):
        text = f"costs {uses} and 1 submission; {left.tool_uses} and {left.submissions} left then"
    return text + LAST if price.last_tool_use or price.last_submission else text


def clock_rows(clock: Clock) -> list[tuple[str, str]]:
    """Return the clocks by kind, then what they add up to, and what ran beside them."""
    rows = [(words, duration(clock.of(activity))) for activity, words in ACTIVITY_WORDS.items()]
    rows.append(("Working time (reading, exploring, editing)", duration(sum(clock.of(a) for a in ACTIVE))))
    if clock.away >= 1000:
        rows.append(("Program closed", duration(clock.away)))
    if clock.asleep >= 1000:
        rows.append(("Machine asleep", duration(clock.asleep)))
    return rows


def time_left(state: AttemptState, clock: Clock) -> str:
    """Return the working time, and the limit where there is one."""
    limit = state.budgets.time_limit_s
    used = duration(clock.active)
    return f"{used} of {duration(limit * 1000)}" if limit else used


def shows_evidence(state: AttemptState) -> bool:
    """Whether the screen may show more than the tool results say: by role, or because the attempt is over."""
    role = str(state.header.get("role", ""))
    return state.ended or role in {r.value for r in SHOWS_EVIDENCE if isinstance(r, Role)}


def is_gist(state: AttemptState) -> bool:
    """Whether a gist is written in the attempt, rather than a repair."""
    return bool(state.header.get("mode") == Mode.GIST.value)


def allowed(state: AttemptState, comfort: str) -> bool:
    """Whether a comfort is switched on in this attempt."""
    return comfort not in state.header.get("comforts_off", ())


def isolation_warning(state: AttemptState) -> str:
    """Return what must be said where the code under test runs without isolation; else nothing."""
    backend = state.header.get("backend", {})
    return "" if backend.get("isolated", True) else "⚠ NOT ISOLATED: tests run as you, on this machine"


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One test of a submission."""

    id: str
    passed: bool
    text: str = ""


def outcome_rows(submission: Submission, passed: Iterable[str] = ()) -> list[OutcomeRow]:
    """Return failing tests with their failures, then those that pass where they are known."""
    texts = dict(submission.failures)
    failing = [OutcomeRow(id, False, texts.get(id, "")) for id in submission.failing]
    return [*failing, *(OutcomeRow(id, True) for id in sorted(passed))]


def target_name(task: Task) -> str:
    """Return the function that the solver is told to write, in remove mode; else an empty name."""
    return task.brief.target if task.mode is Mode.REMOVE else ""


def stub(task: Task) -> str:
    """Return the code that the editor starts with in remove mode: what the brief shows of the function."""
    lines = [task.brief.signature.rstrip()]
    if task.brief.docstring:
        lines.append(_docstring(task.brief.docstring))
    lines.append("    pass")
    return "\n".join(lines) + "\n"


def _docstring(text: str) -> str:
    inner = text.rstrip().replace("\\", "\\\\")
    if '"""' in inner or inner.endswith('"'):
        inner = inner.replace('"', '\\"')
    first, *rest = inner.split("\n")
    if not rest:
        return f'    """{first}"""'
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    body = [f"    {line[margin:]}".rstrip() for line in rest]
    return "\n".join([f'    """{first}', *body, '    """'])


def end_words(ending: Ending, result: AttemptResult) -> str:
    """Return how an attempt ended, and whether its pass counts."""
    if ending.reason == EndReason.SOLVED and result is not AttemptResult.SOLVED:
        return TO_BE_READ if result.passes else REJECTED
    return END_WORDS.get(ending.reason, ending.reason)


def submission_words(submission: Submission, accepted: bool | None = None) -> str:
    """Return a submission's result in one line; `accepted` is what reviewers have said of a pass."""
    if not submission.status:
        return "… running"
    if submission.status != "finished":
        cost = "" if submission.counts else ", cost nothing"
        return f"✘ {submission.status.replace('_', ' ')}{cost}"
    result = result_of(submission.solved, submission.suspicious, accepted)
    mark = {AttemptResult.SOLVED: "✔ solved", AttemptResult.TO_BE_READ: TO_BE_READ}.get(result, "✘ not solved")
    if submission.metrics:
        return f"{mark}: fidelity {submission.score or 0:.0f}"
    return f"{mark}: score {submission.score or 0:.3f}, {submission.passed} pass, {len(submission.failing)} fail"
