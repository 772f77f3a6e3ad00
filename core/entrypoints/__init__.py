"""Single commands of a codebase: their written form, and the port that runs them."""
