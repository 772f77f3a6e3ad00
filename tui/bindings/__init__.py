"""The key bindings, with a module for each group of screens."""
