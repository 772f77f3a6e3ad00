"""Recorded data: the event journal, the stores, formats, annotations and replay."""
