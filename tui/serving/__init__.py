"""Participants in browsers: a link for each, and a program of their own behind it."""
