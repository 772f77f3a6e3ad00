"""Lets models that are scripted on loopback corrupt functions of a real library; no endpoint is needed.

    python tests/studies/model_corruption.py LAB [--campaign COUNT [--source SOURCE --pytest-args ARGS]
[--kinds …]]

With `--campaign`, `gistpoint task generate` asks scripted models: one makes one small edit after another,
alone and in groups; others repeat the same text, only talk, break too much, refuse or are slow. Prints the
result of each, the requests that reached the endpoint, and the seconds. Otherwise the script browses, sends
refused calls, gets a rate limit and a server error, submits corruptions of `toolz.groupby` and stops; then
prints the output of `gistpoint task new` and `gistpoint task check`, and the records.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripted_endpoint import Answer, Step, completion, endpoint

from gistpoint.core.code.index import index_source
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.sandbox.environments.sources import Fetcher

SOURCE, PATH, FUNCTION = "toolz==1.2.0", "toolz/itertoolz.py", "groupby"
CHANGES = (
    ("for k, v in d.items():", "for k, v in d.items():  # here"),
    ("for k, v in d.items():", "for k, v in list(d.items())[1:]:"),
    ("if not callable(key):", "if not callable(key) and not isinstance(key, list):"),
    (
        "    for item in seq:\n        d[key(item)](item)",
        "    for item in seq:\n        d[key(item)](item if d else seq)",
    ),
)


EDITS = (
    (" is None", " is not None"), (" not in ", " in "), (" < ", " <= "), (" > ", " >= "), (" == ", " != "),
    (" + 1", " + 2"), (" - 1", " - 2"), ("[1:]", "[2:]"), (" and ", " or "), (" or ", " and "), (" += ", " = "),
    ("if not ", "if "), ("if ", "if not "), ("True", "False"), ("False", "True"), (", 0", ", 1"), (" 0", " 1"),
)  # fmt: skip


def careless(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    """Reply like a model that submits up to three small edits one after another, and then stops."""
    messages = request["messages"]
    code = messages[0]["content"].partition("Function to corrupt:\n")[2].partition("\n\nTo help guide you")[0]
    head, quotes, rest = code.rpartition('"""')
    edited = [head + quotes + rest.replace(old, new, 1) for old, new in EDITS if old in rest]
    said = sum(message["role"] == "assistant" for message in messages)
    if said >= min(3, len(edited)):
        return completion("That is all.")
    return completion(None, ("submit_attempt", {"func_code": edited[said]}))


def code_in(request: dict[str, Any]) -> str:
    text: str = request["messages"][0]["content"]
    return text.partition("Function to corrupt:\n")[2].partition("\n\nTo help guide you")[0]


def repeating(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    """Reply like a model that always submits the same code, with a comment that reveals the change."""
    return completion(None, ("submit_attempt", {"func_code": f"{code_in(request)}  # changed"}))


def talking(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    return completion("I would change the boundary of the loop.")


def refusing(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    return completion(None, refusal="I can't help with that.")


def loud(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    """Reply like a model that makes the function return None at once, and then stops."""
    if any(message["role"] == "assistant" for message in request["messages"]):
        return completion("That is all.")
    code = code_in(request)
    node = read_snippet(code).node
    lines = code.split("\n")
    first = node.body[0].lineno - 1
    emptied = [*lines[:first], f"{' ' * node.body[0].col_offset}return None", *lines[first:]]
    return completion(None, ("submit_attempt", {"func_code": "\n".join(emptied)}))


LATE = Event()


def slow(request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
    return Answer("", wait=LATE)


KINDS: dict[str, tuple[Step, str]] = {
    "good": (careless, "discovery"), "multi": (careless, "multi"), "repeating": (repeating, "discovery"),
    "talking": (talking, "discovery"), "refusing": (refusing, "discovery"), "loud": (loud, "discovery"),
    "slow": (slow, "discovery"),
}  # fmt: skip


def campaign(lab: Path, options: argparse.Namespace) -> None:
    for kind in options.kinds:
        step, mode = KINDS[kind]
        with endpoint(step) as served:
            environment = {
                **os.environ,
                "GISTPOINT_HOME": str(lab / "home"),
                "OPENAI_BASE_URL": served.url,
                "OPENAI_API_KEY": "sk-of-the-study-0123456789",
            }
            config = lab / "home" / "config" / "config.toml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text("[llm]\ntimeout_s = 2\n" if kind == "slow" else "")
            command = [sys.executable, "-m", "gistpoint", "task", "generate", options.source]
            command += [
                "--pytest-args",
                options.pytest_args,
                "--mode",
                mode,
                "--model",
                kind,
                "--workers",
                "2",
            ]
            command += ["--count", str(options.campaign), "--min-failing", "2", "--json"]
            started = time.monotonic()
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            seconds = time.monotonic() - started
            print(f"== {kind}: exit code {done.returncode}, {seconds:.0f} s, {len(served.requests)} requests")
            document = json.loads(done.stdout or "{}")
            for source in document.get("sources", []):
                print({key: source[key] for key in ("tried", "kept", "dropped", "corruptions", "stopped")})
            print(document.get("spent"), done.stderr.splitlines()[-1:], flush=True)
    LATE.set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lab", type=Path)
    parser.add_argument("--campaign", type=int, default=0, metavar="COUNT")
    parser.add_argument("--source", default=SOURCE)
    parser.add_argument("--pytest-args", default="toolz")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    lab: Path = options.lab.absolute()
    lab.mkdir(parents=True, exist_ok=True)
    if options.campaign:
        campaign(lab, options)
    else:
        one_task(lab)


def one_task(lab: Path) -> None:
    folder = next((lab / "toolz" / "source").glob("*"), None) or Fetcher().fetch(SOURCE, lab / "toolz")[1]
    original = index_source(PATH, (folder / PATH).read_bytes()).get(FUNCTION).dedented
    steps: list[Step] = [
        Answer("slow down", 429, {"Retry-After": "1"}),
        completion(None, ("search_code", {"pattern": "groupby\\("}), ("list_directory", {"path": "toolz"})),
        completion(None, ("submit_attempt", "{broken")),
        Answer("", 503),
    ]
    for old, new in CHANGES:
        assert original.count(old) == 1, old
        steps.append(completion(None, ("submit_attempt", {"func_code": original.replace(old, new)})))
    with endpoint(*steps, completion("These are my submissions.")) as served:
        environment = {
            **os.environ,
            "GISTPOINT_HOME": str(lab / "home"),
            "OPENAI_BASE_URL": served.url,
            "OPENAI_API_KEY": "sk-of-the-study-0123456789",
        }
        command = [sys.executable, "-m", "gistpoint", "task"]
        function = ["--mode", "discovery", "--function", f"{PATH}::{FUNCTION}", "--model", "scripted"]
        new = [*command, "new", SOURCE, "--pytest-args", "toolz", "--min-failing", "2", *function]
        started = time.monotonic()
        done = subprocess.run(new, env=environment, capture_output=True, text=True, check=False)
        print(f"{done.stderr}{done.stdout}exit code {done.returncode}, {time.monotonic() - started:.0f} s")
        print(f"{len(served.requests)} requests reached the endpoint")
    identity = done.stdout.splitlines()[-1]
    checked = subprocess.run(
        [*command, "check", identity], env=environment, capture_output=True, text=True, check=False
    )
    print(f"{checked.stderr}{checked.stdout}exit code {checked.returncode}")
    answer = read_answer(read_task(lab / "home" / "data" / "tasks" / identity))
    (part,) = answer.provenance["parts"]
    loop = part["record"]["loop"]
    for item in loop["rounds"]:
        print({key: value for key, value in item.items() if key != "code"})
    print(
        {
            key: loop[key]
            for key in ("end", "kept", "tool_calls", "requests", "retried", "usage", "template_sha256")
        }
    )
    print(part["subtlety"])
    holding = [
        path
        for path in (lab / "home").rglob("*")
        if path.is_file() and b"sk-of-the-study" in path.read_bytes()
    ]
    print(f"{len(holding)} files hold the key")


if __name__ == "__main__":
    main()
