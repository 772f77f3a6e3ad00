"""Makes the same 60 calls through OpenAI's, Anthropic's and Gemini's APIs, and compares the answers.

    PYTHONPATH=src:tests python tests/studies/api_parity.py

Each API gets a run of the real program, with the real sandbox, against a scripted server. The answers in the
journals, the budgets that remain after each, the end, and the answers sent to each server are compared byte
for byte.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp_parity import Call, answers, calls_of
from native_endpoints import replied
from scripted_endpoint import Answer, Endpoint, endpoint

from gistpoint.core.chat import CHAT_APIS, ChatApi
from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer

MALFORMED: list[Call] = [
    ("grep", {"pattern": "x"}), ("read_file", {}), ("read_file", {"path": "README.md"}), ("nothing", {}),
    ("read_file", {"file_path": None}), ("read_file", {"file_path": ["README.md"]}), ("list_directory", {"x": 1}),
    ("read_file", {"file_path": {"a": [1, 2.5, True]}}), ("search_code", {"pattern": 3}), ("submit", {}),
]  # fmt: skip
PLACES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
}


def script(api: ChatApi, calls: Sequence[Call]) -> list[Answer]:
    """Return replies with one to three calls each."""
    found, left = [], list(calls)
    while left:
        count = 1 + len(found) % 3
        found.append(replied(api, len(found), "" if len(found) % 4 else "Next.", *left[:count]))
        left = left[count:]
    return found


def run(api: ChatApi, task: str, home: Path, url: str) -> str:
    """Let the program make the attempt, and return its output."""
    address, key = PLACES[api]
    place = url if api == "openai" else url.removesuffix("/v1")
    environment = {**os.environ, "GISTPOINT_HOME": str(home), address: place, key: "sk-of-a-study-0123"}
    words = [
        sys.executable,
        "-m",
        "gistpoint",
        "agent",
        "run",
        "--demo",
        task,
        "--api",
        api,
        "--model",
        "scripted",
    ]
    done = subprocess.run(
        [*words, "--budgets", "80/4", "--name", api, "--role", "qa"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not any("sk-of-a-study" in path.read_text("utf-8", "replace") for path in home.rglob("*.*l"))
    return done.stdout


def read_by(api: ChatApi, served: Endpoint) -> list[str]:
    """Return the answers to calls in the last request, which repeats all earlier ones."""
    request: Mapping[str, Any] = served.requests[-1]
    if api == "openai":
        return [row["content"] for row in request["messages"] if row["role"] == "tool"]
    if api == "anthropic":
        blocks = [block for row in request["messages"] for block in row["content"]]
        return [block.get("content", "") for block in blocks if block["type"] == "tool_result"]
    parts = [part for row in request["contents"] for part in row["parts"]]
    return [part["functionResponse"]["response"]["output"] for part in parts if "functionResponse" in part]


def main() -> int:
    """Make the calls through each API and compare them; return 1 if a comparison fails."""
    with tempfile.TemporaryDirectory(prefix="api-parity-") as folder:
        task = demo_task("dear-tickets", Path(folder) / "demo")
        (target,) = read_answer(task).targets
        calls = calls_of(target.path, target.qualname, target.original)
        calls = [*calls[:20], *MALFORMED, *calls[20:]]
        made, read = {}, {}
        for api in CHAT_APIS:
            home = Path(folder) / api
            with endpoint(*script(api, calls)) as served:
                printed = run(api, "dear-tickets", home, served.url)
            made[api], read[api] = answers(home), read_by(api, served)
            model = next(line.strip() for line in printed.splitlines() if line.startswith("model"))
            print(
                f"{api}: {len(made[api]) - 1} answers, {made[api][-1][0]}; {len(served.requests)} requests; {model}"
            )
    alike = all(made[api] == made["openai"] and read[api] == read["openai"] for api in CHAT_APIS)
    print("byte for byte the same" if alike else "THEY DIFFER")
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
