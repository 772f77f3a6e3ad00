"""Makes the failing test be reported as skipped."""

import pytest


def f() -> None:
    pytest.skip("nothing to see")
