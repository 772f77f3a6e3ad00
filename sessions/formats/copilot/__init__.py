"""GitHub Copilot: its chats in VS Code, and the sessions of its command line."""
