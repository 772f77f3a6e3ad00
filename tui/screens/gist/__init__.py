"""The screens for writing a gist, with evidence on each line in a gutter, and for its summary."""
