"""Declares studies, keeps their logs, assigns tasks, and makes the rows from which numbers are computed."""
