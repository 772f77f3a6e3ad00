"""Metrics of functions: their complexity, their centrality on the call graph, and sets selected by these."""
