"""gistpoint's own journals."""
