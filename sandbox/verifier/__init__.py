"""The verifier bundle: our verdict on a tree or gist, in a place where gistpoint is not installed."""
