"""The screen for making tasks."""
