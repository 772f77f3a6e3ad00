"""Traces of observability tools and of OpenTelemetry, made of spans."""
