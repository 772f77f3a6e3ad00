"""Judgements of recorded runs by models, and labels by people: side files, the work, and the report."""
