"""Leaves a process behind in a new session, detached from the run."""

import json
import os
import sys
import time

order = json.loads(sys.argv[1])

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3, 64):
            try:
                os.close(descriptor)
            except OSError:
                pass
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", order["token"]], {})
    os._exit(0)
time.sleep(0.3)
