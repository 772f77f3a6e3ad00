"""The study: declaration, log, assignments, and the rows from which its numbers are computed."""
