"""The chat of an assisted condition: the context that its model sees, and the exchanges with it."""
