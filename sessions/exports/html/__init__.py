"""Writes runs as web pages: one file for each run, for people without gistpoint."""
