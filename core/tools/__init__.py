"""The tools of a solver, each declared once."""
