"""Runs gists and the commands that they reproduce."""
