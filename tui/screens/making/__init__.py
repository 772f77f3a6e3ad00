"""The screen for the making of tasks."""
