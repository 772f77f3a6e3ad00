"""The screen on which tasks are validated by hand."""
