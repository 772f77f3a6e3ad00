"""Opens recorded runs of any format and size, and normalises their steps."""
