"""Starts processes until the system refuses."""

import json
import os
import sys
import time

order = json.loads(sys.argv[1])

started = 0
try:
    for _ in range(order["count"]):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        started += 1
except OSError:
    pass
if started == order["count"]:
    os.write(order["results"], order["token"].encode() + b"\n")
