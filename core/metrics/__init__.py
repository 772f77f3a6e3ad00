"""Measures functions: their complexity and their centrality on the call graph; selects sets by metrics."""
