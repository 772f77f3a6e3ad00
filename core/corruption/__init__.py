"""Corruptions of functions: text edits by operators, gates, records, and what the tests showed of them."""
