"""Files that run next to the tested code; they import only Python's own modules, pytest and each other."""
