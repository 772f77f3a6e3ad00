"""The solve screen and its panes."""
