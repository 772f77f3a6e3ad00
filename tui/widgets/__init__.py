"""Widgets that several screens share. They draw given values, post messages, and know nothing of the engine."""
