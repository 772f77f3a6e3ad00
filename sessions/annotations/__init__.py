"""Annotations: people's remarks and verdicts on runs and tasks, as operations in a file per person."""
