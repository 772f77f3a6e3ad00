"""Exports tasks to Harbor, as a folder for each task in Harbor's schema 1.4, and to Inspect.

The verifier runs in a new container that can reach at most the tool server, on the repository as the agent
left it. Harbor counts neither tool calls nor submissions.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.model import CANARY
from gistpoint.sessions.exports.tasks.exported import (
    GIST_FOLDER,
    NOTE,
    REPOSITORY,
    VERDICT_TOKEN,
    ExportedTask,
    TaskExportSettings,
)

SCHEMA = "1.4"
_AGENT_S = 3600.0
_OWN_PYTHON = "3.11"
_SHELL_IMAGE = "debian:bookworm-slim"
"""The image for gists whose solver must not run code; it has no Python."""


def harbor_files(tasks: Sequence[ExportedTask], settings: TaskExportSettings) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file; the files of a task are in a folder with its name."""
    for one in tasks:
        for path, data in _files(one, settings):
            yield f"{one.name}/{path}", data.encode("utf-8") if isinstance(data, str) else data


def _files(one: ExportedTask, settings: TaskExportSettings) -> Iterator[tuple[str, str | bytes]]:
    yield "instruction.md", f"{one.brief()}\n<!-- {CANARY} -->\n"
    yield "task.toml", _config_text(one, settings)
    yield "environment/tree.tar", one.tree()
    if one.forbids_execution:
        yield "environment/Dockerfile", _reading_dockerfile()
        yield "tests/Dockerfile", dockerfile(one, settings, "COPY . /tests/\n")
        yield "tests/requirements.txt", requirements(one)
    else:
        yield "environment/Dockerfile", dockerfile(one, settings)
        yield "environment/requirements.txt", requirements(one)
    yield "tests/test.sh", verifying_script(one, settings.verdict_url)
    yield "tests/verify.pyz", one.verifier
    yield "tests/expected.json", one.expected
    yield "tests/tree.tar", one.tree()
    if settings.with_solution and (found := one.solution_files()):
        place = GIST_FOLDER if one.gist_path else REPOSITORY
        yield "solution/solve.sh", f"#!/bin/sh\n{NOTE}set -eu\ncp -R /solution/files/. {place}/\n"
        for path, text in found.items():
            yield f"solution/files/{path}", text


def dockerfile(one: ExportedTask, settings: TaskExportSettings, after: str = "") -> str:
    """Return the Dockerfile of a task's environment: Python, the locked packages, and the repository.

    `after` is appended to the file. The lock is deleted from the image, because a solver could use it to
    compute the task ids of each function's corruptions and find the correct one.
    """
    pins = one.task.environment
    base = settings.base or f"python:{pins.python or _OWN_PYTHON}-slim-bookworm"
    locked = "--no-deps --require-hashes " if pins.lock else ""
    roots = ":".join(REPOSITORY if root == "." else f"{REPOSITORY}/{root}" for root in pins.import_roots)
    steps = "".join(f"RUN {json.dumps(['sh', '-c', step])}\n" for step in pins.build_steps)
    gist = f"RUN mkdir -p {GIST_FOLDER}\n" if one.gist_path else ""
    path = "" if one.gist_path else f"ENV PYTHONPATH={_quoted(roots)}\n"
    return (
        f"{NOTE}ARG BASE={base}\nFROM ${{BASE}}\n"
        "COPY requirements.txt /opt/gistpoint/requirements.txt\n"
        f"RUN pip install --no-cache-dir {locked}-r /opt/gistpoint/requirements.txt"
        " && rm -r /opt/gistpoint\n"
        f"ADD tree.tar {REPOSITORY}\nWORKDIR {REPOSITORY}\n"
        f"ENV PYTHONDONTWRITEBYTECODE=1\n{path}{steps}{gist}{after}"
    )


def _quoted(value: str) -> str:
    """Return the quoted value of a variable for a Dockerfile; it must be a single line."""
    return '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'


def requirements(one: ExportedTask) -> str:
    """Return the locked packages of a task in pip's form, or the requirement of pytest if there are none."""
    lock = one.task.environment.lock or tuple(one.pytest.split())
    return NOTE + "".join(f"{line}\n" for line in lock)


def verifying_script(one: ExportedTask, served: str = "") -> str:
    """Return the script that judges a solver's work; without a verdict, it writes no reward.

    `served` is the address at which the tool server gives its verdict; empty if there is no server.
    """
    place = one.gist_path or REPOSITORY
    gone = f"rm -rf {REPOSITORY}\n" if one.gist_path else ""
    given = "--expected /tests/expected.json --tree /tests/tree.tar --reward /logs/verifier/reward.json"
    if served:
        given += f" --served {shlex.quote(served)}"
    return f"#!/bin/sh\n{NOTE}set -eu\ncd /\n{gone}exec python3 -I /tests/verify.pyz {place} {given}\n"


def _reading_dockerfile() -> str:
    return (
        f"{NOTE}FROM {_SHELL_IMAGE}\nADD tree.tar {REPOSITORY}\nRUN mkdir -p {GIST_FOLDER}\nWORKDIR"
        f" {REPOSITORY}\n"
    )


def _config_text(one: ExportedTask, settings: TaskExportSettings) -> str:
    import tomli_w

    return NOTE + tomli_w.dumps(_config(one, settings))


def _config(one: ExportedTask, settings: TaskExportSettings) -> dict[str, Any]:
    task, hosts = one.task, list(settings.agent_hosts)
    if settings.mcp_url and (host := urlsplit(settings.mcp_url).hostname):
        hosts = list(dict.fromkeys([*hosts, host]))
    agent: dict[str, Any] = {"timeout_sec": float(task.budgets.time_limit_s or _AGENT_S)}
    if hosts:
        agent |= {"network_mode": "allowlist", "allowed_hosts": hosts}
    artifact = GIST_FOLDER if one.gist_path else REPOSITORY
    config: dict[str, Any] = {
        "schema_version": SCHEMA,
        "artifacts": [{"source": artifact, "exclude": [".git", "__pycache__"]}],
        "task": {
            "name": f"gistpoint/{task.short_id}",
            "description": f"A task of gistpoint, mode {task.mode}.",
        },
        "metadata": {"canary": CANARY, "gistpoint": _metadata(one)},
        "agent": agent,
        "verifier": {"timeout_sec": _verifier_s(one), "environment_mode": "separate"},
        "environment": {"build_timeout_sec": 1200.0, "network_mode": "no-network", "workdir": REPOSITORY},
    }
    if settings.mcp_url:
        # The verifier asks the server for the verdict on work done with its tools (decision 157).
        host = urlsplit(settings.mcp_url).hostname
        config["verifier"] |= {"network_mode": "allowlist", "allowed_hosts": [host]}
        config["verifier"]["env"] = {VERDICT_TOKEN: f"${{{VERDICT_TOKEN}}}"}
        server = {
            "name": "gistpoint",
            "transport": "streamable-http",
            "url": settings.mcp_url,
            "headers": {"Authorization": "Bearer ${GISTPOINT_TOKEN}"},
        }
        config["environment"]["mcp_servers"] = [server]
    return config


def _verifier_s(one: ExportedTask) -> float:
    """Return a time limit in seconds above the verifier's own limits.

    The verifier's limits are three times the task's, or six times for a gist.
    """
    limit = float(json.loads(one.expected)["timeout_s"])
    return round(limit * (6 if one.gist_path else 3) + 120.0, 1)


def _metadata(one: ExportedTask) -> Mapping[str, Any]:
    task = one.task
    enforced = {"execution_enforced": one.forbids_execution} if one.gist_path else {}
    return {
        "id": task.id,
        "mode": str(task.mode),
        "tool_uses": task.budgets.tool_uses,
        "submissions": task.budgets.submissions,
        "budgets_enforced": False,
        **enforced,
    }


# Tasks for Inspect: one `task.py` for all tasks, and a folder for each


def inspect_files(tasks: Sequence[ExportedTask], settings: TaskExportSettings) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file: the program, its samples, and a folder for each task."""
    program = (
        files("gistpoint.sessions.exports.tasks")
        .joinpath("templates", "inspect_task.py.txt")
        .read_text("utf-8")
    )
    yield "task.py", program.replace("{{canary}}", CANARY).encode()
    rows = (json.dumps(_sample(one)) for one in tasks)
    yield "samples.jsonl", "".join(f"{row}\n" for row in rows).encode()
    for one in tasks:
        yield f"{one.name}/environment/Dockerfile", dockerfile(one, settings).encode()
        yield f"{one.name}/environment/requirements.txt", requirements(one).encode()
        yield f"{one.name}/environment/tree.tar", one.tree()
        yield f"{one.name}/tests/test.sh", verifying_script(one).encode()
        yield f"{one.name}/tests/verify.pyz", one.verifier
        yield f"{one.name}/tests/expected.json", one.expected.encode()
        yield f"{one.name}/tests/tree.tar", one.tree()
        if settings.with_solution:
            for path, data in one.solution_files().items():
                yield f"{one.name}/solution/files/{path}", data


def _sample(one: ExportedTask) -> dict[str, Any]:
    task = one.task
    gist = {"execution_enforced": False} if one.gist_path else {}
    return {
        "name": one.name,
        "id": task.id,
        "brief": one.brief(),
        "own_brief": render_brief(task),
        "place": one.gist_path or REPOSITORY,
        "gist": bool(one.gist_path),
        "budgets": {
            "tool_uses": task.budgets.tool_uses,
            "submissions": task.budgets.submissions,
            "enforced": False,
        },
        "canary": CANARY,
        **gist,
    }
