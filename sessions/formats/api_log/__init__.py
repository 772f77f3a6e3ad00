"""Logs of requests to model APIs."""
