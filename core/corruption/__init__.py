"""Corruptions of functions: how they are made, recorded and judged by gates, readers and tests."""
