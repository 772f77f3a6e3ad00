"""Runs agents: makes attempts of one model under common settings, and computes their figures."""
