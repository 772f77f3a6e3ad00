"""Participants in browsers: each has a link, and a separate program runs behind it."""
