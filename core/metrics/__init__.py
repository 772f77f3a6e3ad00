"""Metrics of functions: complexity, centrality on the call graph, and the sets they select."""
