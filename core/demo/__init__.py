"""The demo: a small library written for it, its tasks as archives, and a recorded attempt.

`library/` is data, a repository of its own; nothing of gistpoint imports it.
"""
