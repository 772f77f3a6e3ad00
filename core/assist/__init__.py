"""The chat of an assisted condition: the context of its model, and the exchanges."""
