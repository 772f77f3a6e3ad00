"""Types of command-line arguments, for argparse."""

from __future__ import annotations

import argparse


def counted(text: str) -> int:
    """Return a whole number of 1 or more."""
    value = _whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def step_number(text: str) -> int:
    """Return the number of a step of a run."""
    try:
        return counted(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no step: a step is given by its number, counted from 1, as `gistpoint show RUN` prints it"
        ) from error


def natural(text: str) -> int:
    """Return a whole number of 0 or more."""
    value = _whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def positive(text: str) -> float:
    """Return a finite number above 0."""
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from error
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be a number above 0")
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from error
