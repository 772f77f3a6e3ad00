"""Inspect: its logs, and the events of their samples."""
