"""Records which tests run which functions, and tests corrupted ones in a fraction of the suite's time."""
