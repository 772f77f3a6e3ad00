"""How complex each function is, how central it is on the call graph, and which functions are hard."""
