"""Claude Code: its sessions, and what its command line prints."""
