"""What readers of several families use: messages, calls, plain text, and records that make several steps."""
