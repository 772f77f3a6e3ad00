"""The pi coding agent and OpenClaw, which is based on it: sessions, and what OpenClaw reports of them."""
