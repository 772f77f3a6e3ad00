"""Which backends the contract was held to."""

from __future__ import annotations

import os

from gistpoint.sandbox.ladder import builtin_backends
from gistpoint.sandbox.limits import Limits


def test_the_backends_that_must_be_here_work():
    """`GISTPOINT_REQUIRE_BACKENDS` names them, so that a machine meant to test one can't pass without it."""
    made = builtin_backends()
    for name in filter(None, os.environ.get("GISTPOINT_REQUIRE_BACKENDS", "").split(",")):
        probe = made[name]().probe()
        assert probe.works, f"{name}: {probe.why_not}. {probe.mend}"


def test_a_record_says_what_was_promised(backend):
    record = backend.record(Limits(processes=7))
    assert record.name == backend.name
    assert record.isolated == (backend.name != "plain")
    assert record.limits["processes"] == 7
    assert record.version
