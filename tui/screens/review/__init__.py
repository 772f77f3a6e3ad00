"""Review: recorded runs, step by step."""
