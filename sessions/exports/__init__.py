"""Exports of runs in other programs' formats."""
