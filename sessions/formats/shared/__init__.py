"""Parts of readers in several families: messages, calls, plain text, and records that make several steps."""
