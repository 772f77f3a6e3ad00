"""Repeats recorded tool calls with the real engine, and compares the results with the recorded ones."""
