"""The question that is asked before code from a repository runs without isolation."""

from __future__ import annotations

import sys


def ask_consent(why_not: str) -> bool:
    """Ask on the terminal; without one the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(
        "No isolation works on this machine:\n"
        f"{why_not}\n"
        "The repository's code would run as yourself: it could read your files, use the network and stay behind.\n"
        "Every result will be marked as unsandboxed.",
        file=sys.stderr,
    )
    print("Run it all the same, on this machine from now on? Type yes: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"
