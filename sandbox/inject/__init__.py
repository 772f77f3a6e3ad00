"""Files that run inside the sandbox, next to untrusted code. Each stands alone: it imports the standard library only."""
