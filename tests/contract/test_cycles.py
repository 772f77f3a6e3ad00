"""Consecutive runs, one of them stopped, leave nothing behind; sandbox_cycles.py does many of them."""

from __future__ import annotations

from studies.sandbox_cycles import main


def test_runs_in_a_row_leave_nothing(backend, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", None)
    assert main(backend.name, 4) == 0, capsys.readouterr().out
    assert "'finished': 3, 'cancelled': 1" in capsys.readouterr().out
