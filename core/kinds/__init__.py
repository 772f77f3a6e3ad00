"""Kinds of tasks: how each is made, attempted, judged and checked."""
