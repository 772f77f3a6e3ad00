"""Cline and Roo Code: the conversation of a task, and the part that their window showed."""
