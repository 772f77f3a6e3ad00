"""Runs a task's build steps in the workspace, then becomes the command that follows.

Usage: build_steps.py STEPS COMMAND... with the steps as a JSON list. The steps get neither the result pipe
nor gistpoint's environment variables, and their standard input is empty. The first step that fails ends the
run, which then reports that it could not start.
"""

import json
import os
import subprocess
import sys

FAILED = 4


def main() -> None:
    """Run the steps, then become the command. Raises `SystemExit` if a step fails."""
    # A step runs the repository's code, which could write records to the result pipe.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GISTPOINT_")}
    for step in json.loads(sys.argv[1]):
        print("build step: " + step, file=sys.stderr, flush=True)
        status = subprocess.run(
            ["/bin/sh", "-c", step], env=own, stdin=subprocess.DEVNULL, check=False
        ).returncode
        if status:
            print("the build step ended with status " + str(status), file=sys.stderr, flush=True)
            raise SystemExit(FAILED)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
