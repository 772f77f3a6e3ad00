"""Screens for blind reading of functions, and for verdicts on the corrupted ones afterwards."""
