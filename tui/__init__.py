"""The user interface: the Textual app, its screens and widgets, and the command line."""
