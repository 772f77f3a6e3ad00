"""Widgets shared by several screens.

They draw given values and post messages, without access to the engine.
"""
