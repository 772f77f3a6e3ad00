"""Starts the sandbox's launcher as a plain process and reads its records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gistpoint.sandbox.payload
from gistpoint.core.pins import EnvironmentPins
from gistpoint.sandbox.gistruns.runner import write_control
from gistpoint.sandbox.sealing import NOTHING_SECRET, handed_over

Records = list[Mapping[str, Any]]


def launch(cwd: Path, **order: Any) -> tuple[subprocess.CompletedProcess[str], Records]:
    """Run the launcher in `cwd`; return its completed process and its records in order."""
    with tempfile.TemporaryDirectory() as name:
        control = Path(name) / "control"
        write_control(control, EnvironmentPins())
        reading, writing = os.pipe()
        variables = {
            "GISTPOINT_RESULTS": str(writing),
            "GISTPOINT_ROOT": str(cwd),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        received: list[bytes] = []

        def read() -> None:
            with os.fdopen(reading, "rb") as pipe:
                received.extend(pipe)

        reader = threading.Thread(target=read)
        reader.start()
        text = json.dumps({**order, "plugin": str(control / "results_plugin.py")})
        with handed_over(NOTHING_SECRET.order()) as given:
            done = subprocess.run(
                [sys.executable, str(control / "launcher.py"), text], cwd=cwd, env=variables, pass_fds=(writing,),
                stdin=given if order["argv"][0] == "pytest" else subprocess.DEVNULL, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
        os.close(writing)
        reader.join()
    return done, [json.loads(line) for line in received]


_FORKS = """
import importlib.util, json, os, sys
spec = importlib.util.spec_from_file_location("launcher", sys.argv[1])
launcher = importlib.util.module_from_spec(spec)
spec.loader.exec_module(launcher)
for number, order in enumerate(json.load(sys.stdin)):
    if os.fork():
        os.wait()
        continue
    os.chdir(order["folder"])
    records = os.open("records", os.O_WRONLY | os.O_CREAT)
    os.dup2(os.open("output", os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(1, 2)
    os.environ["GISTPOINT_RESULTS"] = str(records)
    sys.exit(launcher.main(order))
"""


def launch_programs(
    folder: Path, orders: Mapping[str, Mapping[str, Any]], *, python: str
) -> Mapping[str, Records]:
    """Run the launcher for many programs, each in a fork of one process.

    The text in `source` becomes the program `gist.py`. Returns the records of each by its name. Raises an
    `AssertionError` with the traceback if a program fails.
    """
    by_name: dict[str, Records] = {}
    asked = []
    for number, order in enumerate(orders.values()):
        place = folder / str(number)
        place.mkdir()
        gist = place / "gist.py"
        gist.write_text(order["source"])
        paths = {"argv": [str(gist)], "lines": str(gist), "written": [str(place)], "given": [str(gist)]}
        asked.append({**paths, "own": [str(place)], "folder": str(place), **order})
    launcher = Path(gistpoint.sandbox.payload.__file__).with_name("launcher.py")
    command = [python, "-c", _FORKS, str(launcher.resolve())]
    subprocess.run(command, input=json.dumps(asked), text=True, check=True, capture_output=True)
    for number, name in enumerate(orders):
        records = [json.loads(line) for line in (folder / str(number) / "records").read_bytes().splitlines()]
        output = (folder / str(number) / "output").read_text()
        assert records, (name, output)
        assert records[-1] == {"kind": "end", "raised": None}, (name, output)
        by_name[name] = records
    return by_name


def events(records: Records) -> list[tuple[str, str]]:
    """Return the kind and name of each event reported by the guards."""
    return [(record["what"], record["name"]) for record in records if record.get("kind") == "event"]


def whole(records: Records, kind: str) -> Any:
    """Return a value that was reported in parts; None if it was not reported."""
    text = "".join(record["part"] for record in records if record.get("kind") == kind)
    return json.loads(text) if text else None
