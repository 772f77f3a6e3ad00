"""Makes many simultaneous attempts against an endpoint that sometimes fails, and checks that all are solved.

Usage: PYTHONPATH=src:tests python tests/studies/agent_crowd.py [ATTEMPTS [AT_ONCE [SANDBOX]]] (default: 100,
8, the strongest isolation). 5% of the requests are answered with 429 and 2% with 500, each reply after 0.2
s. Then the same is done one attempt after the other. Prints both wall times, their ratio, and the maximum
memory of the process until the first run ended. Exit code 1 if an attempt of either run did not end, or was
not solved as an undisturbed one is.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_killing import scripted
from scripted_endpoint import Answer, endpoint

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.requests import IsolationChoice
from gistpoint.object_graph import build_services, endpoint_solver
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sessions.agentruns.beginning import agent_ports
from gistpoint.sessions.agentruns.figures import FiguresOfRun, figures_of
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.store import AgentRunStore, RunSettings, job_of

LIMITED, FAILED = 0.05, 0.02
LATENCY_S = 0.2


def crowded(tasks: list[Path], seed: int) -> tuple[Any, Counter[int]]:
    """Return an endpoint's step that replies by script or fails at random, and the counts of its statuses."""
    chance, lock, statuses, step = random.Random(seed), threading.Lock(), Counter[int](), scripted(tasks)

    def answer(request: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
        with lock:
            drawn = chance.random()
            status = 429 if drawn < LIMITED else 500 if drawn < LIMITED + FAILED else 200
            statuses[status] += 1
        time.sleep(LATENCY_S)
        if status == 429:
            return Answer({"error": {"message": "slow down"}}, 429, {"Retry-After": "1"})
        if status == 500:
            return Answer({"error": {"message": "out of order"}}, 500)
        return step(request, headers)

    return answer, statuses


def carried_out(
    options: IsolationChoice, name: str, repeats: int, at_once: int
) -> tuple[FiguresOfRun, float]:
    """Execute one run; return its figures and its seconds."""
    services = build_services(options)
    tasks = [demo_task(mode, services.locations.demo) for mode in ("remove", "discovery")]
    step, statuses = crowded([task.folder for task in tasks], seed=at_once)
    with endpoint(step) as served:
        solver = endpoint_solver(EndpointSettings("scripted", served.url, ApiKey("")))
        settings = RunSettings(model="scripted", host=solver.host, agent=AgentSettings())
        run = AgentRunStore(services.locations.runs).open_or_create(
            name, settings, services.clock.utc_ms(), "crowd"
        )
        jobs = [job_of(task.id, settings, repeat) for task in tasks for repeat in range(1, repeats + 1)]
        run.add(jobs, services.clock.utc_ms())
        ports = agent_ports(services, solver, settings, tests_at_once=os.cpu_count() or 1)
        began = time.monotonic()
        AgentRunner(run, ports, at_once=at_once).work()
        seconds = time.monotonic() - began
    print(f"{name}: {seconds:.1f} s, requests by status {dict(statuses)}", flush=True)
    return figures_of(run, services.attempts), seconds


def main() -> int:
    attempts = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    at_once = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    sandbox = sys.argv[3] if len(sys.argv) > 3 else None
    options = IsolationChoice(sandbox=sandbox, allow_unsandboxed=sandbox == "plain")
    with tempfile.TemporaryDirectory(prefix="gistpoint-agent-crowd-") as home:
        os.environ["GISTPOINT_HOME"] = home
        found, crowd_s = carried_out(options, f"{at_once}-at-once", attempts // 2, at_once)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        alone, alone_s = carried_out(options, "one-at-a-time", attempts // 2, 1)
    totals = found.totals
    for each in (totals, alone.totals):
        print(f"{each.ended} of {each.jobs} ended: {each.reasons}; {each.retried} requests sent again")
    print(f"{totals.endpoint_wait_s:.1f} s waiting for the endpoint, in pauses; peak memory {peak:.0f} MiB")
    print(
        f"wall: {crowd_s:.1f} s against {alone_s:.1f} s one at a time, {alone_s / crowd_s:.2f} times as fast"
    )
    return int(any(each.left > 0 or set(each.reasons) != {"solved"} for each in (totals, alone.totals)))


if __name__ == "__main__":
    sys.exit(main())
