"""Small screens that ask or tell one thing."""
