"""Recorded runs in any format: their normalised steps, and opening files of any size."""
