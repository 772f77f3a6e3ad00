"""Runs of agents: attempts of one model under common settings, with their figures."""
