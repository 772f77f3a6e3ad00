"""Widgets shared by several screens.

They draw the values they are given, post messages, and don't know the engine.
"""
