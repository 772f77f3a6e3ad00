"""The screen on which a person labels runs by hand."""
