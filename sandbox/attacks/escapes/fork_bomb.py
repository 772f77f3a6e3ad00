"""Starts a given number of processes, and reports success if the system refuses none of them."""

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
