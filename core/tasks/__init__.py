"""The task: its model, its folder on disk, its identity and its brief."""
