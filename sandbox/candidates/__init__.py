"""What the suite says of a corrupted function, in a fraction of the suite's time."""
