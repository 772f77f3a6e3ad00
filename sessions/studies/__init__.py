"""The study folder: its log, publishing, erasing and auditing its content, and the runs of models in it."""
