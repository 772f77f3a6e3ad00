"""Widgets shared by several screens. They draw given values, post messages, and don't know the engine."""
