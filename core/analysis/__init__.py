"""Computes a study's estimates: the figures of both papers, times, and comparisons of people with models."""
