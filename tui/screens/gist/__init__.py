"""The screens for writing a gist and for its summary, with evidence on each line in a gutter."""
