"""A model as a judge of recorded runs: the rubric, the pieces it reads, its answers, and their quotes."""
