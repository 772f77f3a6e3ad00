"""Small screens that ask one question or show one message."""
