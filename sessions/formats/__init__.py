"""The formats of recorded runs, one module each, which declares the format."""
