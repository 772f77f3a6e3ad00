"""Gemini CLI and Qwen Code, which grew out of it: sessions, and what the command line prints."""
