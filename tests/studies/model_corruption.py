"""A function of a real library corrupted by the loop, the model being a script on loopback: no endpoint is needed.

    python tests/studies/model_corruption.py LAB

The script browses, sends what is refused, hits a rate limit and an error of the server, submits three corruptions of
`toolz.groupby` and stops. Prints what `gistpoint task new` and `gistpoint task check` said, and what was recorded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripted_endpoint import Answer, Step, completion, endpoint

from gistpoint.core.code.index import index_source
from gistpoint.core.tasks.folder import read_answer, read_task
from gistpoint.sandbox.sources import Fetcher

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lab", type=Path)
    lab: Path = parser.parse_args().lab.absolute()
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
    print({key: loop[key] for key in ("end", "kept", "tool_calls", "requests", "retried", "usage", "template_sha256")})
    print(part["subtlety"])
    holding = [path for path in (lab / "home").rglob("*") if path.is_file() and b"sk-of-the-study" in path.read_bytes()]
    print(f"{len(holding)} files hold the key")


if __name__ == "__main__":
    main()
