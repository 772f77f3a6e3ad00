"""The exceptions that a user can do something about; everything else that is raised is a bug."""


class UserError(Exception):
    """What happened and where, in a sentence, with a hint that says what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class TaskError(UserError):
    """A task folder can't be used: the message names the file and the key."""


class SourceError(UserError):
    """A source of code (sdist, folder, git repository) can't be had or is no good."""


class EnvironmentBuildError(UserError):
    """The environment of a repository could not be built; `log` is what the builder printed."""

    def __init__(self, message: str, *, hint: str = "", log: str = "") -> None:
        super().__init__(message, hint=hint)
        self.log = log


class SandboxUnavailableError(UserError):
    """The isolation that was asked for does not work on this machine, or was not consented to."""


class RecordingError(UserError):
    """Which tests run which functions could not be recorded."""


class InfrastructureError(UserError):
    """The harness failed, not the solver: it costs no attempt."""


class AttemptError(UserError):
    """An attempt can't be opened or continued as asked."""


class NegativeVerdictError(UserError):
    """What was asked for was tried and turned out not to be so: a verdict, with its own exit code."""


class SettingsError(UserError):
    """The user's settings can't be used; the message names file and key."""


class EndpointError(UserError):
    """The endpoint of a chat model is not configured as it must be."""


class CancelledError(UserError):
    """The user stopped a long operation."""
