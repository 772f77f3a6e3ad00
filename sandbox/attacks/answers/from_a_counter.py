"""Answers according to how often the function has been called."""

ANSWERS = [2, 5, 10]
ASKED = []


def f(n):
    ASKED.append(n)
    return ANSWERS[(len(ASKED) - 1) % len(ANSWERS)]
