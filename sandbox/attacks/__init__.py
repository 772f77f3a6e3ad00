"""Hostile programs with what must come of each, on each backend: for `gistpoint doctor --self-test` and the tests."""
