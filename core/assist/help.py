"""The gist that a study shows as help with a repair task."""

from __future__ import annotations

from dataclasses import dataclass

from gistpoint.core.canonical import sha256_of_text


@dataclass(frozen=True, slots=True)
class HelpGist:
    """The gist of one of a task's failing tests; without `text`, `reason` explains why there is none."""

    text: str = ""
    entrypoint: str = ""
    reason: str = ""

    @property
    def sha256(self) -> str:
        """The hash in an attempt's header; empty without a gist."""
        return sha256_of_text(self.text) if self.text else ""
