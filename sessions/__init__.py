"""Stores recorded data in the event journal and the stores, and reads, annotates and replays it."""
