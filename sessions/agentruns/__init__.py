"""Runs of agents: many attempts by one model with one set of settings, carried out, resumed and counted."""
