"""The launcher of the sandbox, started as a plain process, and what it tells."""

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

from gistpoint.core.ports import EnvironmentPins
from gistpoint.sandbox.gistruns.control import write_control
from gistpoint.sandbox.sealing import NOTHING_SECRET, handed_over

Records = list[Mapping[str, Any]]


def launch(cwd: Path, **order: Any) -> tuple[subprocess.CompletedProcess[str], Records]:
    """Run the launcher in `cwd`; return how its process ended, and its records in their order."""
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
        told: list[bytes] = []

        def read() -> None:
            with os.fdopen(reading, "rb") as pipe:
                told.extend(pipe)

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
    return done, [json.loads(line) for line in told]


def events(records: Records) -> list[tuple[str, str]]:
    """What the guards told: kind and name."""
    return [(record["what"], record["name"]) for record in records if record.get("kind") == "event"]


def whole(records: Records, kind: str) -> Any:
    """A value that was told in parts; None where it was not."""
    text = "".join(record["part"] for record in records if record.get("kind") == kind)
    return json.loads(text) if text else None
