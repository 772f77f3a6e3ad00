"""Functions read blind, and the verdicts on their corruptions afterwards."""
