"""Widgets shared by several screens. They draw given values, post messages, and do not know the engine."""
