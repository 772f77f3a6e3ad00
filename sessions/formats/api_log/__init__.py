"""Logs of requests to the APIs of models."""
