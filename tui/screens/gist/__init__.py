"""Writing a gist: the solve screen with an editor whose gutter tells what is known of each line."""
