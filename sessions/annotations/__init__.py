"""Annotations: people's remarks and verdicts on runs and tasks, as append-only operations, one side file a person."""
