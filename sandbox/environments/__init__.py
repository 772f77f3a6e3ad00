"""Environments of tasks: the requirements of a repository, resolved, pinned, fetched,
built in isolation, installed.
"""
