"""Runs of agents, looked on."""
