"""Recorded runs, whatever their format: the steps they normalise to, and how a file of any size is opened."""
