"""Writes runs as web pages, for people without gistpoint."""
