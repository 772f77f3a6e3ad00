"""Makes the assistant's context from everything shown to the person, the editor and the conversation.

The context is a pure function of the attempt's state, so that an audit can rebuild it from the journal. The
model gets no tools: it must not know more than the person was shown (decision 85).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

from gistpoint.core.attempts.events import AssistAsked, AttemptStarted, JournalEvent
from gistpoint.core.attempts.parts import AttemptCall
from gistpoint.core.attempts.state import AttemptState, advance
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.chat import ChatMessage
from gistpoint.core.errors import AttemptError, did_you_mean
from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.kinds.registry import blank_state

MOST_CHARACTERS = 60_000
"""The maximum number of characters in answers to calls, newest first; the calls left out are named."""


@dataclass(frozen=True, slots=True)
class AssistContext:
    """The messages of one request, with the number of answers that they include and the calls left out."""

    messages: tuple[ChatMessage, ...]
    calls: int
    """The number of answers to calls that the request contains."""
    left_out: tuple[str, ...]
    """The ids of the calls whose answers did not fit into the context."""

    @property
    def sha256(self) -> str:
        """The hash of the messages, for audits."""
        return sha256_of_json([[message.role, message.content] for message in self.messages])


def templates() -> list[str]:
    """Return the names of the templates, sorted."""
    folder = resources.files("gistpoint.core.assist") / "templates"
    return sorted(entry.name.removesuffix(".md") for entry in folder.iterdir() if entry.name.endswith(".md"))


def template_text(name: str) -> str:
    """Return the text of a template. Raises `AttemptError` if there is no such template."""
    names = templates()
    if name not in names:
        raise AttemptError(f"There is no template {name!r} of an assistant.{did_you_mean(name, names)}")
    file = resources.files("gistpoint.core.assist") / "templates" / f"{name}.md"
    return file.read_text(encoding="utf-8")


def context_of(state: AttemptState, template: str, question: str, buffer: str = "") -> AssistContext:
    """Return the context of a question; `buffer` is the name of the buffer in the editor, if any.

    Raises `AttemptError` for an unknown template.
    """
    answered = [call for call in state.calls if call.text is not None]
    shown = _newest(answered)
    left_out = tuple(call for call in answered if call not in shown)
    parts = [f"# The task\n\n{state.header.brief}", f"# Calls so far\n\n{_calls(shown, left_out)}"]
    code = state.buffered(buffer) if buffer else None
    if code is not None:
        parts.append(f"# In the editor: {buffer}\n\n{code}")
    exchanged = [
        message
        for exchange in state.exchanges
        if exchange.reply and not exchange.problem
        for message in (ChatMessage("user", exchange.question), ChatMessage("assistant", exchange.reply))
    ]
    messages = (
        ChatMessage("system", template_text(template)),
        ChatMessage("user", "\n\n".join(parts)),
        *exchanged,
        ChatMessage("user", question),
    )
    return AssistContext(messages, len(shown), tuple(call.call_id for call in left_out))


def _newest(answered: Sequence[AttemptCall]) -> list[AttemptCall]:
    """Return the newest calls whose answers fit, oldest first."""
    room, found = MOST_CHARACTERS, list[AttemptCall]()
    for call in reversed(answered):
        if len(call.text or "") <= room:
            room -= len(call.text or "")
            found.insert(0, call)
    return found


def _calls(sent: Sequence[AttemptCall], left_out: Sequence[AttemptCall]) -> str:
    shown = [f"> {spelled(call.tool, call.arguments)}\n{call.text}" for call in sent]
    if left_out:
        names = "\n".join(f"> {spelled(call.tool, call.arguments)}" for call in left_out)
        shown.insert(0, f"Left out, because there is no room for their answers:\n{names}")
    return "\n\n".join(shown) if shown else "None."


# The audit: whether the recorded contexts hold what the person saw, and nothing else


def wrong_contexts(events: Iterable[JournalEvent]) -> list[int]:
    """Return the numbers of the exchanges whose context, rebuilt from earlier events, has a different hash.

    Raises `AttemptError` if the data of an event do not fit its type.
    """
    state, wrong = AttemptState(), list[int]()
    for event in events:
        data = event.data
        if isinstance(data, AttemptStarted) and not state.events:
            state = AttemptState(of_kind=blank_state(data.mode))
        if isinstance(data, AssistAsked):
            try:
                rebuilt = context_of(state, data.template, data.text, data.buffer or "").sha256
            except AttemptError:
                rebuilt = ""
            if rebuilt != data.context_sha256:
                wrong.append(data.exchange)
        state = advance(state, event)
    return wrong
