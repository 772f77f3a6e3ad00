"""Participants in browsers: each has a link, with a separate program behind it."""
