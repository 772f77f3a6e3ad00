"""opencode: its exports and its storage, and sessions exported as Markdown."""
