"""Runs as web pages: one file each, for people who have no gistpoint."""
