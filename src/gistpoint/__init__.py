"""A terminal workbench for repository-level coding tasks."""

__version__ = "0.1.0"
