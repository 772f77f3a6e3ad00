"""Kinds of tasks: what each is, how it is made, attempted, judged and checked."""
