"""Declares, logs and assigns studies, and makes the rows from which their numbers are computed."""
