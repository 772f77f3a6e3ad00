"""Gemini CLI and Qwen Code, which is based on it: sessions, and the output of the command line."""
