"""Codex CLI: its sessions, and the output of its command line."""
