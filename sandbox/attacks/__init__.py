"""Hostile programs and their expected outcomes, for `gistpoint doctor --self-test` and the tests."""
