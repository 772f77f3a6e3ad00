"""The key bindings, a module for each group of screens."""
