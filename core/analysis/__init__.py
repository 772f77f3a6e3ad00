"""Computes a study's estimates: the figures of both papers, times, and comparisons of people with models."""

import os

# The matrices of a study are small: several threads spend most of their time waiting for each other, and the
# last digits of a sum depend on their number. numpy reads this when it is imported, which is later than here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
