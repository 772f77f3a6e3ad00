"""The exceptions that a user can act on, with hints; any other exception that reaches the user is a bug."""

from __future__ import annotations

from collections.abc import Iterable

_CHARACTERS = 100
"""The maximum number of characters in a word that is compared with known names."""


class UserError(Exception):
    """An error described in a sentence, with a hint on what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


def cause(error: Exception) -> str:
    """Return the reason for a file error without the file's name, which messages state separately."""
    return getattr(error, "strerror", None) or str(error)


def extra_hint(extra: str) -> str:
    """Return a hint on how to install the packages of an optional extra."""
    return f"Install them: pip install 'gistpoint[{extra}]', or in a clone: uv sync --extra {extra}."


class TaskError(UserError):
    """A task folder can't be used; the message names the file and the key."""


class SourceError(UserError):
    """A source of code (sdist, folder, git repository) can't be obtained or used."""


class EnvironmentBuildError(UserError):
    """The environment of a repository could not be built; `log` is the output of the builder."""

    def __init__(self, message: str, *, hint: str = "", log: str = "") -> None:
        super().__init__(message, hint=hint)
        self.log = log


class SandboxUnavailableError(UserError):
    """The requested isolation does not work on this machine, or the user has not consented to it."""


class RecordingError(UserError):
    """Recording which tests run which functions failed."""


class InfrastructureError(UserError):
    """The harness failed, not the solver, so the failure costs no submission."""


class HarnessFailedError(InfrastructureError):
    """A run was started, but the harness did not begin, for a reason other than the solver's code."""


class AttemptError(UserError):
    """An attempt can't be opened or continued as requested."""


class NegativeVerdictError(UserError):
    """A request was carried out, and its result is a negative verdict, which has a separate exit code."""


class SettingsError(UserError):
    """The user's settings can't be used; the message names the file and the key."""


class EndpointError(UserError):
    """The endpoint of a chat model is not configured as required."""


class NoModelError(EndpointError):
    """Neither the user's request nor the settings name a chat model."""


class CancelledError(UserError):
    """The user stopped a long operation."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the name in `known` that is most similar to `word`; empty if none is similar."""
    from difflib import get_close_matches

    found = get_close_matches(word[:_CHARACTERS], list(known), n=1)
    return found[0] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'NAME'?`, including the leading space; empty if no known name is similar."""
    found = nearest(word, known)
    return f" Did you mean {found!r}?" if found else ""
