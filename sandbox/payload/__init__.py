"""Files that run next to the tested code; they import only Python's own modules, pytest and each other.

All such files are in this folder; a run sees only those that it needs (decision 65).
"""
