"""What can be wrong with a piece of Python code, or with the name of one, told to whoever wrote it."""

from gistpoint.core.errors import UserError


class CodeError(UserError):
    """Code can't be read, named or replaced as asked; `line` is where, counted from 1, None where no line is."""

    def __init__(self, message: str, *, hint: str = "", line: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.line = line


class NotDefinedError(CodeError):
    """A file defines nothing of the name that was asked for."""
