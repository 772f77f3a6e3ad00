"""The screen for validating tasks by hand."""
