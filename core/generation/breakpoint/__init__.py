"""Tasks from the records of the public Breakpoint data set."""
