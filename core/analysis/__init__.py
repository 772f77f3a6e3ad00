"""Estimates from a study's rows: intervals, the figures of both papers, times, people against models."""
