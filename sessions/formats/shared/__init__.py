"""Parts of readers in several families: messages, calls, facts in rows, plain text, and divided records."""
