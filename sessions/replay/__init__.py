"""Recorded tool calls, made again through the real engine and held against what was recorded."""
