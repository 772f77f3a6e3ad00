"""The verifier bundle, which gives gistpoint's verdict on a tree or gist where gistpoint is not installed."""
