"""Corruptions of functions: text edits by operators, gates, records, and the evidence of the tests."""
