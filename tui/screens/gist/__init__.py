"""The screen for writing a gist: the solve screen, with evidence on each line in the editor's gutter."""
