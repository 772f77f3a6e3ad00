"""Makes the failing test appear as skipped."""

import pytest


def f() -> None:
    pytest.skip("nothing to see")
