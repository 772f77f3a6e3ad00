"""The backends on which the contract was tested."""

from __future__ import annotations

import os
from dataclasses import replace

from gistpoint.sandbox.backends.base import Stop, probe_command
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.ladder import builtin_backends
from gistpoint.sandbox.limits import RunLimits


def test_the_backends_that_must_be_here_work():
    """A machine can't pass without the backends that `GISTPOINT_REQUIRE_BACKENDS` names."""
    made = builtin_backends()
    for name in filter(None, os.environ.get("GISTPOINT_REQUIRE_BACKENDS", "").split(",")):
        probe = made[name]().probe()
        assert probe.works, f"{name}: {probe.why_not}. {probe.fix}"


def test_a_record_says_what_was_promised(backend):
    record = backend.record(RunLimits(processes=7))
    assert record.name == backend.name
    assert record.isolated == (backend.name != "plain")
    assert record.limits["processes"] == 7
    assert record.version


def test_without_isolation_an_interpreter_that_is_gone_ends_the_run_alone(tmp_path):
    command = probe_command(tmp_path, b"")
    environment = replace(command.environment, interpreter=tmp_path / "gone")
    (environment.folder / "bin" / "python").unlink()
    ended = PlainBackend().run(replace(command, environment=environment), on_line=print)
    assert (ended.stop, ended.exit_code) == (Stop.EXITED, 1)
    assert "environment/bin/python" in ended.output
