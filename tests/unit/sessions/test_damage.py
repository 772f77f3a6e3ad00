"""Damaged and hostile files: what can be read is shown, what can't is refused with a reason, nothing breaks."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutants import mutants, read_all
from recorded_runs import make_all


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    made = make_all(tmp_path_factory.mktemp("sources"))
    return [item.path.read_bytes() for item in made if item.path.is_file()]


def test_no_mutant_breaks_the_reader(sources: list[bytes], tmp_path: Path) -> None:
    for name, data in mutants(sources, 300):
        path = tmp_path / "mutant"
        path.write_bytes(data)
        try:
            read_all(path)
        except Exception as error:
            raise AssertionError(name) from error
