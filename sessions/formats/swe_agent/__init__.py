"""SWE-agent and mini-swe-agent."""
