"""An attempt: its events, the fold to its state, its clocks, and the engine that appends events."""
