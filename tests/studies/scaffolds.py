"""Lets other programs' agents attempt a task of the demo, against scripted endpoints.

    npm install @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai
    uv run python tests/studies/scaffolds.py NODE_MODULES/.bin [mini-swe-agent|claude-code|...]

The agents run in `agent run --scaffold`. The script makes two calls at once, errs once, and submits the
correct code. For each agent, it prints the row of `agent show`, the tools that were offered and called, the
facts that `gistpoint runs` reads in the log, and whether the key is in any file of the home. Rates are not
measured. Last tried with mini-swe-agent 2.4.6, Claude Code 2.1.197, Codex 0.171.0, Gemini CLI 0.61.0 and
opencode 1.18.33.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mcp_clients import Vendor, script_of, serving
from scripted_endpoint import completion, endpoint

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.tasks.model import Task
from gistpoint.sandbox.scaffolds.known_programs import PROGRAMS
from gistpoint.sandbox.scaffolds.mini import NAME as MINI
from gistpoint.sessions.agentruns.scaffolding import LOGS
from gistpoint.sessions.attempts import AttemptStore

KEY = "sk-secret-of-the-study"


def run(home: Path, bin_folder: str, scaffold: str, url: str) -> str:
    """Run the command in a home, and return its figures as JSON."""
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "GISTPOINT_HOME": str(home),
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": KEY,
    }
    words = ["agent", "run", "--demo", "dear-tickets", "--model", "m-1", "--scaffold", scaffold, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "gistpoint", *words, "--price", "1/2"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return done.stdout


def by_mini(home: Path, task: Task) -> str:
    """Let mini-swe-agent attempt a task, and return the figures."""
    (target,) = read_answer(task).targets
    submission = f"replace_function {target.qualname} {target.path} <<'EOF'\n{target.original}\nEOF"

    def bash(command: str) -> tuple[str, object]:
        return "bash", {"command": command}

    steps = [
        completion("THOUGHT: I look.", bash("list_directory"), bash(f"read_file {target.path}")),
        completion("THOUGHT: I err.", bash("ls -la | head")),
        completion("THOUGHT: I repair it.", bash(submission)),
    ]
    with endpoint(*steps) as host:
        return run(home, "", MINI, host.url.removesuffix("/v1"))


def by_program(home: Path, task: Task, bin_folder: str, scaffold: str) -> tuple[str, Vendor]:
    """Let a program attempt a task; return the figures, and the vendor with the offered tools."""
    vendor = Vendor(script_of(task))
    with serving(vendor) as url:
        return run(home, bin_folder, scaffold, url), vendor


def read_log(home: Path, path: Path) -> str:
    """Return the last line that `gistpoint runs` prints about an agent's own log."""
    done = subprocess.run(
        [sys.executable, "-m", "gistpoint", "runs", str(path)],
        env={**os.environ, "GISTPOINT_HOME": str(home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = (done.stdout or done.stderr).splitlines()
    return lines[-1][-160:] if lines else "nothing"


def report(bin_folder: str, scaffold: str) -> None:
    """Run one agent in a new home, and print its results."""
    with tempfile.TemporaryDirectory(prefix="scaffold-") as folder:
        home = Path(folder)
        locations = Locations(home / "data", home / "config", home / "cache")
        task = demo_task("dear-tickets", locations.demo)
        offered: set[str] = set()
        if scaffold == MINI:
            printed = by_mini(home, task)
        else:
            printed, vendor = by_program(home, task, bin_folder, scaffold)
            offered = vendor.seen
        (row,) = json.loads(printed)["attempts"]
        print(f"{scaffold}: {_chosen(row)}")
        print(f"  offered: {sorted(offered) or 'bash'}")
        (summary,) = AttemptStore(locations.attempts, SystemTime(), "").summaries()
        print(f"  called: {[call.tool for call in summary.state.calls]}")
        for path in sorted((locations.attempts / summary.attempt_id / LOGS).glob("*.json*")):
            print(f"  {path.name}: {read_log(home, path)}")
        leaks = [path for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
        print(f"  files with the key: {leaks}")


def _chosen(row: Mapping[str, object]) -> dict[str, object]:
    names = (
        "framework",
        "client_tools",
        "status",
        "reason",
        "turns",
        "calls",
        "malformed",
        "prompt_tokens",
        "cost_usd",
    )
    return {name: row[name] for name in names if name in row}


def main() -> int:
    """Run the named agents, by default all."""
    for scaffold in sys.argv[2:] or [MINI, *PROGRAMS]:
        report(sys.argv[1], scaffold)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
