"""Writing a gist: the solve screen with an editor whose gutter shows the evidence on each line."""
