"""Small screens that ask or show one thing."""
