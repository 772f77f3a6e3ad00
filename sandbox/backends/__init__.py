"""Isolation backends, behind the seam in `base`."""
