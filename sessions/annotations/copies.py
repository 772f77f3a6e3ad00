"""Finds runs that are copies of one another: they have the same key and the same content (decision 185).

A key alone is no proof: a program that continues or repeats a session may give several runs the same id, and
runs of a study begin alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from gistpoint.sessions.records.model import Step, parts_of


class ContentHash:
    """A hash of the text, kinds, actors, times and tools of a run's steps, which are added one by one."""

    def __init__(self) -> None:
        self._sha256 = sha256()

    def add(self, step: Step) -> None:
        """Add the next step."""
        texts = (f"{scope.value} {part} {len(text)} {text}" for scope, part, text in parts_of(step) if text)
        head = (step.kind.value, step.actor.value, step.started, *(call.tool for call in step.calls))
        for text in (repr(head), *texts):
            self._sha256.update(text.encode("utf-8", "surrogatepass") + b"\0")

    def key(self, key: str) -> str:
        """Return a key that only copies of a run share, from this hash and the key of its annotations."""
        return f"{key}~{self._sha256.hexdigest()[:32]}"


def copy_key(key: str, steps: Iterable[Step]) -> str:
    """Return a key that only copies of a run share, given its steps and the key of its annotations."""
    content = ContentHash()
    for step in steps:
        content.add(step)
    return content.key(key)
