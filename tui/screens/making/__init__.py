"""The screen that shows how tasks are made."""
