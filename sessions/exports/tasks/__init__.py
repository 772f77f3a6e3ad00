"""Writes tasks for other harnesses as text; no code of a harness is imported."""
