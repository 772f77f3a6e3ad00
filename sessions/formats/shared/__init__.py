"""What the readers of several families use: messages, calls, plain text, records that make several steps."""
