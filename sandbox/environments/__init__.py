"""Environments of tasks: what a repository needs, resolved, pinned, fetched, built in isolation and installed."""
