"""Makes tasks of real libraries whose build backends report that they ran, and prints a row for each.

Each sdist is unpacked, and setup.py and the build backend get a canary: code that writes to a file in the
home folder and connects to a listener on loopback. If a task is made as usual and the canary reports nothing,
the library was built in isolation.

usage: python tests/studies/builds.py [--python OTHER] [--sandbox NAME]
                                      [LIBRARY|PYTEST ARGS|EXTRAS|FUNCTION]...

`--python` names an interpreter with another gistpoint, to compare with.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gistpoint.sandbox.environments.projects import read_build_system, read_project
from gistpoint.sandbox.environments.sources import Fetcher

LIBRARIES = (
    "toolz==1.2.0|toolz||toolz/itertoolz.py::groupby",
    "boltons==26.2.0|tests||boltons/iterutils.py::remap",
    "itsdangerous==2.2.0|tests|freezegun|src/itsdangerous/encoding.py::base64_encode",
    "schema==0.7.8|test_schema.py|mock|schema/__init__.py::SchemaError.code",
    "tabulate==0.10.0|test|wcwidth|tabulate/__init__.py::simple_separated_format",
    # extension modules in C among the dependencies: markupsafe; pyyaml; regex and simplejson
    "jinja2==3.1.6|tests|trio|src/jinja2/filters.py::do_title",
    "glom==25.12.0|glom --deselect glom/test/test_cli.py::test_main|pyyaml tomli|glom/core.py::Path.from_t",
    "arrow==1.4.0|-o addopts= tests/test_util.py tests/test_factory.py|dateparser pytz pytest-mock simplejson"
    "|arrow/util.py::next_weekday",
    # metadata that a backend computes, like glom's
    "voluptuous==0.15.2|voluptuous/tests||voluptuous/humanize.py::humanize_error",
    "dictdiffer==0.9.0|-o addopts= tests||dictdiffer/utils.py::dot_lookup",
    "cachetools==5.5.0|tests||src/cachetools/keys.py::methodkey",
    "inflection==0.5.1|test_inflection.py||inflection/__init__.py::ordinal",
    # dependencies without wheels: docopt, and one in C
    "num2words==0.5.14|tests|delegator.py|num2words/utils.py::splitbyx",
    "toolz==1.2.0|toolz|python-Levenshtein==0.12.2|toolz/itertoolz.py::frequencies",
)
_CANARY = """
def _report():
    import socket
    try:
        with open({file!r}, "a") as file:
            file.write("{token}\\n")
    except OSError:
        pass
    try:
        socket.create_connection(("127.0.0.1", {port}), 5).close()
    except OSError:
        pass


_report()
"""


@dataclass
class Listener:
    """The file and the port that a canary reports to."""

    file: Path
    port: int
    connections: int = 0

    def code(self) -> str:
        """Return the code of a canary that reports here."""
        return _CANARY.format(file=str(self.file), port=self.port, token=self.file.name)

    def reported(self) -> str:
        """Return a description of the reports since the last call, or ""."""
        lines = len(self.file.read_text().splitlines()) if self.file.exists() else 0
        told = f"{lines} in a file, {self.connections} over the network" if lines or self.connections else ""
        self.file.unlink(missing_ok=True)
        self.connections = 0
        return told


@contextmanager
def listening() -> Iterator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener(Path.home() / f".gistpoint-canary-{os.getpid()}", server.getsockname()[1])

        def serve() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return
                listener.connections += 1

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listener
        finally:
            listener.reported()


def patched(source: str, into: Path, canary: str) -> Path:
    """Unpack the sdist of `source`, put a canary into its setup.py and build backend; return the folder.

    A backend that is part of the sdist itself gets none.
    """
    folder = Fetcher().fetch(source, into)[1]
    system = read_build_system(folder)
    setup = folder / "setup.py"
    if setup.is_file():
        setup.write_text(
            canary + re.sub(r"^from __future__ .*$", "", setup.read_text("utf-8"), flags=re.M), "utf-8"
        )
    pyproject = folder / "pyproject.toml"
    if pyproject.is_file() and not system.path:
        module, _, inner = system.backend.partition(":")
        backend = f"{canary}\nimport {module} as _module\n_backend = _module{'.' + inner if inner else ''}\n"
        backend += (
            "globals().update({name: getattr(_backend, name) for name in dir(_backend) if name[0] != '_'})\n"
        )
        (folder / "canary_backend.py").write_text(backend, "utf-8")
        text = re.sub(r"^\s*build-backend\s*=.*$", "", pyproject.read_text("utf-8"), flags=re.M)
        table = '[build-system]\nbuild-backend = "canary_backend"\nbackend-path = ["."]\n'
        if "[build-system]" not in text:
            text, table = f"{text}\n[build-system]\n", f"{table}requires = {list(system.requirements)!r}\n"
        pyproject.write_text(text.replace("[build-system]", table, 1), "utf-8")
    return folder


def main() -> int:
    """Study each library; return 1 if a canary reported or a task was not made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sandbox", default="bwrap")
    parser.add_argument("libraries", nargs="*", default=LIBRARIES)
    options = parser.parse_args()
    fine = True
    print("library | metadata | task | seconds | canary")
    with tempfile.TemporaryDirectory() as home, listening() as listener:
        for library in options.libraries:
            source, arguments, extras, function = library.split("|")
            with tempfile.TemporaryDirectory() as scratch:
                folder = patched(source, Path(scratch) / "source", listener.code())
                computed = read_project(folder).requirements is None
                command = [
                    options.python,
                    "-m",
                    "gistpoint",
                    "--sandbox",
                    options.sandbox,
                    "task",
                    "new",
                    str(folder),
                ]
                command += ["--pytest-args", arguments, "--function", function, "--min-failing", "1"]
                command += [word for extra in shlex.split(extras) for word in ("--with", extra)]
                began = time.monotonic()
                environment = {**os.environ, "GISTPOINT_HOME": home}
                made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                seconds = time.monotonic() - began
            told = (
                made.stdout.splitlines()[0] if made.returncode == 0 else " ".join(made.stderr.split()[-30:])
            )
            reported = listener.reported()
            fine = fine and made.returncode == 0 and not reported
            kind = "computed" if computed else "stated"
            print(
                f"{source} {extras} | {kind} | {told} | {seconds:.0f} | {reported or 'nothing'}", flush=True
            )
    return 0 if fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
