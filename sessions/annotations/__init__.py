"""Annotations: people's remarks and verdicts on runs and tasks, as append-only operations in a file per
person.
"""
