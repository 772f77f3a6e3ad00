"""How a candidate is tried: by removal, by a corruption, by a model, or several functions at once."""
