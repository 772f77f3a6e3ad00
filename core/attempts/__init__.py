"""An attempt is its list of events: the events, the fold to a state, the clocks, and the engine that appends
events.
"""
