"""Hostile programs and their expected outcome on each backend: for `gistpoint doctor --self-test` and the
tests.
"""
