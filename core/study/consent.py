"""The text that a participant reads before agreeing, and a copy of it to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.readable import utc_day
from gistpoint.core.study.declaration import (
    REQUIRED_ITEM,
    Assistance,
    Study,
    item_words,
)
from gistpoint.core.text import visible

NEEDED = "(needed)"
CONTACT = "Questions and complaints: "
_PRINTED_WIDTH = 78
"""The width of a copy in characters, for a page of paper."""


def consent_words(study: Study) -> str:
    """Return the whole text that a participant reads before agreeing, in paragraphs."""
    parts = (study.texts.welcome, study.texts.consent, privacy_words(study))
    return "\n\n".join(part.strip() for part in parts if part.strip())


def shown_sha256(study: Study) -> str:
    """Return the hash of what a participant agrees to: the text and the items."""
    return sha256_of_text("\n".join((consent_words(study), *item_labels(study))))


def item_labels(study: Study) -> list[str]:
    """Return the items as shown to participants, with required items marked."""
    return [
        f"{item_words(item)}   {NEEDED}" if item.startswith(REQUIRED_ITEM) else item_words(item)
        for item in study.texts.consent_items
    ]


def privacy_words(study: Study) -> str:
    """Return what participants read about their data: controller, chat, retention and contacts."""
    return "\n\n".join(_privacy(study))


def _privacy(study: Study) -> Iterator[str]:
    privacy = study.privacy
    if privacy.controller:
        yield f"Responsible for your data: {privacy.controller}"
    if privacy.legal_basis:
        yield f"Legal basis: {privacy.legal_basis}"
    yield from _chat(study)
    days = privacy.retention_days
    if privacy.retention:
        yield privacy.retention
    elif days:
        yield f"Your data will be erased after {days} day{'' if days == 1 else 's'}."
    else:
        yield "No time is set after which your data will be erased. You can have them erased at any time."
    if privacy.contact:
        yield f"{CONTACT}{privacy.contact}"


def _chat(study: Study) -> Iterator[str]:
    """Yield a paragraph on what the chat with a model sends, and to whom, if there is a chat."""
    conditions = [one for one in study.conditions_of_people if one.assistance is Assistance.CHAT]
    if conditions:
        models = " and ".join(sorted({one.chat.model for one in conditions}))
        to = study.privacy.chat_recipient or "whoever runs that model"
        some = "Some tasks have" if len(conditions) < len(study.conditions_of_people) else "The tasks have"
        yield (
            f"{some} a chat with a program ({models}). With each message that you send there, your computer"
            " sends the conversation, the task, the answers of the tools that you have used and the code in"
            f" your editor to {to}. Your code name is not sent. Without a message, nothing is sent."
        )


def consent_copy(study: Study, ticked: Sequence[bool] | None, agreed_ms: int | None, program: str) -> str:
    """Return a copy of the consent to keep: the text, the items, and when it was agreed to.

    `ticked` contains whether each item is ticked; None for a copy without an answer. `program` is the version
    of gistpoint.
    """
    marks = ticked if ticked is not None else [False] * len(study.texts.consent_items)
    items = [
        f"[{'x' if mark else ' '}] {label}" for mark, label in zip(marks, item_labels(study), strict=False)
    ]
    version = f"Version of this text: {study.texts.consent_version}\n" if study.texts.consent_version else ""
    agreed = "Not agreed to yet." if agreed_ms is None else f"Agreed to on {utc_day(agreed_ms)} (UTC)."
    head = (
        f"{study.title or study.id}\nConsent to take part (study {study.id})\n{version}{agreed}\n"
        f"Shown by gistpoint {program}; fingerprint of text and items: {shown_sha256(study)[:16]}"
    )
    text = "\n\n".join((head, consent_words(study), "WHAT YOU AGREE TO\n\n" + "\n".join(items)))
    # A copy may also be read outside of gistpoint, for example with `cat` in a terminal.
    return visible("\n".join(fill(line, _PRINTED_WIDTH) for line in text.splitlines())) + "\n"
