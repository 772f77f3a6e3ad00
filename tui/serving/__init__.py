"""Serves participants in browsers, each with a link and a separate program behind it."""
