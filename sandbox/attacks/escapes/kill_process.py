"""Kills a process of the host."""

import json
import os
import signal
import sys

order = json.loads(sys.argv[1])

os.kill(order["victim"], signal.SIGKILL)
