"""Runs written in the formats of others."""
