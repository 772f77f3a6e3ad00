"""Repeating recorded tool calls through the real engine, and comparing the results with the recorded ones."""
