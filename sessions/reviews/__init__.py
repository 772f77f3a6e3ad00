"""What reviewers say about recorded runs: labels, comments and verdicts, kept beside the runs and never in them."""
