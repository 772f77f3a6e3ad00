"""The operators that work without a model, one module per group of families."""
