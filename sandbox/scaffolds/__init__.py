"""Starts other people's agents in a sandbox: without the answers, and with one host as their only network."""
