"""The screen on which people validate tasks."""
