"""Measures the complexity of functions and their centrality on the call graph, and selects by metrics."""
