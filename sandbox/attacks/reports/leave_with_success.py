"""Ends the process in the middle of a test, with the exit status of success."""

import os


def f() -> None:
    os._exit(0)
