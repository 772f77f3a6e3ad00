"""Files that run inside the sandbox, beside untrusted code. Each stands alone: it imports the standard library only."""
