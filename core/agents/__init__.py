"""A model at work on a task: the conversation, the loop, its settings and prompts, and a built-in solver."""
