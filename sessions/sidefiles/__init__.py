"""Side files: what people say beside runs and tasks, as append-only operations, one file for each person."""
