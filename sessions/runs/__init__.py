"""Recorded runs of any format and size: opening, searching, comparing, watching, and facts about steps."""
