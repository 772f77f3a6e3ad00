"""The question whether code from a repository may run without isolation."""

from __future__ import annotations

import sys

WHAT_IT_MEANS = (
    "The repository's code would run as you, and so would the builds of it and of its dependencies: they"
    " could read your files, use the network and leave processes behind. Every result will be marked as"
    " unsandboxed. `gistpoint doctor --withdraw-consent` withdraws the consent."
)


def ask_consent(why_not: str) -> bool:
    """Ask on the terminal whether code may run without isolation, and return whether the user consents.

    `why_not` is the reason why no isolation works. Without a terminal, return False.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    from gistpoint.core.text import visible

    print(f"No isolation works on this machine:\n{visible(why_not)}\n{WHAT_IT_MEANS}", file=sys.stderr)
    print("Run it anyway, on this machine from now on? Type yes: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"
