"""What people see: the Textual app, its screens and widgets, and the command line."""
