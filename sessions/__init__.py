"""What is remembered: the event journal, the store, replay."""
