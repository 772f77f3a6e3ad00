"""The verifier bundle: gistpoint's verdict on a tree or gist, where gistpoint is not installed."""
