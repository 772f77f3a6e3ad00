"""Asks for consent before code from a repository runs without isolation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from gistpoint.core.text import visible

WHAT_IT_MEANS = (
    "The repository's code would run as yourself, and so would the builds of it and of what it needs: they could read "
    "your files, use the network and stay behind. Every result will be marked as unsandboxed. "
    "`gistpoint doctor --withdraw-consent` takes the consent back."
)


def ask_consent(why_not: str) -> bool:
    """Ask on the terminal; without one the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"No isolation works on this machine:\n{visible(why_not)}\n{WHAT_IT_MEANS}", file=sys.stderr)
    print("Run it all the same, on this machine from now on? Type yes: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


@dataclass
class Consent:
    """The way to ask: on the terminal, or in an app while it uses the terminal."""

    asker: Callable[[str], bool] = ask_consent
    """Called with the reason why there is no isolation, on the thread that makes the runner."""

    def ask(self, why_not: str) -> bool:
        """Ask, and return the answer."""
        return self.asker(why_not)
