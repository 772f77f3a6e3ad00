"""Runs of gists and of the commands that they reproduce."""
