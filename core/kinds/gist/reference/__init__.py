"""Reference gists by program: extraction guided by a trace, then reduction while the score holds."""
