"""The source, read once by the tests that one worker runs (`xdist_group`)."""

from __future__ import annotations

import pytest
from architecture.measures import Source
from project_files import ROOT


@pytest.fixture(scope="session")
def source() -> Source:
    return Source(ROOT)
