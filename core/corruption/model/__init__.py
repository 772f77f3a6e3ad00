"""Corruptions by a model, in the loop of the paper."""
