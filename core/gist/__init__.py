"""Scoring of gists: what stands in the original, what ran, and whether the outcome is the same. Pure."""
