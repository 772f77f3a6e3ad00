"""Compares gistpoint's runner with mini-swe-agent's batch mode and with Inspect, at one scripted endpoint.

Usage: PYTHONPATH=tests python tests/studies/runners_beside.py --mini PYTHON --inspect PYTHON
           [--attempts 20] [--turns 8] [--delay 0.5] [--at-once 8] [--rounds 3]

Each PYTHON is a separate environment: one with mini-swe-agent and datasets, one with inspect-ai and openai.
The endpoint answers each request after DELAY seconds: with calls that read files, and at the end with words
that end the runner's attempt, so that each attempt has TURNS requests. No test runs, because only the runners
are compared. The rounds are interleaved. Prints the wall time, the requests, the concurrent requests and the
processor time of each run, then the medians of paired ratios, and the processor time of one more turn. Last
tried with mini-swe-agent 2.4.6 and inspect-ai 0.3.285.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from scripted_endpoint import Answer, completion, endpoint

END = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
LAST_WORDS = 3
"""The replies without a call after which gistpoint's attempt ends."""
INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import basic_agent
from inspect_ai.tool import bash

@task
def looking():
    samples = [Sample(input="Look at the files.", target="done", id=number) for number in range({attempts})]
    solver = basic_agent(tools=[bash(timeout=60)], max_attempts=1)
    return Task(dataset=samples, solver=solver, scorer=includes(), sandbox="local")
"""


@dataclass
class Script:
    """A scripted model that waits, counts, and replies according to the request's tools and history."""

    turns: int
    delay: float
    requests: int = 0
    at_work: int = 0
    most_at_work: int = 0
    first_at: float = 0.0
    last_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
        with self.lock:
            self.requests += 1
            self.at_work += 1
            self.most_at_work = max(self.most_at_work, self.at_work)
        time.sleep(self.delay)
        with self.lock:
            self.at_work -= 1
            self.first_at = self.first_at or time.monotonic() - self.delay
            self.last_at = time.monotonic()
        tools = {tool["function"]["name"]: tool["function"] for tool in request.get("tools", ())}
        turn = 1 + sum(message["role"] == "assistant" for message in request["messages"])
        if "bash" not in tools:
            looks = turn <= self.turns - LAST_WORDS
            return completion("I look.", ("list_directory", {})) if looks else completion("Done.")
        (name,) = list(tools["bash"]["parameters"]["properties"])[:1]
        if turn < self.turns:
            return completion("I look.", ("bash", {name: "ls"}))
        if "submit" in tools:
            return completion("Done.", ("submit", {"answer": "done"}))
        return completion("Done.", ("bash", {name: END}))


@dataclass(frozen=True)
class Measured:
    """One run of a runner."""

    wall_s: float
    processor_s: float
    requests: int
    most_at_work: int
    span_s: float
    """From the first request to the last reply, as the endpoint sees it: without the runner's start."""


def measured(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a command, and return its wall time and its processor time, with that of its children."""
    began = time.monotonic()
    with (folder / "output.txt").open("ab") as log:
        process = subprocess.Popen(
            [*words], cwd=folder, env={**os.environ, **environment}, stdout=log, stderr=log,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        _, _, used = os.wait4(process.pid, 0)
    return time.monotonic() - began, used.ru_utime + used.ru_stime


def ours(folder: Path, url: str, attempts: int, at_once: int) -> tuple[float, float]:
    words = [sys.executable, "-m", "gistpoint", "agent", "run", "--demo", "dear-tickets", "--model", "m"]
    words += ["--name", f"r{time.monotonic_ns()}", "--repeats", str(attempts), "--at-once", str(at_once)]
    known = {"GISTPOINT_HOME": str(folder / "home"), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "scripted"}
    return measured([*words, "--json"], folder, known)


def mini(python: str, folder: Path, url: str, attempts: int, at_once: int) -> tuple[float, float]:
    dataset = folder / "dataset"
    dataset.mkdir(exist_ok=True)
    rows = [{"instance_id": f"look-{number}", "problem_statement": "Look."} for number in range(attempts)]
    (dataset / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = folder / "settings.yaml"
    settings.write_text(
        json.dumps(
            {
                "environment": {"cwd": str(dataset)},
                "model": {
                    "cost_tracking": "ignore_errors",
                    "model_kwargs": {"api_base": url, "api_key": "scripted"},
                },
            }
        )
    )
    words = [
        python,
        "-m",
        "minisweagent.run.benchmarks.swebench",
        "--subset",
        str(dataset),
        "--split",
        "test",
    ]
    words += ["-o", str(folder / f"mini-{time.monotonic_ns()}"), "-w", str(at_once), "-m", "openai/m"]
    words += ["-c", "swebench.yaml", "-c", str(settings), "--environment-class", "local"]
    known = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "MSWEA_GLOBAL_CONFIG_DIR": str(folder / "mini-home"),
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_OFFLINE": "1",
    }
    return measured(words, folder, known)


def inspect(python: str, folder: Path, url: str, attempts: int, at_once: int) -> tuple[float, float]:
    (folder / "looking.py").write_text(INSPECT_TASK.format(attempts=attempts))
    words = [python, "-m", "inspect_ai", "eval", "looking.py", "--model", "openai-api/scripted/m"]
    words += ["--max-connections", str(at_once), "--max-samples", str(at_once), "--display", "none"]
    words += ["--max-sandboxes", str(at_once), "--max-subprocesses", str(at_once)]
    known = {"SCRIPTED_BASE_URL": url, "SCRIPTED_API_KEY": "scripted", "HOME": str(folder)}
    return measured([*words, "--log-dir", str(folder / "logs")], folder, known)


Runner = Callable[[Path, str, int, int], tuple[float, float]]


def run(runner: Runner, folder: Path, options: argparse.Namespace, attempts: int, at_once: int) -> Measured:
    """Carry out one run against a separate endpoint."""
    script = Script(options.turns, options.delay)
    with endpoint(script) as served:
        wall_s, processor_s = runner(folder, served.url, attempts, at_once)
    return Measured(
        wall_s, processor_s, script.requests, script.most_at_work, script.last_at - script.first_at
    )


def main() -> int:
    """Run the rounds, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mini", default="")
    parser.add_argument("--inspect", default="")
    parser.add_argument("--attempts", type=int, default=20)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    most = options.at_once
    kinds: dict[str, tuple[Runner, int, int]] = {"gistpoint": (ours, options.attempts, most)}
    if options.mini:
        kinds["mini-swe-agent"] = (lambda *given: mini(options.mini, *given), options.attempts, most)
    if options.inspect:
        kinds["inspect"] = (lambda *given: inspect(options.inspect, *given), options.attempts, most)
    kinds["one at a time"] = (ours, options.attempts, 1)
    kinds["a quarter"] = (ours, options.attempts // 4, most)
    found: dict[str, list[Measured]] = {name: [] for name in kinds}
    with tempfile.TemporaryDirectory(prefix="runners-") as name:
        folder = Path(name)
        with suppress(KeyboardInterrupt):
            for round in range(options.rounds + 1):
                for kind in [*kinds][round % len(kinds) :] + [*kinds][: round % len(kinds)]:
                    runner, attempts, at_once = kinds[kind]
                    one = run(runner, folder, options, attempts, at_once)
                    print(f"{round or 'warm'} {kind}: {one}", flush=True)
                    # The first round fills caches and unpacks the demo.
                    found[kind] += [one] if round else []
        if not all(one.requests for values in found.values() for one in values):
            print((folder / "output.txt").read_text("utf-8", "replace")[-3000:])
    for kind, values in found.items():
        pairs = list(zip(values, found["gistpoint"], strict=False))
        walls = [other.wall_s / own.wall_s for other, own in pairs]
        asked = [other.requests / own.requests for other, own in pairs if own.requests]
        used = [other.processor_s / own.processor_s for other, own in pairs]
        spans = [other.span_s / own.span_s for other, own in pairs if own.span_s]
        print(
            f"{kind} / gistpoint: wall {_span(walls)}, first request to last reply {_span(spans)},"
            f" requests {_span(asked)}, processor {_span(used)}"
        )
    more = [
        (all.processor_s - part.processor_s) / (all.requests - part.requests)
        for all, part in zip(found["gistpoint"], found["a quarter"], strict=False)
        if all.requests > part.requests
    ]
    print(f"processor time of one more turn: {_span([1000 * each for each in more])} ms")
    return 0


def _span(values: Sequence[float]) -> str:
    if not values:
        return "not measured"
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    sys.exit(main())
