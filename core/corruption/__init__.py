"""Corruption: edits of a function that break its tests and look like its author's own code."""
