"""Gists: single self-contained files that do what a command does on a codebase."""
