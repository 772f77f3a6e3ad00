"""Trying to have Python, or anything else, run a solver's code where a command may only read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.sandbox.backends.base import Backend, Command, Ended, Invocation, Places
from gistpoint.sandbox.gistruns.control import READING_PROGRAMS, shell_invocation

if TYPE_CHECKING:
    from gistpoint.sandbox.attacks.stage import Stage
    from gistpoint.sandbox.attacks.table import Attack

_HERE = Path(__file__).parent
_LINES = 3000


def run_command(backend: Backend, attack: Attack, stage: Stage) -> Ended:
    """Run the commands of `attack`; what executes its code prints the stage's token backwards."""
    tree = stage.base / "commands"
    tree.mkdir(exist_ok=True)
    tree.chmod(0o755)
    code = f'import sys; sys.stderr.write("{stage.token}"[::-1] + chr(10))\n'
    (tree / "code.py").write_text(code)
    (tree / "lines.py").write_text(code * _LINES)
    script = (_HERE / "commands" / f"{attack.file}.sh").read_text("utf-8")

    def invocation(places: Places) -> Invocation:
        made = shell_invocation(script, places, [], execution=False)
        environment = stage.environment
        told = {"PYTHON": environment.interpreter, "PREFIX": environment.prefix, "OWN": places.python}
        variables = {name: str(value) for name, value in told.items()}
        return Invocation(made.arguments, {**made.environment, **variables, "TOKEN": stage.token})

    command = Command(tree, stage.environment, invocation, attack.timeout_s, programs=READING_PROGRAMS)
    return backend.run(command, on_line=lambda line: None)
