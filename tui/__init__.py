"""The user interface: the Textual app, its screens and widgets, and the command line."""

from gistpoint.tui.starting import compile_methods_when_called

compile_methods_when_called()  # before the first dataclass is made
