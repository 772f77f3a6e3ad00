"""What validators say about tasks: verdicts, comments and the evidence they asked for, never in the task itself."""
