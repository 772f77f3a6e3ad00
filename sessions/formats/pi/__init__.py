"""The pi coding agent and OpenClaw, which is based on it: sessions, and OpenClaw's telemetry about them."""
