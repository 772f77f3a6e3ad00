"""Screens that watch agents' runs."""
