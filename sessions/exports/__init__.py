"""Exports of runs, studies and tasks in other programs' formats."""
