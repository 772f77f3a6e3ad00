"""Annotations: people's remarks and verdicts on runs and tasks, as operations in one file per person."""
