"""Confirming a pass: what the submitted functions answer where no test can be seen (decision 113)."""
