"""The operators that need no model, one module for each group of families."""
