"""Widgets that several screens share. They draw what they are given, post messages up and know no engine."""
