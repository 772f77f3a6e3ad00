"""Sources as the command line names them."""

from __future__ import annotations

import argparse
import shlex

from gistpoint.core.errors import UserError
from gistpoint.core.generation.campaign.settings import SourceSpec


def spec_of(options: argparse.Namespace, source: str) -> SourceSpec:
    """Return a source with what the options say of its suite; raises `UserError` for arguments that can't be split."""
    try:
        pytest_args = tuple(shlex.split(options.pytest_args))
    except ValueError as error:
        raise UserError(f"--pytest-args can't be split into words: {error}.", hint="Close what is quoted.") from error
    return SourceSpec(source, pytest_args, tuple(options.extra), options.exclude_newer, tuple(options.build_steps))
