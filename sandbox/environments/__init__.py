"""Environments of tasks: a repository's requirements, resolved, pinned, fetched, built and installed."""
