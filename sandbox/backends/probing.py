"""The trivial command with which a backend shows that it works."""

from __future__ import annotations

from pathlib import Path

from gistpoint.sandbox.backends.base import Command, Environment, Invocation, Places
from gistpoint.sandbox.interpreters import find_interpreter, own_version

_CODE = "import os, sys, ctypes, ssl; os.write(int(sys.argv[1]), sys.argv[2].encode() + b'\\n')"


def probe_command(base: Path, token: bytes) -> Command:
    """Return a command that writes `token` to its result pipe; its tree and environment are made below `base`."""
    base.chmod(0o755)
    interpreter = find_interpreter(own_version())
    tree, environment = base / "tree", base / "environment"
    for folder in (tree, environment / "bin"):
        folder.mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(interpreter.path)
    (environment / "pyvenv.cfg").write_text(f"home = {interpreter.path.parent}\n")

    def invocation(places: Places) -> Invocation:
        arguments = (places.python, "-I", "-c", _CODE, str(places.results_fd), token.decode())
        return Invocation(arguments, {"PATH": "/usr/bin:/bin"})

    described = Environment(environment, interpreter.path, interpreter.prefix, interpreter.version)
    return Command(tree, described, invocation, timeout_s=30.0)
