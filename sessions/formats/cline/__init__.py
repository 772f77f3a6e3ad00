"""Cline and Roo Code: the conversation of a task, and what their window showed of it."""
