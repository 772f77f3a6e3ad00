"""Gists: one self-contained file that does what a command does on a codebase."""
