"""Models code as functions by `path::qualname`, with their positions, and replaces them in place."""
