"""The ways to try a candidate: by removal, by operators, by a model, or in a group of functions."""
