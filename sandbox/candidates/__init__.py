"""Tests corrupted functions in a fraction of the suite's time."""
