"""Checks that Harbor's own task model and linter accept exported tasks.

Usage: PYTHON tests/studies/harbor_lint.py HARBOR TASK…

HARBOR is a folder with Harbor's package, as unpacked from its wheel, and PYTHON an interpreter with the
packages it imports. Harbor requires Python 3.12; under 3.11 the two missing names are added. Each TASK is a
folder that `gistpoint task export --to harbor` wrote. Prints each finding, and the number of findings of the
rules that `harbor lint` applies by default.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
import typing
from pathlib import Path
from typing import Any


def main(harbor: str, *tasks: str) -> int:
    """Lint; return 1 if a default rule finds something, else 0."""
    sys.path.insert(0, harbor)
    if sys.version_info < (3, 12):
        later: Any = importlib.import_module("typing_extensions")
        vars(typing)["override"] = later.override
        vars(typing)["TypedDict"] = later.TypedDict
    config: Any = importlib.import_module("harbor.models.task.config")
    lint: Any = importlib.import_module("harbor.lint.task")
    models: Any = importlib.import_module("harbor.lint.models")
    counted = 0
    for task in tasks:
        config.TaskConfig.model_validate(tomllib.loads(Path(task, "task.toml").read_text("utf-8")))
        for finding in lint.lint_task(Path(task)):
            default = finding.rule in models.DEFAULT_RULES
            counted += default
            print(
                f"{Path(task).name}: {finding.rule}{'' if default else ' (not by default)'}: {finding.message}"
            )
    print(f"{len(tasks)} tasks, {counted} findings of the default rules")
    return int(counted > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
