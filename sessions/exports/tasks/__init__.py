"""Tasks written for other harnesses: texts alone, nothing of a harness is imported."""
