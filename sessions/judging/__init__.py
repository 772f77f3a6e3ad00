"""Judges recorded runs with models, collects people's labels, and reports on both."""
