"""A cluster whose connections are all encrypted: client, scheduler and workers need certificates."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_task
from certificates import Authority
from dask_cluster import scheduler

from gistpoint.core.errors import InfrastructureError
from gistpoint.core.locations import Locations
from gistpoint.sandbox.cluster import connected
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.store import AgentRunStore
from gistpoint.tui.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]
PREFIX = "DASK_DISTRIBUTED__COMM__TLS__"


def environment(authority: Authority, name: str) -> dict[str, str]:
    """Return the configuration of Dask with a new certificate, as the guide sets it."""
    certificate, key = authority.sign(name, "IP:127.0.0.1")
    found = {f"{PREFIX}CA_FILE": str(authority.certificate)}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        found |= {f"{PREFIX}{role}__CERT": str(certificate), f"{PREFIX}{role}__KEY": str(key)}
    return found


def use(settings: dict[str, str]) -> None:
    """Let Dask in this process read these settings instead of its former ones."""
    import dask.config

    dask.config.refresh(paths=[], env=settings)


def test_work_travels_encrypted_and_only_to_who_has_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    task = build_task(Locations.of_user().tasks)
    authority, stranger = Authority(tmp_path / "keys"), Authority(tmp_path / "other")
    own = environment(authority, "node")
    use(own)
    try:
        with scheduler(tmp_path / "cluster", own) as machines:
            assert machines.address.startswith("tls://")
            machines.add(home=tmp_path / "worker")
            words = ["agent", "run", task.id, "--model", "builtin:searcher", "--name", "r", "--repeats", "2"]
            assert main([*words, "--cluster", machines.address, "--allow-unsandboxed"]) == 0
            states = AgentRunStore(Locations.of_user().runs).open("r").jobs.values()
            assert [state.status for state in states] == [JobStatus.ENDED] * 2
            assert all(state.worker.startswith("tls://") for state in states)
            assert "neither encrypted" not in capsys.readouterr().err

            use({})
            with (
                pytest.raises(InfrastructureError, match="admits only clients with a certificate"),
                connected(machines.address),
            ):
                pass
            monkeypatch.setattr("gistpoint.sandbox.cluster._CONNECT_S", 3)
            use(environment(stranger, "stranger"))
            with (
                pytest.raises(InfrastructureError, match="There is no Dask scheduler"),
                connected(machines.address),
            ):
                pass
            use({})
            with (
                pytest.raises(InfrastructureError, match="There is no Dask scheduler"),
                connected(machines.address.replace("tls://", "tcp://")),
            ):
                pass
    finally:
        import dask.config

        dask.config.refresh()
