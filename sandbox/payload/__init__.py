"""Files that run beside the tested code, where they import only Python's own modules, pytest and each other."""
