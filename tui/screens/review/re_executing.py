"""Makes the calls of the run again while it is looked at: a thread of its own, and what it found so far by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.sessions.runs.document import RunDocument

if TYPE_CHECKING:
    from gistpoint.core.ports import RunProgress
    from gistpoint.sessions.replay.replaying import Replay, ReplayedCall

Replaying = Callable[[RunDocument], "Replay"]
"""Makes a replay of a run on its task. Raises `UserError` where the task or the isolation is not here."""

GLYPHS = {"differs": "≠", "could not run": "∅", "not recorded": "?", "same": "="}
"""By the word for what became of a call, the worst first."""


class CallReplayed(Message):
    """A call was made again; `files` are those that differ from the start after it."""

    def __init__(self, replayed: ReplayedCall, files: Mapping[str, bytes | None]) -> None:
        super().__init__()
        self.replayed = replayed
        self.files = files


class ReplayGoesOn(Message):
    """Where the call that is being made stands."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    def can_replace(self, message: Message) -> bool:
        """Only where it stands last matters."""
        return isinstance(message, ReplayGoesOn)


class ReplayEnded(Message):
    """All calls were made again, or it came to an end before: `error` says why where somebody has to know."""

    def __init__(self, words: str, error: Exception | None = None) -> None:
        super().__init__()
        self.words = words
        self.error = error


@dataclass
class ReExecution:
    """One replay of the run in sight; `start` at most once."""

    owner: MessagePump
    opening: Callable[[], RunDocument]
    replaying: Replaying
    results: dict[int, list[ReplayedCall]] = field(default_factory=dict)
    """What became of the calls of each step, the first step being 0."""
    running: bool = False
    _cancel: CancelToken = field(default_factory=CancelToken)

    def start(self) -> None:
        """Begin."""
        self.running = True
        Thread(target=self._work, name="replay", daemon=True).start()

    def stop(self) -> None:
        """Stop at once; what was found stays."""
        self._cancel.cancel()

    def take(self, replayed: ReplayedCall) -> int:
        """Keep what became of a call, and return its step, the first being 0."""
        step = replayed.call.step - 1
        self.results.setdefault(step, []).append(replayed)
        return step

    def badge(self, step: int) -> str:
        """Return the glyph of a step: that of its worst call; empty where none was made again."""
        found = {replayed.sameness.value for replayed in self.results.get(step, ())}
        return next((glyph for word, glyph in GLYPHS.items() if word in found), "")

    def counts(self) -> str:
        """Return how many calls came out how, in words."""
        counted = Counter(replayed.sameness.value for step in self.results.values() for replayed in step)
        return ", ".join(f"{counted[word]} {word}" for word in reversed(GLYPHS) if counted[word]) or "no call yet"

    def words(self, step: int) -> str:
        """Return what became of the calls of a step, for the line above a page."""
        found = self.results.get(step, ())
        said = [f"{r.sameness.value}{f' ({r.reason})' if r.reason else ''}" for r in found]
        return f"made again: {', '.join(said)}" if said else ""

    def text(self, step: int) -> str:
        """Return the whole story of a step: each call, what became of it, and how the results differ."""
        from gistpoint.core.tools.commandline import spelled

        parts = []
        for replayed in self.results.get(step, ()):
            call = replayed.call
            almost = "" if replayed.exact else " but for times, addresses and folders"
            parts.append(f"{spelled(call.tool, call.arguments or {})}\n{replayed.sameness.value}{almost}")
            parts.extend(part for part in (replayed.reason, replayed.diff) if part)
        return "\n\n".join(parts)

    def _work(self) -> None:
        try:
            replay = self.replaying(self.opening())
            for replayed in replay.calls(on_progress=self._progress, cancel=self._cancel):
                self._post(CallReplayed(replayed, replay.files()))
            self._post(ReplayEnded(_verdicts(replay)))
        except CancelledError:
            self._post(ReplayEnded("Stopped."))
        except UserError as error:
            self._post(ReplayEnded(error.message, error))
        except Exception as error:  # a bug of ours ends in the app's one place for those, not in a thread
            self._post(ReplayEnded("", error))
        finally:
            self.running = False

    def _progress(self, run: RunProgress) -> None:
        self._post(ReplayGoesOn(f"{run.phase} {run.done}/{run.total}" if run.total else run.phase))

    def _post(self, message: Message) -> None:
        if not isinstance(message, ReplayGoesOn) or not self._cancel.cancelled:
            self.owner.post_message(message)


def _verdicts(replay: Replay) -> str:
    same = "the same" if replay.same_verdict() else "NOT the same"
    then, now = replay.verdict_then().words, replay.verdict_now().words
    notes = "".join(f" {note}" for note in replay.notes)
    return f"Verdict then: {then}; now, in {replay.judge.runner.backend.name}: {now}; {same}.{notes}"
