"""Analyses use one thread for linear algebra, so that their last digits are the same on every machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WATCHED = """
import importlib, os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print(os.environ.get("OPENBLAS_NUM_THREADS"))
            sys.meta_path.remove(self)

sys.meta_path.insert(0, Watch())
importlib.import_module(sys.argv[1])
"""


@pytest.mark.parametrize(
    "module",
    [
        "gistpoint.core.analysis.power",
        "gistpoint.core.analysis.timeratios",
        "gistpoint.sessions.exports.study.pictures",
        "gistpoint.sessions.exports.study.report.html",
    ],
)
@pytest.mark.parametrize("wanted", [None, "3"])
def test_the_number_of_threads_is_set_before_numpy_is_imported(module: str, wanted: str | None) -> None:
    own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    chosen = {} if wanted is None else {"OPENBLAS_NUM_THREADS": wanted}
    command = [sys.executable, "-c", WATCHED, module]
    found = subprocess.run(command, env=own | chosen, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [wanted or "1"]
