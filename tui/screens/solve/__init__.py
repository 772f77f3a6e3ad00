"""The screen on which an attempt is made, and its panes."""
