"""Codex CLI: its sessions, and what its command line prints."""
