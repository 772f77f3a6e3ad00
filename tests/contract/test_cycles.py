"""Runs in a row, one of them stopped, leave nothing behind; tests/studies/sandbox_cycles.py does the same at
length.
"""

from __future__ import annotations

from studies.sandbox_cycles import main


def test_runs_in_a_row_leave_nothing(backend, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", None)
    assert main(backend.name, 4) == 0, capsys.readouterr().out
    assert "'finished': 3, 'cancelled': 1" in capsys.readouterr().out
